"""Prompts whose whole group failed, waiting in line for their reference solution to be learnt."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from killick.errors import ConfigError, DataError, RecordError


class Failure(NamedTuple):
    """One failed group.

    Attributes:
        uid: of the prompt's row.
        step: optimiser steps finished when it failed.
    """

    uid: str
    step: int


class FailureBuffer:
    """First in, first out, one place per prompt, bounded.

    Only uids and steps are stored. The texts (prompt, reference solution) are in the data set, which every process and
    every resumed run has; so the state is small and cannot disagree with the data.

    A prompt that fails again before its turn gives up its place and joins the end, with the new step. The line is thus
    ordered by the latest failure, and what falls out when it is full is the failure longest ago.

    Attributes:
        capacity: most entries that can wait.
        num_dropped: entries lost because the buffer was full, over the whole run.

    Raises:
        ConfigError: capacity below 1.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ConfigError(f"The buffer of failed prompts needs a capacity of at least 1, found {capacity}.")
        self.capacity = capacity
        self.num_dropped = 0
        self._step_of: dict[str, int] = {}  # a dict keeps the order of insertion

    def __len__(self) -> int:
        return len(self._step_of)

    def push(self, uid: str, step: int) -> None:
        """Note that every completion of a prompt was wrong; when the buffer is full, the oldest entry is dropped.

        Raises:
            DataError: the uid is no text or the step no whole number >= 0, which a saved state could not give back.
        """
        if not _is_entry(uid, step):
            raise DataError(
                f"A failed prompt is noted by a uid of text and a step >= 0, found {_shown((uid, step))}. Make the uid "
                "column texts."
            )
        self._step_of.pop(uid, None)
        self._step_of[uid] = step
        self._drop_surplus()

    def take(self, num: int) -> list[Failure]:
        """Remove and return the `num` oldest entries, oldest first.

        Raises:
            ValueError: fewer than `num` wait, or `num` is negative. Nothing is removed then.
        """
        if not 0 <= num <= len(self):
            raise ValueError(f"Asked for {num} failed prompts, but {len(self)} wait. Compare with len(buffer) first.")
        oldest = [Failure(*entry) for entry in self._step_of.items()][:num]
        for failure in oldest:
            del self._step_of[failure.uid]
        return oldest

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs, JSON-able: `entries` as [uid, step], oldest first, and `num_dropped`."""
        return {"entries": [list(entry) for entry in self._step_of.items()], "num_dropped": self.num_dropped}

    def load_state_dict(self, state: Any) -> None:
        """Take over a saved state in place of the present one.

        If more entries were saved than fit by now, the oldest are dropped and counted.

        Raises:
            RecordError: the state is damaged; the buffer is then unchanged.
        """
        entries, num_dropped = _checked(state)
        self._step_of = dict(entries)
        self.num_dropped = num_dropped
        self._drop_surplus()

    def _drop_surplus(self) -> None:
        while len(self) > self.capacity:
            del self._step_of[next(iter(self._step_of))]
            self.num_dropped += 1


def _checked(state: Any) -> tuple[list[Failure], int]:
    """The parts of a saved state; a checkpoint is a file, and files get damaged."""
    if not isinstance(state, Mapping) or state.keys() != {"entries", "num_dropped"}:
        found = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise _damaged(f"it must hold entries and num_dropped, found {found}")
    if not isinstance(state["entries"], list):
        raise _damaged(f"entries must be a list, found {type(state['entries']).__name__}")
    if not _is_count(state["num_dropped"]):
        raise _damaged(f"num_dropped must be a whole number >= 0, found {_shown(state['num_dropped'])}")
    entries = []
    for entry in state["entries"]:
        if not (isinstance(entry, list) and len(entry) == 2 and _is_entry(*entry)):
            raise _damaged(f"an entry must be [uid, step >= 0], found {_shown(entry)}")
        entries.append(Failure(*entry))
    if len({failure.uid for failure in entries}) != len(entries):
        raise _damaged("a uid occurs twice")
    return entries, state["num_dropped"]


def _is_entry(uid: Any, step: Any) -> bool:
    return isinstance(uid, str) and _is_count(step)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: Any) -> str:
    return repr(value)[:80]


def _damaged(reason: str) -> RecordError:
    return RecordError(f"The saved buffer of failed prompts is damaged: {reason}. Resume from another checkpoint.")
