"""The main table, and what differs from the base and from the baseline."""

from dataclasses import dataclass

from killick.evaluate.estimators import Interval
from killick.report.estimates import difference, failed_group_frac, mean_tokens, wall_s
from killick.report.markup import number, signed
from killick.report.measured import measured
from killick.report.palette import arm_styles
from killick.report.study import Arm, Study
from killick.report.summary import LAST_STEPS, references, shown_ks
from killick.report.types import Cell, Panel, Table


@dataclass(frozen=True)
class SummaryPanel:
    """One table a split, one row a model."""

    title: str = "Summary"
    order: int = 10

    def __call__(self, study: Study) -> Panel | None:
        """Tables; None without evaluations."""
        if not study.splits:
            return None
        tables = []
        for split in study.splits:
            tables.append(_main(study, split))
            tables += [table for other in references(study) if (table := _against(study, other, split)) is not None]
            tables += [table for table in [_counterparts(study, split)] if table is not None]
        note = (
            "Small print under a number is its interval. Failed groups are training groups without a right completion: "
            f"the mean over the run, then over its last {LAST_STEPS} logged steps. In tables of differences, marked "
            "cells have an interval that excludes 0; with many cells, some do so by chance."
        )
        return Panel(self.title, tables, note)


def _shown(study: Study, split: str) -> list[Arm]:
    return [arm for arm in study.arms if (arm.name, split) in study.coverage]


def _main(study: Study, split: str) -> Table:
    ks, styles = shown_ks(study), arm_styles(study)
    rows: list[list[Cell | str]] = []
    for arm in _shown(study, split):
        found = study.coverage[arm.name, split]
        tokens = mean_tokens(arm, split)
        overall, last = failed_group_frac(arm), failed_group_frac(arm, LAST_STEPS)
        rows.append(
            [
                Cell(arm.label, colour=styles[arm.name].colour),
                *(_interval(found.at.get(k)) for k in ks),
                Cell(number(tokens.mean, 1), f"{number(tokens.low, 1)} to {number(tokens.high, 1)}"),
                "–" if overall is None else f"{number(overall, 2)} → {number(last, 2)}",
                number(wall_s(arm), 0),
                str(found.num_runs),
            ]
        )
    columns = ["model", *(f"pass@{k}" for k in ks), "length (tokens)", "failed groups", "training (s)", "runs"]
    return Table(f"Split {split}", columns, rows, caption=measured(study, split))


def _against(study: Study, other: Arm, split: str) -> Table | None:
    """pass@k of every trained arm minus that of `other`."""
    pairs = [(arm, other) for arm in _shown(study, split) if not arm.is_base and arm.name != other.name]
    caption = "Paired by problem and, between trained models, by training seed."
    return _differences(study, split, pairs, f"Split {split}: difference from {other.label}", caption)


def _counterparts(study: Study, split: str) -> Table | None:
    """pass@k of every arm that names a counterpart, minus that of the counterpart."""
    pairs = [(arm, study.arm(arm.against)) for arm in _shown(study, split) if arm.against is not None]
    caption = "Two arms that differ in one thing, paired by problem and training seed."
    return _differences(study, split, pairs, f"Split {split}: difference from the counterpart", caption)


def _differences(study: Study, split: str, pairs: list[tuple[Arm, Arm]], title: str, caption: str) -> Table | None:
    ks, styles = shown_ks(study), arm_styles(study)
    rows: list[list[Cell | str]] = []
    for arm, other in pairs:
        found = difference(arm, other, split, ks)
        if found is not None:
            name = Cell(arm.label, f"minus {other.label}", colour=styles[arm.name].colour)
            rows.append([name, *(_difference(found.at.get(k)) for k in ks), str(found.num_pairs)])
    columns = ["model", *(f"Δ pass@{k}" for k in ks), "pairs"]
    return Table(title, columns, rows, caption=f"{caption} {measured(study, split)}") if rows else None


def _interval(interval: Interval | None) -> Cell:
    if interval is None:
        return Cell("–")
    return Cell(number(interval.mean), f"{number(interval.low)} to {number(interval.high)}")


def _difference(interval: Interval | None) -> Cell:
    if interval is None:
        return Cell("–")
    clear = interval.low > 0 or interval.high < 0
    return Cell(signed(interval.mean), f"{signed(interval.low)} to {signed(interval.high)}", mark=clear)
