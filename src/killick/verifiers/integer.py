r"""Whole-number answers in a range, as in the AIME: `\boxed{073}`, "Answer: 73", "#### 73" are all 73.

Where the answer is looked for is what `number` does, and then an `<answer>` tag or a marker in bold print; text after
it, units in words and a degree sign do not matter, an unevaluated expression or a list is no answer.
"""

import re
from dataclasses import dataclass

from killick.errors import ConfigError, DataError
from killick.verifiers.final import final_answer
from killick.verifiers.number import NumberVerifier, exact
from killick.verifiers.types import RIGHT, Verdict, wrong

_DEGREES = re.compile(r"\^\s?(?:\{\s?\\circ\s?\}|\\circ)")


@dataclass(frozen=True)
class IntegerVerifier:
    """Compares the completion's final whole number with the gold.

    Attributes:
        low: smallest answer there can be.
        high: largest one.
        last_number: without a box or a marker, take the last number of the text. Off by default: in a long text the
            last number is often right by accident.
        max_chars: only the end of a longer completion is read.
    """

    low: int = 0
    high: int = 999
    last_number: bool = False
    max_chars: int = 50_000

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ConfigError(f"low = {self.low} is above high = {self.high}.")
        if self.max_chars < 1:
            raise ConfigError(f"max_chars = {self.max_chars} must be at least 1.")

    def check_gold(self, answer: str) -> None:
        """Refuse a gold that is not a whole number in the range.

        Raises:
            DataError: it is not.
        """
        value = exact(answer)
        if value is None or value.denominator != 1 or not self.low <= value <= self.high:
            raise DataError(
                f"The gold answer {answer[:80]!r} is not a whole number from {self.low} to {self.high}. Correct it."
            )

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion; the time is linear in its length.

        Raises:
            DataError: the gold is unreadable (never because of the completion).
        """
        self.check_gold(answer)
        reader = NumberVerifier(last_number=self.last_number, max_chars=self.max_chars)
        text = _DEGREES.sub("", completion[-self.max_chars :])
        found = reader.extract(text)
        if found == "no_answer" and (place := final_answer(text)) is not None:  # a tag, or a marker in bold print
            found = reader.extract(f"\\boxed{{{place.text.strip(' *_`.')}}}")
        if isinstance(found, str):
            return wrong(found)
        return RIGHT if found == exact(answer) else wrong()

    def other(self, answer: str) -> str:
        """A gold that a completion with this one must not match: the next number of the range."""
        value = exact(answer)
        assert value is not None, "check_gold has accepted the gold"
        return str(self.low if value == self.high else int(value) + 1)
