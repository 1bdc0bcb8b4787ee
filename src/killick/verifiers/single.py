"""What verifiers of one final answer share: the bound on the text, the comparison, and what a vote counts."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from killick.errors import ConfigError
from killick.verifiers.final import ending
from killick.verifiers.types import RIGHT, Verdict, wrong

T = TypeVar("T")


@dataclass(frozen=True)
class SingleAnswer(ABC, Generic[T]):
    """Right when the final answer of a completion, read as a value, equals the gold. Subclasses do the reading.

    Attributes:
        max_chars: only the end of a longer completion is read.
    """

    max_chars: int = field(default=50_000, kw_only=True)

    key_needs_gold: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.max_chars < 1:
            raise ConfigError(f"max_chars = {self.max_chars} must be at least 1.")

    @abstractmethod
    def wanted(self, answer: str) -> T:
        """The value of a gold.

        Raises:
            DataError: it has none.
        """

    @abstractmethod
    def found(self, text: str, answer: str) -> T | Verdict:
        """The value of a completion's final answer, or the verdict on a completion without one.

        Args:
            text: the end of the completion, `clean`.
            answer: the gold, for what it tells about the problem.
        """

    def spelled(self, value: T) -> str:
        """A text for a value, equal for equal ones."""
        return str(value)

    def check_gold(self, answer: str) -> None:
        """Refuse a gold without a value.

        Raises:
            DataError: as `wanted`.
        """
        self.wanted(answer)

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion; the time is linear in `max_chars`.

        Raises:
            DataError: the gold is unreadable (never because of the completion).
        """
        gold = self.wanted(answer)
        found = self.found(self._end(completion), answer)
        if isinstance(found, Verdict):
            return found
        return RIGHT if found == gold else wrong()

    def answer_key(self, completion: str, answer: str) -> str | None:
        """What a completion answers, as a text that is equal for equal answers; None when it gives no answer."""
        found = self.found(self._end(completion), answer)
        return None if isinstance(found, Verdict) else self.spelled(found)

    def _end(self, completion: str) -> str:
        return ending(completion, self.max_chars)
