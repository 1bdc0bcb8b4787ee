"""The frontier: what a method pays in coverage for what it gains in accuracy, over its whole sweep."""

from dataclasses import dataclass
from typing import Any

from killick.evaluate.estimators import Interval
from killick.report.markup import plot_text
from killick.report.measured import measured
from killick.report.palette import BASE, arm_styles, method_colours, transparent
from killick.report.study import Arm, Study
from killick.report.types import Figure, Panel

PLACES = ("top right", "bottom left", "top left", "bottom right")


@dataclass(frozen=True)
class FrontierPanel:
    """pass@1 against pass@k, one curve a method through its sweep values.

    Attributes:
        k: samples on the vertical axis; the largest k every arm has, when they have fewer.
    """

    title: str = "Frontier: accuracy against coverage"
    order: int = 30
    k: int = 128

    def __call__(self, study: Study) -> Panel | None:
        """One figure a split with at least two arms and more than one sample a problem; None without any."""
        figures = [figure for split in study.splits if (figure := self._figure(study, split)) is not None]
        if not figures:
            return None
        note = (
            "Up and to the right is better. Settings such as β trade the two axes against each other, so methods are "
            "compared as curves, not at one setting: a method is better where its curve lies outside another's. "
            "Crosses are intervals."
        )
        return Panel(self.title, figures, note)

    def _figure(self, study: Study, split: str) -> Figure | None:
        shown = [arm for arm in study.arms if (arm.name, split) in study.coverage]
        common = set.intersection(*(set(study.coverage[arm.name, split].at) for arm in shown)) if shown else set()
        large = [k for k in common if 1 < k <= self.k]
        if len(shown) < 2 or not large:
            return None
        k = max(large)
        hues = method_colours(study.methods)
        traces = []
        for place, method in enumerate(study.methods):
            arms = [arm for arm in shown if arm.method == method and not arm.is_base]
            if arms:
                traces.append(_trace(study, arms, split, k, hues[method], method, PLACES[place % len(PLACES)]))
        if study.base in shown and study.base is not None:
            traces.append(_trace(study, [study.base], split, k, BASE, study.base.label, "top center"))
        layout = {
            "xaxis": {"title": {"text": "pass@1"}, "tickformat": ".2f"},
            "yaxis": {"title": {"text": f"pass@{k}"}, "tickformat": ".2f"},
            "hovermode": "closest",
        }
        heading = f"Split {split}: pass@1 against pass@{k}"
        keys = _swept(study)
        labels = f"Points are labelled with `{keys[0]}`. " if len(keys) == 1 else ""
        return Figure(heading, traces, layout, height=520, caption=labels + measured(study, split))


def _swept(study: Study) -> list[str]:
    """Names of the settings some arm sweeps."""
    return sorted({key for arm in study.arms for key in arm.sweep})


def _point(study: Study, arm: Arm) -> str:
    """Label of a point: the bare value when the whole study sweeps one setting, since labels crowd."""
    if not arm.sweep:
        return arm.label
    return str(next(iter(arm.sweep.values()))) if len(_swept(study)) == 1 else arm.sweep_text


def _sorted(arms: list[Arm]) -> list[Arm]:
    """Arms along their sweep, numerically where the values are numbers."""

    def key(arm: Arm) -> list[tuple[int, float, str]]:
        values = [value for _, value in sorted(arm.sweep.items())]
        return [(0, float(v), "") if isinstance(v, int | float) else (1, 0.0, str(v)) for v in values]

    return sorted(arms, key=key)


def _trace(study: Study, arms: list[Arm], split: str, k: int, hue: str, method: str, place: str) -> dict[str, Any]:
    arms = _sorted(arms)
    styles = arm_styles(study)
    first = [study.coverage[arm.name, split].at[1] for arm in arms]
    large = [study.coverage[arm.name, split].at[k] for arm in arms]

    def bars(points: list[Interval]) -> dict[str, Any]:
        return {
            "type": "data",
            "symmetric": False,
            "array": [p.high - p.mean for p in points],
            "arrayminus": [p.mean - p.low for p in points],
            "color": transparent(hue, 0.45),
            "thickness": 1,
            "width": 0,
        }

    name = plot_text(method)
    return {
        "type": "scatter",
        "mode": "lines+markers+text",
        "name": name,
        "x": [point.mean for point in first],
        "y": [point.mean for point in large],
        "error_x": bars(first),
        "error_y": bars(large),
        "text": [plot_text(_point(study, arm), 32) for arm in arms],
        "textposition": place,
        "textfont": {"size": 11.5, "color": hue},
        "customdata": [plot_text(arm.label) for arm in arms],
        "line": {"color": hue, "width": 1.6},
        "marker": {"color": hue, "symbol": styles[arms[0].name].symbol, "size": 10},
        "hovertemplate": f"%{{customdata}}<br>pass@1 = %{{x:.3f}}<br>pass@{k} = %{{y:.3f}}<extra>{name}</extra>",
    }
