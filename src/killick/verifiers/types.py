"""What a verifier answers, and the protocol it keeps."""

from dataclasses import dataclass
from typing import Literal, Protocol

Reason = Literal["right", "wrong", "no_answer", "unparsable", "timeout", "error"]


@dataclass(frozen=True)
class Verdict:
    """The outcome for one completion. `correct` is True exactly when `reason` is "right"."""

    correct: bool
    reason: Reason


RIGHT = Verdict(True, "right")


def wrong(reason: Reason = "wrong") -> Verdict:
    """A negative verdict; `reason` must not be "right"."""
    assert reason != "right", "a verdict that is not correct needs another reason"
    return Verdict(False, reason)


class Verifier(Protocol):
    """Frozen dataclass: fields are settings. Completions are hostile: never raise for one, never evaluate code."""

    def check_gold(self, answer: str) -> None:
        """Raise DataError when this gold can never be matched (called once a row, at load)."""
        ...

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion against the gold in bounded time."""
        ...
