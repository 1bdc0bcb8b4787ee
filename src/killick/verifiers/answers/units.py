"""Units and words behind a number: which are the same, which may be left out, and which contradict each other."""

import re
from fractions import Fraction
from functools import lru_cache

# unit -> (dimension, size in the first unit of that dimension)
_SIZES: dict[str, tuple[str, Fraction]] = {}


def _define(dimension: str, **sizes: str) -> None:
    for size, names in sizes.items():
        for name in names.split():
            _SIZES[name] = (dimension, Fraction(size[1:].replace("_", "/")))


_define(
    "length",
    x1="m meter metre", x1_100="cm centimeter centimetre", x1_1000="mm millimeter millimetre",
    x1000="km kilometer kilometre", x127_5000="inch in", x381_1250="foot feet ft",
    x1143_1250="yard yd", x201168_125="mile mi", x1_10="decimeter decimetre", x1_1000000="micrometer micrometre",
    x1_1000000000="nanometer nanometre", x9460730472580800="lightyear",
)  # fmt: skip
_define(
    "mass", x1="g gram", x1000="kg kilogram", x1_1000="mg milligram", x1000000="tonne", x45359237_100000="lb pound",
    x45359237_1600000="ounce oz",
)  # fmt: skip
_define("ton", x1="ton")  # there are three
_define(
    "time", x1="s sec second", x60="min minute", x3600="h hr hour", x86400="day", x604800="week",
    x1_1000="millisecond", x1_1000000="microsecond", x1_1000000000="nanosecond",
)  # fmt: skip
_define("calendar", x1="month", x12="year yr", x120="decade", x1200="century centurie")
_define("money", x1="dollar usd $", x1_100="cent ¢")
_define("pound sterling", x1="£ gbp", x1_100="pence")
_define("euro", x1="€ euro eur")
_define(
    "volume", x1="l liter litre", x1_1000="ml milliliter millilitre", x473176473_125000000="gallon",
    x473176473_500000000="quart", x473176473_1000000000="pint",
)  # fmt: skip
_define("angle", x1="degree ^circ", x1_60="arcminute")
_define("angle in radians", x1="radian rad")
_define("power", x1="w watt", x1000="kw kilowatt")
_define("force", x1="n newton")
_define("energy", x1="j joule", x1000="kj kilojoule")
_define("voltage", x1="v volt")
_define("current", x1="ampere amp")
_define("frequency", x1="hz hertz", x1000="khz", x1000000="mhz")
_define("pressure", x1="pa pascal", x1000="kpa")
_define("speed", x1="mph", x5_8="kmh kph")
_GLUED = ("cm", "mm", "km", "kg", "mg", "ml", "ft", "in", "hr", "min", "sec", "mph", "yd", "lb", "m", "s", "g", "h")
_IGNORED = {"of", "the", "per", "square", "sq", "cubic", "unit", "units", "a", "each"}
_SPLIT = re.compile(r"\^ ?\{? ?(-?[0-9]) ?\}?|([A-Za-z°$€£¥¢]+)|([/·*.-])|\s+|\S")
GLUED = re.compile(rf"(?:{'|'.join(_GLUED)})(?:\^ ?\{{? ?[1-4] ?\}}?)?")
KNOWN_WORD = re.compile(
    rf"(?:{'|'.join(sorted((re.escape(n) for n in _SIZES if n.isalpha()), key=len, reverse=True))})(?:e?s)?",
    re.IGNORECASE,
)


def singular(word: str) -> str:
    """A word in lower case without a plural ending, where that gives a known unit or the word is long."""
    word = word.lower()
    for ending in ("es", "s"):
        stem = word.removesuffix(ending)
        if stem != word and stem in _SIZES:
            return stem
    return word.removesuffix("s") if len(word) > 3 else word


@lru_cache(maxsize=4096)
def measure(unit: str) -> tuple[tuple[tuple[str, int], ...], Fraction] | None:
    """Dimensions with their powers, and the size in base units; None without a known unit in it (mere words)."""
    plain = unit.replace("\\text", " ").replace("\\", "").replace("{", " ").replace("}", " ")
    dimensions: dict[str, int] = {}
    size, sign, power, last = Fraction(1), 1, 1, None
    for match in _SPLIT.finditer(plain):
        if match[3] == "/" or (match[2] or "").lower() == "per":
            sign = -1
        elif match[2]:
            name = singular(match[2])
            if name in ("square", "sq", "cubic"):
                power = 3 if name == "cubic" else 2
            elif name in ("squared", "cubed") and last:
                extra = 1 + (name == "cubed")
                dimensions[last[0]] += last[2] * extra
                size *= last[1] ** (last[2] * extra)
            elif name in _SIZES:
                dimension, factor = _SIZES[name]
                dimensions[dimension] = dimensions.get(dimension, 0) + sign * power
                size *= factor ** (sign * power)
                last, power = (dimension, factor, sign), 1
            elif name not in _IGNORED:
                return None
        elif match[1] and last:
            extra = int(match[1]) - 1
            dimensions[last[0]] += last[2] * extra
            size *= last[1] ** (last[2] * extra)
    found = tuple(sorted((name, n) for name, n in dimensions.items() if n))
    return (found, size) if found else None


def conversion(gold: str, found: str) -> Fraction | None:
    """The factor from the unit of an answer to that of the gold; None when they contradict each other.

    A unit that is missing on either side, or a mere word, contradicts nothing.
    """
    if not gold or not found:
        return Fraction(1)
    a, b = measure(gold), measure(found)
    if a is None or b is None:
        return Fraction(1)
    return b[1] / a[1] if a[0] == b[0] else None
