"""Curves over training as small multiples with one legend: mean over seeds, the range of the seeds as a band."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from killick.report.markup import plot_text
from killick.report.palette import Style, arm_styles, band_alpha, transparent
from killick.report.study import Arm, Study
from killick.report.types import Figure

COLUMNS = 2
ROW_PX = 250
NUM_BINS = 20


class Curve(NamedTuple):
    """Steps, [X], and one row of values a seed, [S, X]; no seed when there is nothing to draw."""

    steps: Float[np.ndarray, " X"]
    values_SX: Float[np.ndarray, "S X"]


NO_CURVE = Curve(np.empty(0), np.empty((0, 0)))


class Multiple(NamedTuple):
    """One plot.

    Attributes:
        heading: with unit.
        curve: of an arm.
    """

    heading: str
    curve: Callable[[Arm], Curve]


def multiples(study: Study, heading: str, plots: Sequence[Multiple], caption: str = "") -> Figure:
    """One figure with a plot each."""
    styles, alpha = arm_styles(study), band_alpha(len(study.arms))
    rows = -(-len(plots) // COLUMNS)
    height = rows * ROW_PX
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"hovermode": "closest", "annotations": [], "legend": {"orientation": "h", "y": 1.0}}
    layout["legend"] |= {"yanchor": "bottom", "y": 1 + 34 / height, "x": 0}
    named: set[str] = set()
    for place, plot in enumerate(plots):
        row, column = divmod(place, COLUMNS)
        axis = "" if place == 0 else str(place + 1)
        left = column * (1 / COLUMNS) + 0.035 * (column > 0)
        right = (column + 1) / COLUMNS - 0.035 * (column < COLUMNS - 1)
        top, bottom = 1 - (row + 0.09) / rows, 1 - (row + 0.84) / rows
        layout[f"xaxis{axis}"] = {"domain": [left, right], "anchor": f"y{axis}"}
        layout[f"yaxis{axis}"] = {"domain": [bottom, top], "anchor": f"x{axis}"}
        layout["annotations"].append(plot_heading(plot.heading, left, top))
        for arm in study.arms:
            found = _traces(arm, plot.curve(arm), styles[arm.name], alpha, axis, arm.name not in named)
            named |= {arm.name} if found else set()
            traces += found
    return Figure(heading, traces, layout, height=height + 60, caption=caption, min_width=680)


def plot_heading(text: str, x: float, y: float) -> dict[str, Any]:
    """An annotation above a plot whose upper left corner is at (x, y), in shares of the figure."""
    return {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False} | {
        "xanchor": "left",
        "yanchor": "bottom",
        "font": {"size": 13},
    }


class Bins(NamedTuple):
    """Equal bins of training steps, the same for every arm of a study."""

    edges: np.ndarray

    @staticmethod
    def over(steps: Sequence[np.ndarray]) -> "Bins":
        """Bins from the first to the last of the steps; never narrower than one step."""
        first, last = min(s.min() for s in steps), max(s.max() for s in steps)
        return Bins(np.linspace(first, last + 1, min(NUM_BINS, int(last - first) + 1) + 1))

    @property
    def centres(self) -> np.ndarray:
        """Mean step of each bin."""
        return np.asarray((self.edges[:-1] + self.edges[1:] - 1) / 2)

    def ratio(self, steps: np.ndarray, num: np.ndarray, den: np.ndarray) -> np.ndarray:
        """Sum of numerators / sum of denominators in each bin; NaN where the latter is 0."""
        num_X = np.histogram(steps, self.edges, weights=np.asarray(num, dtype=float))[0]
        den_X = np.histogram(steps, self.edges, weights=np.asarray(den, dtype=float))[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(den_X > 0, num_X / den_X, np.nan))

    def curve(self, values: Sequence[np.ndarray]) -> Curve:
        """One row a seed, in the bins for which every seed that has any value has one."""
        values = [row for row in values if np.isfinite(row).any()]
        if not values:
            return NO_CURVE
        values_SX = np.stack(values)
        shown_X = np.isfinite(values_SX).all(axis=0)
        return Curve(self.centres[shown_X], values_SX[:, shown_X])


def _traces(arm: Arm, curve: Curve, style: Style, alpha: float, axis: str, legend: bool) -> list[dict[str, Any]]:
    steps, values = curve
    if not steps.size:
        return []
    shared = {"type": "scatter", "mode": "lines", "xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": arm.name}
    name = plot_text(arm.label)
    line = {
        "name": name,
        "showlegend": legend,
        "x": steps,
        "y": values.mean(axis=0),
        "line": {"color": style.colour, "dash": style.dash, "width": 1.8},
        "hovertemplate": f"step %{{x}}: %{{y:.4g}}<extra>{name}</extra>",
    }
    if len(values) == 1:
        return [shared | line]
    band = {
        "showlegend": False,
        "hoverinfo": "skip",
        "x": np.concatenate([steps, steps[::-1]]),
        "y": np.concatenate([values.max(axis=0), values.min(axis=0)[::-1]]),
        "fill": "toself",
        "fillcolor": transparent(style.colour, alpha),
        "line": {"width": 0},
    }
    return [shared | band, shared | line]
