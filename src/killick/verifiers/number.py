r"""Exact numeric answers: integers, decimals, fractions, mixed numbers, thousands commas. No float is involved.

Where the answer is looked for; the first place that exists decides:

1. the last `\boxed{…}`: its whole content must be one number, a unit in words may follow;
2. the line after the last `####`: it must hold exactly one number (after the last "=", if there is one);
3. the line after the last "answer is" or "answer:": its first number (after the last "=");
4. with `last_number`, the last number of the text, as graders of GSM8K do.

A number that is part of an unevaluated expression ("9**9", "48 / 2", `\sqrt{5}`), of a list ("5 or 7") or of something
longer ("1.2.3", "12,34") is not an answer: `unparsable`, rather than right by accident.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from killick.errors import ConfigError, DataError
from killick.verifiers.boxed import last_box
from killick.verifiers.types import RIGHT, Verdict, wrong

# Every pattern below is linear in the length of the text: no quantifier repeats something that can match itself.
_NUMBER = re.compile(
    r"(?:\\?\$(?P<inner_minus>-)|(?P<minus>-)?(?:\\?\$)?)"
    r"(?:(?P<whole>[0-9]{1,40}) (?=[0-9]{1,40}/[0-9]))?"
    r"(?P<head>[0-9]+(?:,[0-9]+)*)?(?P<tail>(?(head)\.[0-9]+|\.[0-9]+))?(?(head)|(?(tail)|(?!)))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})(?![0-9]))?"
    r"(?:/(?P<bottom>[0-9]+))?"
)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")  # not "0,500", which is a half in some countries
_OPERATOR = r"(?:\*\*|[*/+^×·÷-])"
# An operator has spaces on both sides or on none; "5 **18**" is bold print.
_BEFORE = re.compile(
    rf"(?:[0-9A-Za-z_^\ufffd]|[0-9][.,:]|[0-9)\]}}]{_OPERATOR}|[0-9)\]}}]\s{_OPERATOR}\s|[=:(]\s?-\s"
    r"|\\(?!boxed|text|mathrm|mathbf|textbf)[A-Za-z]+\s?\{)$"
)
_AFTER = re.compile(
    rf"[.,:]?[0-9\ufffd]|[eE][+-]?[0-9]|[A-Za-z](?![A-Za-z])(?<=[nxyz])|\s?(?:[√π]|\\(?:sqrt|pi|[dt]?frac|cdot|times))"
    rf"|{_OPERATOR}[0-9(\\]|\s{_OPERATOR}\s[0-9(\\]|\^"
)
_LIST = re.compile(r"\s?(?:,|;|\bor\b|\band\b)\s(?:or |and )?[-$]{0,2}[0-9]")
_UNIT = re.compile(r"[A-Za-z%°.$/\s\\]*")
_ANSWER_IS = re.compile(r"answer\s?(?:is|:)", re.IGNORECASE)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{\s?(-?[0-9]+)\s?\}\s?\{\s?([0-9]+)\s?\}")
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s?\{([^{}]*)\}")
_THIN_SPACE = re.compile(r"(?<=[0-9])\\,(?=[0-9])")  # 3\,000 is a way to write 3,000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_UNIFY = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_CONTEXT = 16  # characters looked at on either side of a number

Failure = Literal["no_answer", "unparsable"]


def clean(text: str) -> str:
    r"""Invisible format characters removed, control characters made visible, minus signs and spaces unified.

    "1\u200b8" is shown as 18 and must not be read as 8; a null byte between digits must not hide the first ones.
    """
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf").translate(_UNIFY)
    return _CONTROL.sub("\ufffd", text)


def _value(match: re.Match[str], max_digits: int) -> Fraction | None:
    """Exact value of one match of the number pattern; None when malformed, ambiguous, too long or over zero."""
    head, tail = match["head"] or "0", (match["tail"] or ".0")[1:]
    bottom, exponent = match["bottom"] or "1", int(match["exponent"] or 0)
    if "," in head and not _THOUSANDS.fullmatch(head):
        return None
    if max(len(head) + len(tail), len(bottom), abs(exponent)) > max_digits or not bottom.strip("0"):
        return None
    value = Fraction(f"{head.replace(',', '')}.{tail}") * Fraction(10) ** exponent / int(bottom)
    if match["whole"]:
        if value >= 1:
            return None  # "1 234/5" may be 1 + 234/5 or 1234/5
        value += int(match["whole"])
    return -value if match["minus"] or match["inner_minus"] else value


def exact(text: str, max_digits: int = 40) -> Fraction | None:
    """The value of a text that is one plain number and nothing else (currency sign and blanks apart), else None."""
    match = _NUMBER.fullmatch(clean(text).strip().rstrip("$").strip())
    return _value(match, max_digits) if match else None


@dataclass(frozen=True)
class NumberVerifier:
    """Compares the completion's final number with the gold, exactly.

    Attributes:
        last_number: without a box or a marker, take the last number of the text; False makes that `no_answer`.
        max_digits: longer numbers and larger exponents are `unparsable`.
        max_chars: only the end of a longer completion is read.
    """

    last_number: bool = True
    max_digits: int = 40
    max_chars: int = 50_000

    def __post_init__(self) -> None:
        if min(self.max_digits, self.max_chars) < 1:
            raise ConfigError(f"max_digits = {self.max_digits} and max_chars = {self.max_chars} must be at least 1.")

    def check_gold(self, answer: str) -> None:
        """Refuse a gold that is not one plain number.

        Raises:
            DataError: it is not, or it has more than `max_digits` digits.
        """
        if exact(answer, self.max_digits) is None:
            raise DataError(
                f"The gold answer {answer[:80]!r} is not a plain number of at most {self.max_digits} digits. "
                'Correct the row, or use the verifier "latex" for expressions.'
            )

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion; the time is linear in its length.

        Raises:
            DataError: the gold is unreadable (never because of the completion).
        """
        self.check_gold(answer)
        found = self.extract(completion)
        if isinstance(found, str):
            return wrong(found)
        return RIGHT if found == exact(answer, self.max_digits) else wrong()

    def extract(self, completion: str) -> Fraction | Failure:
        """The number a completion answers with, or why there is none."""
        text = clean(completion[-self.max_chars :])
        text = _THIN_SPACE.sub(",", text.replace("\\!", "").replace("{,}", ","))
        text = re.sub(r"(?<=[0-9])(?=\\[dt]?frac)", " ", text)
        text = _TEXT.sub(r" \1 ", _FRACTION.sub(r"\1/\2", text))
        box = last_box(text)
        if box is not None:
            return self._boxed(box) if box.strip() else "no_answer"
        if "####" in text:
            segment = _last_side(text[text.rindex("####") + 4 :])
            matches = list(_NUMBER.finditer(segment))
            if len(matches) > 1:
                return "unparsable"
            return self._read(segment, matches[0]) if matches else "no_answer"
        markers = list(_ANSWER_IS.finditer(text))
        if markers:
            segment = _last_side(text[markers[-1].end() :])
            match = _NUMBER.search(segment)
            if match:
                return "unparsable" if _LIST.match(segment, match.end()) else self._read(segment, match)
        if not self.last_number:
            return "no_answer"
        matches = list(_NUMBER.finditer(text))
        return self._read(text, matches[-1]) if matches else "no_answer"

    def _boxed(self, box: str) -> Fraction | Failure:
        side = box.rpartition("=")[2].strip()
        match = _NUMBER.match(side)
        if match is None or not _UNIT.fullmatch(side, match.end()):
            return "unparsable"
        return self._read(side, match)

    def _read(self, text: str, match: re.Match[str]) -> Fraction | Failure:
        """The value of a match unless its neighbours make it part of something longer."""
        before = text[max(0, match.start() - _CONTEXT) : match.start()]
        after = text[match.end() : match.end() + _CONTEXT]
        if _BEFORE.search(before) or _AFTER.match(after):
            return "unparsable"
        value = _value(match, self.max_digits)
        return "unparsable" if value is None else value


def _last_side(text: str) -> str:
    """The first line of a text that says something, after its last equals sign."""
    line = text.lstrip(" \t").partition("\n")[0]
    return line.rpartition("=")[2]
