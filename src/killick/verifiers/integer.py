r"""Whole-number answers in a range, as in the AIME: `\boxed{073}`, "Answer: 73", "#### 73" are all 73.

The answer is read as `number` reads it, and a degree sign does not matter.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from killick.errors import ConfigError, DataError
from killick.verifiers.number import exact, final_number
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import Verdict

_DEGREES = re.compile(r"\^\s?(?:\{\s?\\circ\s?\}|\\circ)")


@dataclass(frozen=True)
class IntegerVerifier(SingleAnswer[Fraction]):
    """Compares the completion's final whole number with the gold.

    Attributes:
        low: smallest answer there can be.
        high: largest one.
        last_number: without a box or a marker, take the last number of the text. Off by default: in a long text the
            last number is often right by accident.
    """

    low: int = 0
    high: int = 999
    last_number: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ConfigError(f"low = {self.low} is above high = {self.high}.")

    def wanted(self, answer: str) -> Fraction:
        """The value of a gold.

        Raises:
            DataError: it is not a whole number in the range.
        """
        value = exact(answer)
        if value is None or value.denominator != 1 or not self.low <= value <= self.high:
            raise DataError(
                f"The gold answer {answer[:80]!r} is not a whole number from {self.low} to {self.high}. Correct it."
            )
        return value

    def found(self, text: str, answer: str) -> Fraction | Verdict:
        """The number a completion answers with, or why there is none."""
        return final_number(_DEGREES.sub("", text), self.last_number)

    def other(self, answer: str) -> str:
        """A gold that a completion with this one must not match: the next number of the range."""
        value = self.wanted(answer)
        return str(self.low if value == self.high else int(value) + 1)
