r"""Exact numeric answers: integers, decimals, fractions, mixed numbers, thousands commas. No float is involved.

The answer is looked for in the order of `killick.verifiers.final`:

1. the last box: its whole content must be one number, a unit in words may follow;
2. the last answer tag, or else the line behind the last `####`: exactly one number (after the last "=", if any);
3. the line behind the last "answer is": its first number (after the last "=");
4. with `last_number`, the last number of the text, as graders of GSM8K do.

A number that is part of an unevaluated expression ("9**9", "48 / 2", `\sqrt{5}`), of a list ("5 or 7") or of something
longer ("1.2.3", "12,34") is not an answer: `unparsable`, rather than right by accident.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from killick.errors import ConfigError, DataError
from killick.verifiers.boxed import last_box
from killick.verifiers.context import WINDOW, changed, denied
from killick.verifiers.final import ANSWER, BOX, HASHES, TAG, clean, find
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import Verdict, wrong

# A number in a sentence: its currency, commas and neighbours decide whether it is one. `answers.numerals` reads tokens
# of formulas, of which a grammar has settled all that. Both leave the arithmetic to Fraction; nothing else is common.
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
    rf"(?:[0-9A-Za-z_^\ufffd]|[0-9][.,:]|[0-9)\]}}]{_OPERATOR}|[0-9)\]}}]\s{_OPERATOR}\s|(?:^|[=:(]\s?)-\s|[_^]\s?\{{"
    r"|\\(?!boxed|text|mathrm|mathbf|textbf)[A-Za-z]+\s?\{)$"
)
_AFTER = re.compile(
    rf"[.,:]?[0-9\ufffd]|[eE][+-]?[0-9]|[A-Za-z](?![A-Za-z])(?<=[nxyz])|\s?(?:[√π]|\\(?:sqrt|pi|[dt]?frac|cdot|times))"
    rf"|{_OPERATOR}[0-9(\\]|\s{_OPERATOR}\s[0-9(\\]|\^"
)
_LIST = re.compile(r"\s?(?:,|;|\bor\b|\band\b)\s(?:or |and )?[-$]{0,2}[0-9]")
_UNIT = re.compile(r"[A-Za-z%°.$/\s\\]*")
_FRACTION = re.compile(r"\\[dt]?frac\s?\{\s?(-?[0-9]+)\s?\}\s?\{\s?([0-9]+)\s?\}")
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s?\{([^{}]*)\}")
_SPACES = re.compile("  +")
_THIN_SPACE = re.compile(r"(?<=[0-9])\\,(?=[0-9])")  # 3\,000 is a way to write 3,000
_MIXED = re.compile(r"(?<=[0-9])(?=\\[dt]?frac)")  # 1\frac{1}{2} is one and a half
_CONTEXT = 16  # characters looked at on either side of a number


def _value(match: re.Match[str], max_digits: int) -> Fraction | None:
    """Exact value of one match of the number pattern; None when malformed, ambiguous, too long or over zero."""
    head, tail = match["head"] or "0", (match["tail"] or ".0")[1:]
    bottom, exponent = match["bottom"] or "1", int(match["exponent"] or 0)
    if "," in head and not _THOUSANDS.fullmatch(head):
        return None
    if max(len(head) + len(tail), len(bottom), abs(exponent)) > max_digits or not bottom.strip("0"):
        return None
    value = Fraction(f"{head.replace(',', '')}.{tail}e{exponent}") / int(bottom)
    if match["whole"]:
        if value >= 1:
            return None  # "1 234/5" may be 1 + 234/5 or 1234/5
        value += int(match["whole"])
    return -value if match["minus"] or match["inner_minus"] else value


def exact(text: str, max_digits: int = 40) -> Fraction | None:
    """The value of a text that is one plain number and nothing else (currency sign and blanks apart), else None."""
    match = _NUMBER.fullmatch(clean(text).strip().rstrip("$").strip())
    return _value(match, max_digits) if match else None


def final_number(text: str, last_number: bool = True, max_digits: int = 40) -> Fraction | Verdict:
    """The number a `clean` text answers with, or the verdict on a text without one; linear in its length.

    Args:
        text: the end of a completion.
        last_number: as in `NumberVerifier`.
        max_digits: as in `NumberVerifier`.
    """
    text = _plainly(text)
    place = find(text, BOX, TAG, HASHES, ANSWER)
    if place is not None and place.place == BOX:
        return _boxed(place.text, max_digits)
    if place is not None:
        segment = _last_side(place.line)
        if segment is None:
            return wrong("unparsable")
        matches = list(_NUMBER.finditer(segment))
        if place.place != ANSWER:
            if len(matches) > 1:
                return wrong("unparsable")
            if not matches:
                return wrong("unparsable" if segment.strip() else "no_answer")
            return _read(segment, matches[0], max_digits)
        if matches:
            is_list = _LIST.match(segment, matches[0].end())
            return wrong("unparsable") if is_list else _read(segment, matches[0], max_digits)
    matches = list(_NUMBER.finditer(text)) if last_number else []
    return _read(text, matches[-1], max_digits, announced=False) if matches else wrong("no_answer")


def _plainly(text: str) -> str:
    """Numbers of LaTeX as they are written outside it."""
    text = _THIN_SPACE.sub(",", text.replace("\\!", "").replace("{,}", ","))
    text = _MIXED.sub(" ", text)
    return _SPACES.sub(" ", _TEXT.sub(r" \1 ", _FRACTION.sub(r"\1/\2", text)))


def _last_side(text: str) -> str | None:
    """What stands behind the last "=", None when a whole number before it is another one: "10 = 9" says nothing."""
    left, _, right = text.rpartition("=")
    sides = [exact(side) if side.strip() else None for side in (left.rpartition("=")[2], right)]
    whole = [side for side in sides if side is not None and side.denominator == 1]
    other = (len(whole) == 2 and whole[0] != whole[1]) or (left and changed(left[-WINDOW:] + "=", ""))  # 2x = 9
    return None if other else right


def _boxed(box: str, max_digits: int) -> Fraction | Verdict:
    inner = last_box(box)  # a box in a box
    side = (_last_side(box if inner is None else inner) or "").strip()
    match = _NUMBER.match(side)
    if match is None or not _UNIT.fullmatch(side, match.end()):
        return wrong("unparsable" if box.strip() else "no_answer")
    return _read(side, match, max_digits)


def _read(text: str, match: re.Match[str], max_digits: int, announced: bool = True) -> Fraction | Verdict:
    """The value of a match unless its neighbours make it part of something longer.

    Words beside it count where an answer was announced. In running text "at least 9 boxes" is a usual way to end.
    """
    before = text[max(0, match.start() - _CONTEXT) : match.start()]
    after = text[match.end() : match.end() + _CONTEXT]
    if _BEFORE.search(before) or _AFTER.match(after):
        return wrong("unparsable")
    wide = text[max(0, match.start() - WINDOW) : match.start()], text[match.end() : match.end() + 2 * WINDOW]
    if changed(*wide) if announced else denied(*wide):
        return wrong("unparsable")
    value = _value(match, max_digits)
    return wrong("unparsable") if value is None else value


@dataclass(frozen=True)
class NumberVerifier(SingleAnswer[Fraction]):
    """Compares the completion's final number with the gold, exactly.

    Attributes:
        last_number: without a box, a tag or a marker, take the last number of the text; False makes that `no_answer`.
        max_digits: longer numbers and larger exponents are `unparsable`.
    """

    last_number: bool = True
    max_digits: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_digits < 1:
            raise ConfigError(f"max_digits = {self.max_digits} must be at least 1.")

    def wanted(self, answer: str) -> Fraction:
        """The value of a gold.

        Raises:
            DataError: it is not one plain number, or it has more than `max_digits` digits.
        """
        value = exact(answer, self.max_digits)
        if value is None:
            raise DataError(
                f"The gold answer {answer[:80]!r} is not a plain number of at most {self.max_digits} digits. "
                'Correct the row, or use the verifier "latex" for expressions.'
            )
        return value

    def found(self, text: str, answer: str) -> Fraction | Verdict:
        """The number a completion answers with, or why there is none."""
        return final_number(text, self.last_number, self.max_digits)
