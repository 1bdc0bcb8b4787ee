"""Coverage curves: pass@k against k, one curve an arm."""

from dataclasses import dataclass
from typing import Any

from killick.report.estimates import Coverage
from killick.report.markup import plot_text
from killick.report.measured import measured
from killick.report.palette import Style, arm_styles, band_alpha, transparent
from killick.report.study import Arm, Study
from killick.report.types import Figure, Panel


@dataclass(frozen=True)
class CoveragePanel:
    """pass@k with bands, one figure a split."""

    title: str = "Coverage: pass@k"
    order: int = 20

    def __call__(self, study: Study) -> Panel | None:
        """One figure a split; None without evaluations."""
        if not study.splits:
            return None
        note = (
            "pass@k is the chance that at least one of k samples is right, estimated without bias from all samples of "
            "a problem and averaged over problems. A method that sharpens without discovering rises on the left and "
            "falls on the right. Click a name in the legend to hide it, double-click to see it alone."
        )
        return Panel(self.title, [self._figure(study, split) for split in study.splits], note)

    def _figure(self, study: Study, split: str) -> Figure:
        styles = arm_styles(study)
        shown = [arm for arm in study.arms if (arm.name, split) in study.coverage]
        alpha = band_alpha(len(shown))
        # All bands first: no curve may disappear under a neighbour's band.
        traces = [_band(study.coverage[arm.name, split], arm, styles[arm.name], alpha) for arm in shown]
        traces += [_curve(study.coverage[arm.name, split], arm, styles[arm.name]) for arm in shown]
        ks = sorted({k for arm in shown for k in study.coverage[arm.name, split].at})
        layout = {
            "xaxis": {
                "type": "log",
                "title": {"text": "k (samples, log scale)"},
                "tickmode": "array",
                "tickvals": ks,
                "ticktext": [str(k) for k in ks],
            },
            "yaxis": {"title": {"text": "pass@k"}, "tickformat": ".2f"},
            "hovermode": "closest",
        }
        return Figure(
            f"Split {split}", traces, layout, height=max(460, 150 + 27 * len(shown)), caption=measured(study, split)
        )


def _curve(found: Coverage, arm: Arm, style: Style) -> dict[str, Any]:
    at = found.at
    ks = list(at)
    name = plot_text(arm.label)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "legendgroup": arm.name,
        "x": ks,
        "y": [at[k].mean for k in ks],
        "customdata": [[at[k].low, at[k].high] for k in ks],
        "line": {"color": style.colour, "dash": style.dash, "width": 2.2},
        "marker": {"symbol": style.symbol, "size": 7},
        "hovertemplate": (
            "pass@%{x} = %{y:.3f}<br>interval %{customdata[0]:.3f} to %{customdata[1]:.3f}"
            f"<extra>{name}</extra>"
        ),
    }


def _band(found: Coverage, arm: Arm, style: Style, alpha: float) -> dict[str, Any]:
    at, ks = found.at, list(found.at)
    return {
        "type": "scatter",
        "mode": "lines",
        "legendgroup": arm.name,
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [*ks, *reversed(ks)],
        "y": [*(at[k].low for k in ks), *(at[k].high for k in reversed(ks))],
        "fill": "toself",
        "fillcolor": transparent(style.colour, alpha),
        "line": {"width": 0},
    }
