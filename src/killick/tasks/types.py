"""A task: where problems come from, how they are asked, which verifier judges, and what a solution mode is."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from killick.verifiers.types import Verifier

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Row:
    """One problem.

    Attributes:
        uid: stable and unique within the task and split.
        prompt: chat messages, rendered later by the model's own chat template.
        answer: gold as the verifier reads it.
        solution: reference solution text, or None.
        source: where the row comes from.
        meta: extras (numbers, target, level …), JSON-able.
        problem: the question alone, without instruction, for comparing problems; "" where a task does not tell.
    """

    uid: str
    prompt: Messages
    answer: str
    solution: str | None = None
    source: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


class Task(Protocol):
    """Frozen dataclass: fields are the settings of `[task]` in a recipe."""

    splits: tuple[str, ...]

    @property
    def verifier(self) -> Verifier:
        """The judge of this task's completions."""
        ...

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems of a split in a fixed order, the first `limit` of them.

        Raises:
            ConfigError: unknown split (the allowed ones are named).
            DataError: missing file or column, empty split, a gold the verifier cannot read.
        """
        ...

    def gold_completion(self, row: Row) -> str:
        """The gold answer as a model would write it; must be judged right (`killick tasks validate`)."""
        ...

    def mode(self, completion: str) -> str | None:
        """A short label of the way a right completion solves its problem, or None where the notion is unknown."""
        ...
