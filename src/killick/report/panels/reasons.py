"""Why completions were judged wrong: shares of the verifier's reasons."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from killick.evaluate.records import REASONS
from killick.report.markup import plot_text
from killick.report.measured import measured
from killick.report.palette import arm_styles
from killick.report.study import Arm, Study
from killick.report.types import Cell, Figure, Panel, Table, arm_axis

# Right is calm, format trouble warm, trouble of the verifier itself dark.
COLOURS = {
    "right": "#009e73",
    "wrong": "#56b4e9",
    "no_answer": "#e69f00",
    "unparsable": "#d55e00",
    "timeout": "#aa4499",
    "error": "#7a1f3d",
}


@dataclass(frozen=True)
class ReasonsPanel:
    """Stacked bars of verdict reasons, with the counts as a table."""

    title: str = "Verdicts"
    order: int = 60

    def __call__(self, study: Study) -> Panel | None:
        """A figure and a table a split; None without evaluations."""
        if not study.splits:
            return None
        items: list[Figure | Table] = []
        for split in study.splits:
            items += self._split(study, split)
        note = (
            "`wrong` is an answer that was read and does not match; `no_answer` and `unparsable` are format failures; "
            "`timeout` and `error` are the verifier's own, and should be zero. Truncated completions ran into the "
            "token limit, whatever their verdict."
        )
        return Panel(self.title, items, note)

    def _split(self, study: Study, split: str) -> list[Figure | Table]:
        shown = [arm for arm in study.arms if arm.evaluations(split)]
        counts = {arm.name: _counts(arm, split) for arm in shown}
        truncated = {arm.name: sum(int(e.table.truncated_QN.sum()) for e in arm.evaluations(split)) for arm in shown}
        reasons = [reason for reason in REASONS if any(c[reason] for c in counts.values())]
        traces = [
            {
                "type": "bar",
                "orientation": "h",
                "name": plot_text(reason),
                "y": list(range(len(shown))),
                "customdata": [plot_text(arm.label) for arm in shown],
                "x": [counts[arm.name][reason] / counts[arm.name].total() for arm in shown],
                "marker": {"color": COLOURS.get(reason, "#8a8a8a")},
                "hovertemplate": f"%{{customdata}}: %{{x:.3f}}<extra>{plot_text(reason)}</extra>",
            }
            for reason in reasons
        ]
        layout = {
            "barmode": "stack",
            "xaxis": {"title": {"text": "share of completions"}, "range": [0, 1]},
            "yaxis": arm_axis(shown),
            "legend": {"traceorder": "normal"},
        }
        styles = arm_styles(study)
        rows: list[list[Cell | str]] = [
            [
                Cell(arm.label, colour=styles[arm.name].colour),
                *(_count(counts[arm.name][reason], reason) for reason in reasons),
                f"{truncated[arm.name]:,}",
                f"{counts[arm.name].total():,}",
            ]
            for arm in shown
        ]
        columns = ["model", *reasons, "truncated", "completions"]
        return [
            Figure(f"Split {split}", traces, layout, height=110 + 34 * len(shown), caption=measured(study, split)),
            Table(f"Counts, split {split}", columns, rows, folded=True),
        ]


def _counts(arm: Arm, split: str) -> Counter[str]:
    """Verdict reason -> completions, over problems and seeds."""
    codes = np.concatenate([evaluation.table.reason_QN.ravel() for evaluation in arm.evaluations(split)])
    return Counter(dict(zip(REASONS, np.bincount(codes, minlength=len(REASONS)).tolist(), strict=True)))


def _count(count: int, reason: str) -> Cell:
    return Cell(f"{count:,}", mark=count > 0 and reason in ("timeout", "error"))
