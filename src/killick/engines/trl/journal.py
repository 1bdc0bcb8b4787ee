"""Records of a training run that people look at later: what became of each group, and each repair.

`groups.jsonl`: step, uid, num_right, num_rows of every training group, in rollout order; not where a row is unscorable.
`repairs.jsonl`: problem, plan, tokens, p_base, p_plan and weight of every repaired reference.
A step is the number of optimiser steps finished before it.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from killick.errors import RecordError
from killick.provenance import make_folder

GROUPS, REPAIRS = "groups.jsonl", "repairs.jsonl"


class Journal(TrainerCallback):
    """Appends records to the files of a run folder, on the first process; a resumed run goes on where it stopped.

    Args:
        folder: where the files go.
        max_repairs: repairs recorded at most (one of 300 tokens takes about 10 KB); later ones only count in metrics.
    """

    def __init__(self, folder: Path, max_repairs: int = 5000) -> None:
        self._folder = folder
        self._max_repairs = max_repairs
        self._num_repairs = 0
        self._writes = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Cut the files back to the checkpoint, so that a step is not recorded twice."""
        self._writes = state.is_world_process_zero
        if not self._writes:
            return
        make_folder(self._folder)
        _cut(self._folder / GROUPS, state.global_step)
        self._num_repairs = _cut(self._folder / REPAIRS, state.global_step)

    def add_groups(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append to `groups.jsonl`."""
        self._append(GROUPS, list(records))

    def add_repairs(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append to `repairs.jsonl`, up to the limit."""
        kept = list(records)[: max(self._max_repairs - self._num_repairs, 0)]
        self._num_repairs += len(kept)
        self._append(REPAIRS, kept)

    def _append(self, name: str, records: list[Mapping[str, Any]]) -> None:
        if not (self._writes and records):
            return
        lines = "".join(json.dumps(record) + "\n" for record in records)
        try:
            with (self._folder / name).open("a", encoding="ascii") as file:
                file.write(lines)
        except OSError as error:
            raise _unwritable(self._folder / name, error) from error


def _unwritable(path: Path, error: OSError) -> RecordError:
    return RecordError(
        f"Cannot write {path}: {error.strerror}. Free some space and rights there, and run the same command again."
    )


def _cut(path: Path, step: int) -> int:
    """Keep the whole lines of earlier steps; returns how many.

    A line that a kill left unfinished is of a step that will be made again, so it goes as well.
    """
    try:
        lines = [line + b"\n" for line in path.read_bytes().split(b"\n")]  # the last one is empty, or was cut off
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise RecordError(f"Cannot read {path}: {error.strerror}. Remove it to go on without it.") from error
    kept = [line for line in lines[:-1] if _is_earlier(line, step)]
    part = path.with_suffix(".part")
    try:
        part.write_bytes(b"".join(kept))
        os.replace(part, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    return len(kept)


def _is_earlier(line: bytes, step: int) -> bool:
    try:
        return bool(json.loads(line)["step"] < step)
    except (ValueError, KeyError, TypeError):
        return False
