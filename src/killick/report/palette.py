"""Colours that survive colour blindness and both themes: one hue a method, one shade and dash an arm of its sweep.

Hues after Okabe and Ito, "Color Universal Design" (2008), without yellow and black, which vanish on white or on
dark; two of Paul Tol's muted set follow for a seventh and eighth method.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from killick.report.study import Study

BASE = "#8a8a8a"
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#aa4499", "#999933")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "hexagon")


@dataclass(frozen=True)
class Style:
    """How one arm looks in every panel."""

    colour: str
    dash: str
    symbol: str


def method_colours(methods: Sequence[str]) -> dict[str, str]:
    """Method -> hue, in order of first appearance; hues repeat after eight methods."""
    return {name: HUES[index % len(HUES)] for index, name in enumerate(dict.fromkeys(methods))}


def arm_styles(study: "Study") -> dict[str, Style]:
    """Arm name -> style: hue and symbol from its method, shade and dash from its place in the sweep."""
    hues = method_colours(study.methods)
    styles = {}
    for arm in study.arms:
        if arm.is_base:
            styles[arm.name] = Style(BASE, "solid", "star")
            continue
        siblings = [other.name for other in study.arms if other.method == arm.method and not other.is_base]
        place = siblings.index(arm.name)
        styles[arm.name] = Style(
            colour=shade(hues[arm.method], place, len(siblings)),
            dash=DASHES[place % len(DASHES)],
            symbol=SYMBOLS[study.methods.index(arm.method) % len(SYMBOLS)],
        )
    return styles


def shade(colour: str, position: int, total: int) -> str:
    """The `position`-th of `total` shades of a colour, from darker to lighter; the colour itself when alone."""
    if total <= 1:
        return colour
    place = 2 * position / (total - 1) - 1  # -1 darkest … 1 lightest
    # Mixing with black and white keeps the hue and avoids neon; the shares keep every shade visible on both themes.
    target, share = (0, -0.22 * place) if place < 0 else (255, 0.5 * place)
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + share * (target - part)):02x}" for part in parts)


def band_alpha(num_arms: int) -> float:
    """Opacity of a band, so that many of them overlapping stay lighter than one curve."""
    return round(min(0.15, 0.6 / max(1, num_arms)), 3)


def transparent(colour: str, alpha: float) -> str:
    """The colour as `rgba(...)`, for bands."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
