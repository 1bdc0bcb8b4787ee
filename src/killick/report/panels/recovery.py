"""Recovery: what became of the prompts that failed, repaired or not."""

from dataclasses import dataclass

import numpy as np

from killick.evaluate.estimators import Interval
from killick.report.journal import GroupTable
from killick.report.markup import number
from killick.report.multiples import Bins, Curve, Multiple, multiples
from killick.report.palette import arm_styles
from killick.report.ratios import HOW, Ratio, ratio_interval
from killick.report.repairs import failed_ratio, history, recovery
from killick.report.study import Arm, Study
from killick.report.types import Cell, Panel, Table


@dataclass(frozen=True)
class RecoveryPanel:
    """Failed groups and recovered prompts of every arm whose groups were recorded, with or without a repair rule."""

    title: str = "Recovery of failed prompts"
    order: int = 46

    def __call__(self, study: Study) -> Panel | None:
        """Two tables and curves; None when no run recorded its groups."""
        shown = [arm for arm in study.arms if _tables(arm)]
        if not shown:
            return None
        bins = Bins.over([table.step_M for arm in shown for table in _tables(arm)])
        plots = [
            Multiple("groups with no right completion", lambda arm: _failed(arm, bins)),
            Multiple("once failed, seen again: recovered so far", lambda arm: _recovered(arm, bins)),
        ]
        caption = (
            "Left: share in equal bins of steps. Right: at each step, of the prompts that had failed and been drawn "
            "again by then, the share with a right completion at a later step than the failure. Bands run from the "
            "lowest to the highest seed."
        )
        note = (
            "A group fails when none of its completions is right. A prompt counts as failed from its first failed "
            "group; it is seen again when it is drawn at a later step, and recovered when at least one completion of "
            "any such later group is right. A second group at the step of the failure is not a later one. Chance alone "
            "recovers prompts, the more the more often they are drawn again: compare arms with equal numbers of later "
            "visits, and with GRPO. An arm that fails less keeps the harder prompts, so a lower share recovered does "
            "not make it worse; read it beside the share of failed groups."
        )
        return Panel(
            self.title,
            [_arms(study, shown), _seeds(study, shown), multiples(study, "Over training", plots, caption)],
            note,
        )


def _tables(arm: Arm) -> list[GroupTable]:
    return [run.groups for run in arm.runs if run.groups is not None]


def _arms(study: Study, shown: list[Arm]) -> Table:
    styles = arm_styles(study)
    rows: list[list[Cell | str]] = []
    for arm in shown:
        tables = _tables(arm)
        found = [history(table) for table in tables]
        ratios = [[failed_ratio(table, third) for table in tables] for third in (0, 2)]
        ratios += [[h.recovered() for h in found]]
        ratios += [[Ratio(h.uids, h.visits_Q, np.isfinite(h.again_Q)) for h in found]]
        cells = [_interval(ratio_interval(ratio)) for ratio in ratios]
        rows.append([Cell(arm.label, colour=styles[arm.name].colour), *cells, str(len(tables))])
    columns = ["model", "failed groups, first third", "failed groups, last third", "recovered of those seen again"]
    columns += ["later visits per prompt seen again", "runs"]
    caption = f"Thirds of the steps from the first to the last recorded group. Means over seeds; {HOW}."
    return Table("Failed and recovered", columns, rows, caption=caption)


def _seeds(study: Study, shown: list[Arm]) -> Table:
    styles = arm_styles(study)
    rows: list[list[Cell | str]] = []
    for arm in shown:
        for run in arm.runs:
            found = recovery(run)
            if found is None:
                continue
            counts = ("num_groups", "num_prompts", "num_failed_prompts", "num_seen_again", "num_recovered")
            shares = ("failed_first_third_frac", "failed_last_third_frac", "recovered_frac")
            seed = "–" if run.seed is None else str(run.seed)
            cells = [*(f"{found[name]:,}" for name in counts), *(number(found[name]) for name in shares)]
            rows.append([Cell(arm.label, colour=styles[arm.name].colour), seed, *cells])
    columns = [
        "model",
        "seed",
        "groups",
        "prompts",
        "failed at least once",
        "of these seen again",
        "of these recovered",
    ]
    columns += ["failed groups, first third", "last third", "recovered of those seen again"]
    return Table("Every seed", columns, rows, folded=True)


def _interval(interval: Interval | None) -> Cell:
    if interval is None:
        return Cell("–")
    return Cell(number(interval.mean), f"{number(interval.low)} to {number(interval.high)}")


def _failed(arm: Arm, bins: Bins) -> Curve:
    return bins.curve([bins.ratio(t.step_M, t.failed_M, np.ones(len(t.uids))) for t in _tables(arm)])


def _recovered(arm: Arm, bins: Bins) -> Curve:
    """Shares at the last step of each bin, so that the curve ends at the number of the table."""
    rows = []
    for table in _tables(arm):
        ratios = [history(table).recovered(until) for until in bins.edges[1:] - 1]
        rows.append(np.array([r.num.sum() / r.den.sum() if r.den.any() else np.nan for r in ratios]))
    return bins.curve(rows)
