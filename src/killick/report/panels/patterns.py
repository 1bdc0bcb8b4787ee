"""Reasoning patterns: which kinds of argument the completions show."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from killick.evaluate.estimators import Interval, across_seeds_difference, paired_difference
from killick.patterns.names import PATTERNS
from killick.patterns.rules import classify
from killick.report.estimates import generator, mean_over
from killick.report.evaluation import Evaluation
from killick.report.markup import number, plot_text, signed
from killick.report.measured import measured
from killick.report.palette import arm_styles
from killick.report.study import Arm, Study
from killick.report.types import Cell, Figure, Panel, Table


@dataclass(frozen=True)
class PatternsPanel:
    """Share of completions by pattern, from the rules for English.

    Attributes:
        max_texts: completions of one evaluation that are read: the first samples of every problem, at least one each.
    """

    title: str = "Reasoning patterns"
    order: int = 55
    max_texts: int = 2_000

    def __call__(self, study: Study) -> Panel | None:
        """A figure and a table a split; None when no completion shows a pattern (countdown has no words)."""
        items: list[Figure | Table] = []
        for split in study.splits:
            shares = {arm.name: self._shares(arm, split) for arm in study.arms if arm.evaluations(split)}
            if any(table_QP.any() for tables in shares.values() for table_QP in tables):
                items += [_figure(study, split, shares), _table(study, split, shares)]
        if not items:
            return None
        note = (
            f"Share of completions, right or wrong, with words that point to a pattern; one completion may show "
            f"several. Of each evaluation the first samples of every problem are read, about {self.max_texts:,} in "
            "all. The rules miss arguments that are made without the usual words, so compare models and do not read "
            "the shares as absolute. With many cells, some intervals of a difference exclude 0 by chance."
        )
        return Panel(self.title, items, note)

    def _shares(self, arm: Arm, split: str) -> list[np.ndarray]:
        """Share of each pattern in the completions of each problem, [Q, P], one array a run."""
        return [self._run(evaluation) for evaluation in arm.evaluations(split)]

    def _run(self, evaluation: Evaluation) -> np.ndarray:
        uids = list(evaluation.table.uids)
        count = min(evaluation.num_samples, max(1, self.max_texts // len(uids)))
        texts = evaluation.completions(uids, count)
        found = [[classify(record.text) for record in texts[uid]] for uid in uids]
        return np.array([[np.mean([name in one for one in own]) for name in PATTERNS] for own in found])


def _figure(study: Study, split: str, shares: dict[str, list[np.ndarray]]) -> Figure:
    styles, names = arm_styles(study), list(PATTERNS)
    traces: list[dict[str, Any]] = []
    for arm in study.arms:
        if arm.name in shares:
            label = plot_text(arm.label)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": label,
                    "x": [
                        float(np.mean([table_QP[:, p].mean() for table_QP in shares[arm.name]]))
                        for p in range(len(names))
                    ],
                    "y": list(range(len(names))),
                    "customdata": names,
                    "marker": {"color": styles[arm.name].colour, "symbol": styles[arm.name].symbol, "size": 9},
                    "hovertemplate": f"%{{customdata}}: %{{x:.3f}}<extra>{label}</extra>",
                }
            )
    layout = {
        "xaxis": {"title": {"text": "share of completions"}, "rangemode": "tozero"},
        "yaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "range": [len(names) - 0.4, -0.6],
            "automargin": True,
        },
    }
    return Figure(
        f"Split {split}", traces, layout, height=max(420, 150 + 27 * len(traces)), caption=measured(study, split)
    )


def _table(study: Study, split: str, shares: dict[str, list[np.ndarray]]) -> Table:
    styles = arm_styles(study)
    base = shares.get(study.base.name) if study.base is not None else None
    rows: list[list[Cell | str]] = []
    for arm in study.arms:
        if arm.name in shares:
            tables = shares[arm.name]
            against = None if base is None or arm.is_base else base[0]
            cells = [_cell(tables, against, p) for p in range(len(PATTERNS))]
            rows.append([Cell(arm.label, colour=styles[arm.name].colour), *cells])
    caption = "Small print: interval, then the difference from the base, paired by problem. Marked: it excludes 0."
    return Table(f"Shares, split {split}", ["model", *PATTERNS], rows, caption=f"{caption} {measured(study, split)}")


def _cell(tables: list[np.ndarray], base_QP: np.ndarray | None, p: int) -> Cell:
    share = mean_over([table_QP[:, p] for table_QP in tables])
    detail = f"{number(share.low)} to {number(share.high)}"
    if base_QP is None or any(table_QP.shape != base_QP.shape for table_QP in tables):
        return Cell(number(share.mean), detail)
    gap = _difference(base_QP[:, p], [table_QP[:, p] for table_QP in tables])
    clear = gap.low > 0 or gap.high < 0
    return Cell(
        number(share.mean), f"{detail}; {signed(gap.mean)} ({signed(gap.low)} to {signed(gap.high)})", mark=clear
    )


def _difference(base_Q: np.ndarray, values: list[np.ndarray]) -> Interval:
    if len(values) == 1:
        return paired_difference(base_Q[:, None], values[0][:, None], generator())[0]
    return across_seeds_difference(np.stack([base_Q] * len(values)), np.stack(values), generator())
