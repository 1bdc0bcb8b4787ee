"""Solution modes: in how many ways problems are solved, and which ways died out."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from killick.evaluate.estimators import Interval
from killick.evaluate.records import RecordTable
from killick.report.estimates import mean_over
from killick.report.markup import number, plot_text
from killick.report.measured import measured
from killick.report.palette import arm_styles
from killick.report.study import Arm, Study
from killick.report.types import Cell, Figure, Panel, Table, arm_axis

# Sequential in lightness and alternating in hue, so that neighbours in a stack differ without colour vision too.
STACK = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#aa4499", "#44aa99", "#882255")
OTHER = "#9a9a9a"


@dataclass(frozen=True)
class ModesPanel:
    """Shares of mode labels among right completions, base against arms.

    Attributes:
        labels: mode labels shown by name; the rest is stacked as "other".
        rare_mark: a label containing this sign counts as the rare mode.
        rare_name: what readers call it.
    """

    title: str = "Solution modes"
    order: int = 50
    labels: int = 10
    rare_mark: str = "/"
    rare_name: str = "with division"

    def __call__(self, study: Study) -> Panel | None:
        """A figure and a table a split that has modes; None when no record names one."""
        items: list[Figure | Table] = []
        for split in study.splits:
            shown = [arm for arm in study.arms if pooled(arm, split)]
            if shown:
                items += [self._figure(study, shown, split), self._table(study, shown, split)]
        if not items:
            return None
        note = (
            "The task labels the way a right completion solves its problem. Shares are of right completions, so a "
            "method that solves more easy problems also shifts them. Distinct modes per problem count different labels "
            "among the samples of one problem, averaged over all problems (unsolved ones count 0) and over seeds; "
            "they grow with the number of samples."
        )
        return Panel(self.title, items, note)

    def _figure(self, study: Study, shown: list[Arm], split: str) -> Figure:
        counts = {arm.name: pooled(arm, split) for arm in shown}
        # Ranked by mean share over arms, not by count: an arm with many right completions must not choose the labels.
        share = {name: {mode: n / c.total() for mode, n in c.items()} for name, c in counts.items()}
        modes = sorted({mode for c in counts.values() for mode in c})
        modes.sort(key=lambda mode: -sum(s.get(mode, 0.0) for s in share.values()))
        named, rest = modes[: self.labels], modes[self.labels :]
        stacks = [(plot_text(mode, 32), STACK[i % len(STACK)], [mode]) for i, mode in enumerate(named)]
        if rest:
            stacks.append((f"other ({len(rest)} modes)", OTHER, rest))
        traces = [
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": list(range(len(shown))),
                "customdata": [plot_text(arm.label) for arm in shown],
                "x": [sum(share[arm.name].get(mode, 0.0) for mode in group) for arm in shown],
                "marker": {"color": colour},
                "hovertemplate": f"%{{customdata}}: %{{x:.3f}}<extra>{name}</extra>",
            }
            for name, colour, group in stacks
        ]
        layout = {
            "barmode": "stack",
            "xaxis": {"title": {"text": "share of right completions"}, "range": [0, 1]},
            "yaxis": arm_axis(shown),
            "legend": {"traceorder": "normal"},
        }
        height = max(110 + 34 * len(shown), 130 + 20 * len(stacks))
        return Figure(f"Split {split}", traces, layout, height=height, caption=measured(study, split))

    def _table(self, study: Study, shown: list[Arm], split: str) -> Table:
        styles = arm_styles(study)
        rare = any(self.rare_mark in mode for arm in shown for mode in pooled(arm, split))
        rows: list[list[Cell | str]] = []
        for arm in shown:
            counts = pooled(arm, split)
            tables = [evaluation.table for evaluation in arm.evaluations(split)]
            row: list[Cell | str] = [
                Cell(arm.label, colour=styles[arm.name].colour),
                f"{counts.total():,}",
                _interval(mean_over([distinct(table) for table in tables])),
                str(len(counts)),
            ]
            if rare:
                marked = sum(count for mode, count in counts.items() if self.rare_mark in mode)
                row.append(Cell(number(marked / counts.total(), 4), f"{marked:,} of {counts.total():,}"))
                row.append(_interval(mean_over([with_mark(table, self.rare_mark) for table in tables])))
            rows.append(row)
        columns = ["model", "right completions", "distinct modes per problem", "modes in all"]
        columns += [f"right ones {self.rare_name}", f"problems solved {self.rare_name}"] if rare else []
        return Table(f"Mode counts, split {split}", columns, rows, caption=measured(study, split))


def _interval(interval: Interval) -> Cell:
    return Cell(number(interval.mean, 2), f"{number(interval.low, 2)} to {number(interval.high, 2)}")


def pooled(arm: Arm, split: str) -> Counter[str]:
    """Mode label -> right completions of the arm, over problems and seeds."""
    total: Counter[str] = Counter()
    for evaluation in arm.evaluations(split):
        table = evaluation.table
        counts = np.bincount(table.mode_QN[table.mode_QN >= 0], minlength=len(table.modes))
        total.update(dict(zip(table.modes, counts.tolist(), strict=True)))
    return total


def distinct(table: RecordTable) -> np.ndarray:
    """Different mode labels among the samples of each problem, [Q]; 0 where none is right."""
    seen_QM = np.zeros((len(table.uids), len(table.modes) + 1), dtype=bool)
    seen_QM[np.arange(len(table.uids))[:, None], table.mode_QN] = True  # -1, no mode, lands in the extra last column
    return seen_QM[:, :-1].sum(axis=1).astype(float)


def with_mark(table: RecordTable, mark: str) -> np.ndarray:
    """1.0 for every problem with at least one sample whose mode label contains the mark, [Q]."""
    marked = np.array([mark in mode for mode in table.modes] + [False])
    found: np.ndarray = marked[table.mode_QN].any(axis=1).astype(float)
    return found
