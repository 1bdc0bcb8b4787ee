"""One quantity as written: its expression, and the per cent sign, currency and unit around it."""

import re
from dataclasses import dataclass
from fractions import Fraction

from killick.verifiers.answers.numerals import written_precision
from killick.verifiers.answers.syntax import parse
from killick.verifiers.answers.tree import Node, Unreadable
from killick.verifiers.answers.units import GLUED, KNOWN_WORD

_CURRENCY = re.compile(r"(-?)(?:\\?\$|[€£¥]|\\(?:euro|pounds)|US\\?\$) ?(?=[0-9.\\-])(-?)")
_CURRENCY_AFTER = re.compile(r"(?<=[0-9]) ?(\\?\$|[€£¥])$")
_PERCENT = re.compile(
    r" ?(?:\\?%|\\text ?\{ ?(?:percent|per ?cent|%|\\%) ?\}|(?:percent|per cent|pct)\.?)$", re.IGNORECASE
)
_TEXT_UNIT = re.compile(
    r"^(.*?[^ ^_{/]) ?"
    r"((?:\\text ?\{[^{}]*\}(?: ?\^ ?\{? ?-?[0-9] ?\}?)?[ ·/.]*|\\cdot ?(?=\\text))+)$",
    re.DOTALL,
)
_PLAIN_UNIT = re.compile(
    r"^([^A-Za-z]*(?:\\(?:frac|sqrt|pi|times|cdot)[^A-Za-z]*)*)(?<=[0-9)}\]i \u00b0])([A-Za-z].*)$",
    re.DOTALL,
)
_UNIT_WORDS = re.compile(r"(?:[A-Za-z]++\.?(?: ?\^ ?\{? ?-?[1-4] ?\}?)?[ /·*]*+)+")
_DOTS = re.compile(r"(-?[0-9]*)\.([0-9]+) ?(?:\\ldots|\.\.\.+)")
_SINGLE_UNITS = {"m", "s", "g", "h", "L", "l", "J", "N", "W", "V", "A", "K", "C", "F"}
MATHS_WORD = re.compile(
    r"(?:arc)?(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|cbrt|pi(?![a-z])|abs|asin|acos|atan)h?[ (^_0-9A-Za-z]"
)


@dataclass(frozen=True)
class Value:
    """One quantity: its tree, and what stood around it."""

    node: Node
    text: str
    unit: str = ""
    percent: bool = False
    precision: Fraction | None = None  # one unit in the last place of a long decimal


def value(text: str, glued_units: bool) -> Value:
    """One quantity with its per cent sign, currency and unit taken off.

    Raises:
        Unreadable, OverflowError: what is left is not one expression.
    """
    body, unit = without_currency(text.strip())
    without = _PERCENT.sub("", body)
    percent = without != body
    if not percent and not unit:
        without, unit = _without_unit(body, glued_units)
    dots = _DOTS.fullmatch(without)
    if dots:
        without = _repeated(dots)
    precision = written_precision(without.lstrip("-+").strip())
    return Value(parse(without), re.sub(r"\s", "", without), unit, percent, precision)


def without_currency(text: str) -> tuple[str, str]:
    """A text without the sign of a currency before or behind it, and that currency ("" without one)."""
    for pattern in (_CURRENCY, _CURRENCY_AFTER):
        match = pattern.match(text) if pattern is _CURRENCY else pattern.search(text)
        if match:
            symbol = re.search(r"[€£¥]", match[0])
            without = pattern.sub(r"\1\2" if pattern is _CURRENCY else "", text, count=1)
            return without, symbol[0] if symbol else "dollar"
    return text, ""


def _without_unit(text: str, glued_units: bool) -> tuple[str, str]:
    match = _TEXT_UNIT.match(text)
    if match:
        return match[1].removesuffix("\\cdot").strip(), match[2].strip()
    match = _PLAIN_UNIT.match(text)
    if not match or not _UNIT_WORDS.fullmatch(match[2].strip()):
        return text, ""
    number, unit = match[1].strip(), match[2].strip()
    words = re.findall(r"[A-Za-z]+", unit)
    spaced = match[1].endswith(" ")
    known = all(_is_unit_word(word, spaced) for word in words)
    if known and (spaced or GLUED.fullmatch(unit)) and not MATHS_WORD.match(unit + " ") and words[0] != "pi":
        return number, unit
    if glued_units and GLUED.fullmatch(unit):
        return number, unit
    return text, ""


def _is_unit_word(word: str, spaced: bool) -> bool:
    """A unit we know (one letter only after a blank), or a word too long to be a product of symbols."""
    if len(word) >= 4 or word in ("sq", "per", "of", "the"):
        return True
    return KNOWN_WORD.fullmatch(word) is not None and (len(word) > 1 or (spaced and word in _SINGLE_UNITS))


def _repeated(dots: re.Match[str]) -> str:
    r"""`0.1666\ldots` as `0.1\overline{6}`: a block at the end, three times if it is one digit, else twice.

    Raises:
        Unreadable: nothing repeats, and the digits are too few to stand for a value they begin.
    """
    digits = dots[2]
    for size in range(1, len(digits) // 2 + 1):
        block, times = digits[-size:], 3 if size == 1 else 2
        if digits.endswith(block * times):
            while digits.endswith(block):
                digits = digits[:-size]
            return f"{dots[1]}.{digits}\\overline{{{block}}}"
    if len(digits.lstrip("0")) < 6:
        raise Unreadable("dots after a few digits")
    return f"{dots[1]}.{dots[2]}"
