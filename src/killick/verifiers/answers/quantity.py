"""One quantity as written: its expression, and the per cent sign, currency and unit around it."""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from killick.verifiers.answers.numerals import written_precision
from killick.verifiers.answers.syntax import parse
from killick.verifiers.answers.tree import Node, Unreadable
from killick.verifiers.answers.units import GLUED, KNOWN_WORD, conversion, measure
from killick.verifiers.context import changed

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
_FRACTION_UNIT = re.compile(
    r"^([^A-Za-z]*(?:\\(?:frac|sqrt|pi|times|cdot)[^A-Za-z]*)*)(?<=[0-9)}\] ])\\frac ?"
    r"\{((?:\\text ?\{[^{}]*\}|[^{}])*)\} ?\{((?:\\text ?\{[^{}]*\}|\{ ?[1-4] ?\}|[^{}])*)\}$",
    re.DOTALL,
)
_EXPONENT = re.compile(r"\^ ?\{? ?-?[1-4] ?\}?")
_MAGNITUDES = {
    name: Fraction(10) ** power
    for name, power in {
        "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12,
        "lakh": 5, "crore": 7, "quadrillion": 15, "tenths": -1, "hundredths": -2, "thousandths": -3, "millionths": -6,
    }.items()
}  # fmt: skip
_PARTS = ("halves", "thirds", "fourths", "fifths", "sixths", "sevenths", "eighths", "ninths")
_MAGNITUDES |= {name: Fraction(1, bottom) for bottom, name in enumerate(_PARTS, 2)}
_MAGNITUDE = re.compile(rf"(?:\\text ?\{{ ?)?({'|'.join(_MAGNITUDES)})(?![a-z])", re.IGNORECASE)
_PER = re.compile(r"(?:\\text ?\{)? ?(?:/|per|an?|each)(?![a-z])")
_NO_UNIT = re.compile(
    r"\b(?:or|not|half|quarter|than|least|most|except|wrong|incorrect|false|if|unless|mod|modulo|remainder|plus|minus"
    r"|factorial|divided|multiplied|base|(?<!left )over|below|negative|inverse|reciprocal|too|off|power|twice|ppm"
    r"|mille|repeating|recurring|when|twelfths|sixteenths|ten-\w+|googol|zillion|kilo|mega)\b|n't\b|\bprime\W*$"
    r"|^\W*(?:text\W*)?(?:squared|cubed|choose)\b",
    re.IGNORECASE,
)
_TEXTS = re.compile(r"\\text ?\{([^{}]*)\}")
_NO_TEXT = re.compile(r"(?<![A-Za-z^])[0-9]|[0-9]{2}|\b[eE][0-9]|[+=<>!|%&‰]")  # within one of them
_MINUTES = re.compile(
    r"(-?)([0-9]{1,4}) ?\^ ?\{? ?\\circ ?\}? ?([0-5]?[0-9](?:\.[0-9]{1,9})?) ?'(?!')"
    r"(?: ?([0-5]?[0-9](?:\.[0-9]{1,9})?) ?(?:''|\"))?"
)
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(\\text ?\{[^{}0-9]*\}|[A-Za-z]+)")
_COMPOUND = re.compile(rf"{_PART.pattern}(?: ?(?:, ?|and )*{_PART.pattern}){{1,2}}\.?")
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
    body, currency = without_currency(text.strip())
    without = _PERCENT.sub("", body)
    percent = without != body
    unit = ""
    if not percent:
        without, unit = _without_unit(body, glued_units and not currency)
    size = Fraction(1)
    if unit:
        size, unit = _magnitude(unit)
        if currency and measure(unit) is not None and not _PER.match(unit):
            raise Unreadable("a currency and another unit")
        if _misleads(unit):
            raise Unreadable("words that change what the number says")
    angle = _MINUTES.fullmatch(without)
    dots = _DOTS.fullmatch(without)
    if dots:
        without = _repeated(dots)
    node = _angle(angle) if angle else parse(without)
    if size != 1:
        return Value(Node("mul", (node, Node("num", value=size))), "", currency or unit, percent)
    precision = written_precision(without.lstrip("-+").strip())
    return Value(node, re.sub(r"\s", "", without), currency or unit, percent, precision)


def _misleads(unit: str) -> bool:
    """Whether the words behind a number are no unit but change what it says."""
    if _NO_UNIT.search(unit) or any(_NO_TEXT.search(text) for text in _TEXTS.findall(unit)):
        return True
    words = _TEXTS.sub(r"\1", unit)
    return not words.lstrip().startswith("/") and changed("", words if words.startswith(" ") else f" {words}")


def compound(text: str) -> Value | None:
    """`5 feet 2 inches` and `1 hour and 30 minutes`: a sum in the first unit, of units of one kind that get smaller."""
    match = _COMPOUND.fullmatch(text)
    if not match:
        return None
    parts = _PART.findall(text)
    units = [re.sub(r"\band\b", "", unit) for _, unit in parts]
    factors: list[Fraction] = [f for unit in units if measure(unit) and (f := conversion(units[0], unit))]
    if len(factors) < len(parts) or any(a <= b for a, b in pairwise(factors)):
        return None
    total = sum((Fraction(size) * factor for (size, _), factor in zip(parts, factors, strict=True)), Fraction(0))
    return Value(Node("num", value=total), "", units[0])


def _magnitude(unit: str) -> tuple[Fraction, str]:
    """The size that words such as "million" give a number, and the unit behind them."""
    size = Fraction(1)
    while match := _MAGNITUDE.match(unit):
        size *= _MAGNITUDES[match[1].lower()]
        unit = unit[match.end() :].strip(" }\\")
    return size, unit


def _angle(match: re.Match[str]) -> Node:
    """Degrees, minutes and seconds as degrees."""
    degrees = Fraction(match[2]) + Fraction(match[3]) / 60 + Fraction(match[4] or 0) / 3600
    return Node("deg", (Node("num", value=-degrees if match[1] else degrees),))


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
    match = _FRACTION_UNIT.match(text) if text.endswith("}") and (glued_units or "\\text" in text) else None
    if match:
        unit = f"{match[2]}/{match[3]}"
        words = re.findall("[A-Za-z]+|[0-9]", _EXPONENT.sub(" ", unit.replace("\\text", " ")))
        if words and all(_is_unit_word(word, True) for word in words):
            return match[1].strip(), unit
    match = _PLAIN_UNIT.match(text)
    if not match or not _UNIT_WORDS.fullmatch(match[2].strip()):
        return text, ""
    number, unit = match[1].strip(), match[2].strip()
    words = re.findall("[A-Za-z]+", unit)
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
