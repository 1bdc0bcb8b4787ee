"""Solution modes: in how many ways problems are solved, and which ways died out."""

from collections import Counter
from dataclasses import dataclass

from killick.report.markup import number, plot_text
from killick.report.measured import measured
from killick.report.palette import arm_styles
from killick.report.study import Arm, Study
from killick.report.types import Cell, Figure, Panel, Table

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
            "The task labels the way a right completion solves its problem. Shares are of right completions, so a method "
            "that solves more easy problems also shifts them; distinct modes per problem count different labels among "
            "the samples of one problem, averaged over all problems (unsolved ones count 0) and over seeds."
        )
        return Panel(self.title, items, note)  # type: ignore[arg-type]

    def _figure(self, study: Study, shown: list[Arm], split: str) -> Figure:
        counts = {arm.name: pooled(arm, split) for arm in shown}
        # Ranked by mean share over arms, not by count: an arm with many right completions must not choose the labels.
        share = {name: {mode: n / c.total() for mode, n in c.items()} for name, c in counts.items()}
        modes = sorted({mode for c in counts.values() for mode in c})
        modes.sort(key=lambda mode: -sum(s.get(mode, 0.0) for s in share.values()))
        named, rest = modes[: self.labels], modes[self.labels :]
        labels = [plot_text(arm.label) for arm in shown]
        stacks = [(plot_text(mode, 32), STACK[i % len(STACK)], [mode]) for i, mode in enumerate(named)]
        if rest:
            stacks.append((f"other ({len(rest)} modes)", OTHER, rest))
        traces = [
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": labels,
                "x": [sum(share[arm.name].get(mode, 0.0) for mode in group) for arm in shown],
                "marker": {"color": colour},
                "hovertemplate": f"%{{y}}: %{{x:.3f}}<extra>{name}</extra>",
            }
            for name, colour, group in stacks
        ]
        layout = {
            "barmode": "stack",
            "xaxis": {"title": {"text": "share of right completions"}, "range": [0, 1]},
            "yaxis": {"autorange": "reversed", "automargin": True},
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
            grids = [evaluation.grid for evaluation in arm.evaluations(split)]
            kinds = [len(modes) for grid in grids for modes in grid.modes_Q]
            solved = [kind for kind in kinds if kind]
            row: list[Cell | str] = [
                Cell(arm.label, colour=styles[arm.name].colour),
                f"{counts.total():,}",
                number(sum(kinds) / len(kinds), 2),
                number(sum(solved) / len(solved), 2),
                str(len(counts)),
            ]
            if rare:
                marked = sum(count for mode, count in counts.items() if self.rare_mark in mode)
                row.append(Cell(number(marked / counts.total(), 4), f"{marked:,} of {counts.total():,}"))
            rows.append(row)
        columns = ["model", "right completions", "distinct modes per problem", "per solved problem", "modes in all"]
        return Table(
            f"Mode counts, split {split}",
            columns + ([f"rare mode: {self.rare_name}"] if rare else []),
            rows,
            caption=measured(study, split),
        )


def pooled(arm: Arm, split: str) -> Counter[str]:
    """Mode label -> right completions of the arm, over problems and seeds."""
    grids = [evaluation.grid for evaluation in arm.evaluations(split)]
    return sum((modes for grid in grids for modes in grid.modes_Q), Counter())
