"""Training curves: what each arm did step by step, as small multiples with one legend."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from killick.report.markup import plot_text
from killick.report.palette import Style, arm_styles, band_alpha, transparent
from killick.report.study import Arm, Study
from killick.report.types import Figure, Panel

# Logged name -> heading with unit. TRL's names stay as they are; ours are <owner>/<quantity>.
CURVES = {
    "reward": "reward",
    "kl": "KL to the anchor (nats/token)",
    "sage/kl": "KL to the shaped anchor (nats/token)",
    "entropy": "entropy (nats/token)",
    "sage/q_mean": "guide factor q, mean",
    "sage/q_active_frac": "share of tokens with q ≠ 1",
    "group/all_wrong_frac": "groups with no right completion",
    "group/all_right_frac": "groups with no wrong completion",
    "completions/mean_length": "completion length (tokens)",
    "step_time": "time per step (s)",
}
COLUMNS = 2
ROW_PX = 250


@dataclass(frozen=True)
class TrainingPanel:
    """Mean over seeds with the range of the seeds as a band.

    Attributes:
        window: logged steps in the centred running mean; 1 shows the raw log.
    """

    title: str = "Training"
    order: int = 40
    window: int = 5

    def __call__(self, study: Study) -> Panel | None:
        """One figure of small multiples; None when nothing was logged."""
        keys = [key for key in CURVES if any(run.series(key)[0] for arm in study.arms for run in arm.runs)]
        if not keys:
            return None
        figure = Figure(
            "Logged numbers", *_multiples(study, keys, self.window), height=_rows(keys) * ROW_PX + 60, min_width=680
        )
        seeds = len(study.seeds)
        smoothing = f"a centred running mean over {self.window} logged steps" if self.window > 1 else "the raw log"
        note = (
            f"Curves are {smoothing}, averaged over the seeds of an arm"
            + (f" ({seeds} seeds; bands run from the lowest to the highest seed)." if seeds > 1 else " (one seed).")
            + " Rewards are of the training problems under the sampling settings of training, so they are not pass@1."
        )
        return Panel(self.title, [figure], note)


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Centred running mean over `window` values, over fewer at both ends; window 1 changes nothing."""
    half = window // 2
    total = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(values.size)
    low, high = np.maximum(places - half, 0), np.minimum(places + half + 1, values.size)
    return (total[high] - total[low]) / (high - low)


def over_seeds(arm: Arm, key: str, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps every seed has logged, [S], and the smoothed values of each seed there, [seeds, S]."""
    logs = [dict(zip(*run.series(key), strict=True)) for run in arm.runs]
    logs = [{step: value for step, value in log.items() if np.isfinite(value)} for log in logs]
    logs = [log for log in logs if log]
    if not logs:
        return np.empty(0), np.empty((0, 0))
    steps = sorted(set.intersection(*(set(log) for log in logs)))
    return np.array(steps), np.array([smooth(np.array([log[s] for s in steps]), window) for log in logs])


def _rows(keys: list[str]) -> int:
    return -(-len(keys) // COLUMNS)


def _multiples(study: Study, keys: list[str], window: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    styles, alpha = arm_styles(study), band_alpha(len(study.arms))
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"hovermode": "closest", "annotations": [], "legend": {"orientation": "h", "y": 1.0}}
    named: set[str] = set()
    rows = _rows(keys)
    height = rows * ROW_PX
    layout["legend"] |= {"yanchor": "bottom", "y": 1 + 34 / height, "x": 0}
    for place, key in enumerate(keys):
        row, column = divmod(place, COLUMNS)
        axis = "" if place == 0 else str(place + 1)
        left = column * (1 / COLUMNS) + 0.035 * (column > 0)
        right = (column + 1) / COLUMNS - 0.035 * (column < COLUMNS - 1)
        top, bottom = 1 - (row + 0.09) / rows, 1 - (row + 0.84) / rows
        layout[f"xaxis{axis}"] = {"domain": [left, right], "anchor": f"y{axis}"}
        layout[f"yaxis{axis}"] = {"domain": [bottom, top], "anchor": f"x{axis}"}
        layout["annotations"].append(
            {"text": CURVES[key], "x": left, "y": top, "xref": "paper", "yref": "paper", "showarrow": False}
            | {"xanchor": "left", "yanchor": "bottom", "font": {"size": 13}}
        )
        for arm in study.arms:
            found = _curves(arm, key, window, styles[arm.name], alpha, axis, arm.name not in named)
            named |= {arm.name} if found else set()
            traces += found
    return traces, layout


def _curves(
    arm: Arm, key: str, window: int, style: Style, alpha: float, axis: str, legend: bool
) -> list[dict[str, Any]]:
    steps, values = over_seeds(arm, key, window)
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
