r"""Written numbers to exact values: decimals, powers of ten, repeating decimals, and how precisely one was written."""

import re
from fractions import Fraction
from functools import lru_cache

_MAX_DIGITS = 400
_MAX_EXPONENT = 4000
_OVERLINE = r"\\(?:overline|bar|dot)"
REPEATING = (
    rf"[0-9]*\.[0-9]*(?:{_OVERLINE}\s?(?:\{{\s?[0-9]+\s?\}}|[0-9])|\([0-9]+\))"
    r"(?![0-9])"
)
SCIENTIFIC = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+(?![0-9.]))?"
_REPEATING = re.compile(rf"([0-9]*)\.([0-9]*)(?:{_OVERLINE})?[ ({{]*([0-9]+)[ )}}]*")
_DECIMAL = re.compile(
    r"(-?)([0-9]*)\.([0-9]+)(?: ?(?:\\times|\\cdot|\*) ?10 ?\^ ?\{? ?(-?[0-9]{1,3}) ?\}?|[eE]([+-]?[0-9]{1,3}))?"
)
MIN_SIGNIFICANT_DIGITS = 6
_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMBER_WORDS = [*_UNITS, *(f"{ten} {unit}" if unit else ten for ten in _TENS for unit in ("", *_UNITS[1:10]))]


def numeral(text: str) -> Fraction:
    """The exact value of a token matched by `REPEATING` or `SCIENTIFIC`.

    A repeating part of n digits d stands for d / (10^n - 1), shifted behind the fixed decimals.

    Raises:
        OverflowError: more digits, or a larger exponent, than any answer has.
    """
    if len(text) > _MAX_DIGITS:
        raise OverflowError("a number of more than 400 digits")
    if "\\" in text or "(" in text:
        match = _REPEATING.fullmatch(text)
        assert match, "the token pattern admits only what this one reads"
        whole, fixed, block = match[1] or "0", match[2], match[3]
        start = Fraction(int(whole + fixed), 10 ** len(fixed))
        return start + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(fixed))
    mantissa, _, exponent = text.lower().partition("e")
    power = int(exponent or 0)
    if abs(power) > _MAX_EXPONENT:
        raise OverflowError("a power of ten that no answer has")
    return Fraction(mantissa.rstrip(".") if mantissa[0] != "." else "0" + mantissa) * Fraction(10) ** power


@lru_cache(maxsize=4096)
def written_precision(text: str) -> Fraction | None:
    r"""One unit in the last place of a text that is one decimal with six significant digits or more, else None.

    Only such a decimal may stand for an exact value it rounds: `0.333333` for 1/3, but not `0.33`.
    """
    match = _DECIMAL.fullmatch(text.strip())
    if not match:
        return None
    digits = (match[2] + match[3]).lstrip("0")
    exponent = int(match[4] or match[5] or 0)
    if len(digits) < MIN_SIGNIFICANT_DIGITS:
        return None
    return Fraction(10) ** (exponent - len(match[3]))


def number_word(text: str) -> int | None:
    """The number below a hundred that a text in lower case, without hyphens, spells."""
    return _NUMBER_WORDS.index(text) if text in _NUMBER_WORDS else None
