"""Empirical support: problems lost and gained against the base, beside what sampling noise alone would do."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from killick.evaluate.estimators import Interval
from killick.evaluate.support import SupportChange, chance_of_loss, support_change
from killick.report.estimates import mean_over
from killick.report.evaluation import Evaluation
from killick.report.markup import number, plot_text
from killick.report.measured import measured
from killick.report.palette import arm_styles
from killick.report.study import Arm, Study
from killick.report.types import Cell, Figure, Panel, Table, arm_axis

_LOST, _GAINED, _CHANCE = "#d55e00", "#0072b2", "#333333"


@dataclass(frozen=True)
class SupportPanel:
    """Problems solved at all, lost and gained, one figure and one table a split."""

    title: str = "Empirical support"
    order: int = 25

    def __call__(self, study: Study) -> Panel | None:
        """None when no split has two models that were asked the same question."""
        items: list[Figure | Table] = []
        for split in study.splits:
            changes = _changes(study, split)
            if changes:
                items += [_figure(study, split, changes), _table(study, split, changes)]
        if not items:
            return None
        note = (
            "A problem is in a model's empirical support when at least one of its samples is right. Lost: solved by "
            "the base only; gained: by the model only. By chance: the losses (and as many gains) expected if both "
            "were one model, from how the right samples of a problem could be dealt to the two; where a model is far "
            "from the base this errs on the high side. p-values are of single runs, exact and not adjusted: the more "
            "of them are read, the more are small by chance."
        )
        return Panel(self.title, items, note)


@dataclass(frozen=True)
class _Change:
    """One arm against the base: numbers of each run, and per-problem indicators for the intervals."""

    arm: Arm
    runs: list[SupportChange]
    lost: Interval
    gained: Interval
    by_chance: Interval


def _base(study: Study, split: str) -> tuple[Arm, Evaluation] | None:
    """The base, or without one the first model of the split."""
    arms = [study.base] if study.base is not None else study.arms
    found = [(arm, arm.evaluations(split)[0]) for arm in arms if arm.evaluations(split)]
    return found[0] if found else None


def _changes(study: Study, split: str) -> list[_Change]:
    base = _base(study, split)
    if base is None:
        return []
    changes = []
    for arm in study.arms:
        others = [one for one in arm.evaluations(split) if one.question == base[1].question]
        if arm.name != base[0].name and others:
            changes.append(_change(arm, base[1], others))
    return changes


def _change(arm: Arm, base: Evaluation, others: list[Evaluation]) -> _Change:
    num, base_Q = base.num_samples, base.table.num_correct_Q
    counts = [one.table.num_correct_Q for one in others]
    return _Change(
        arm=arm,
        runs=[support_change(base_Q, counts_Q, num) for counts_Q in counts],
        lost=mean_over([((base_Q > 0) & (counts_Q == 0)).astype(float) for counts_Q in counts]),
        gained=mean_over([((base_Q == 0) & (counts_Q > 0)).astype(float) for counts_Q in counts]),
        by_chance=mean_over([chance_of_loss(base_Q, counts_Q, num) for counts_Q in counts]),
    )


def _figure(study: Study, split: str, changes: list[_Change]) -> Figure:
    labels = [plot_text(change.arm.label) for change in changes]
    places = list(range(len(changes)))

    def bar(name: str, colour: str, sign: int, intervals: list[Interval]) -> dict[str, Any]:
        return {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": places,
            "x": [sign * interval.mean for interval in intervals],
            "customdata": [
                [label, interval.mean, interval.low, interval.high]
                for label, interval in zip(labels, intervals, strict=True)
            ],
            "marker": {"color": colour},
            "hovertemplate": (
                "%{customdata[0]}: %{customdata[1]:.3f}<br>interval %{customdata[2]:.3f} to %{customdata[3]:.3f}"
                f"<extra>{name}</extra>"
            ),
        }

    chance = [change.by_chance.mean for change in changes]
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "by chance",
        "y": [*places, *places],
        "x": [*(-share for share in chance), *chance],
        "marker": {"symbol": "line-ns-open", "size": 16, "color": _CHANCE, "line": {"width": 2}},
        "hovertemplate": "%{x:.3f}<extra>by chance</extra>",
    }
    traces = [
        bar("lost", _LOST, -1, [change.lost for change in changes]),
        bar("gained", _GAINED, 1, [change.gained for change in changes]),
        marks,
    ]
    layout = {
        "barmode": "relative",
        "xaxis": {"title": {"text": "share of problems: lost to the left, gained to the right"}, "zeroline": True},
        "yaxis": arm_axis([change.arm for change in changes]),
    }
    height = 130 + 34 * len(changes)
    return Figure(f"Split {split}", traces, layout, height=height, caption=measured(study, split))


def _table(study: Study, split: str, changes: list[_Change]) -> Table:
    styles = arm_styles(study)
    rows: list[list[Cell | str]] = []
    for change in changes:
        total = change.runs[0].num_problems
        solved = float(np.mean([run.num_solved for run in change.runs]))
        rows.append(
            [
                Cell(change.arm.label, colour=styles[change.arm.name].colour),
                Cell(f"{solved:.1f}", f"base {change.runs[0].num_solved_base} of {total}"),
                _share(change.lost, total),
                _share(change.gained, total),
                number(change.by_chance.mean * total, 1),
                _values([run.p_lost for run in change.runs]),
                _values([run.p_solved for run in change.runs]),
                _values([run.p_rates for run in change.runs]),
                str(len(change.runs)),
            ]
        )
    columns = ["model", "problems solved", "lost", "gained", "by chance each", "p of so many losses"]
    columns += ["p lost against gained", "p success rates", "runs"]
    caption = (
        "Numbers are means over runs. p lost against gained: exact McNemar test; p success rates: exact sign-flip "
        f"test; one p-value a run, each against the base. {measured(study, split)}"
    )
    return Table(f"Lost and gained, split {split}", columns, rows, caption=caption)


def _share(interval: Interval, total: int) -> Cell:
    shares = f"{number(interval.mean)} ({number(interval.low)} to {number(interval.high)})"
    return Cell(number(interval.mean * total, 1), shares)


def _values(p_values: list[float]) -> str:
    return ", ".join(f"{p:.3f}" if p >= 0.001 else "<0.001" for p in p_values)
