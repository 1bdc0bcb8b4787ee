"""The table of a suite: benchmarks in and out of distribution, each group with its average."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from killick.errors import ConfigError
from killick.evaluate.estimators import Interval
from killick.evaluate.suite_table import (
    PaperRow,
    paper_heading,
    paper_rows,
    suite_caption,
    suite_lines,
    suite_title,
)
from killick.report.markup import number
from killick.report.palette import arm_styles
from killick.report.study import Study
from killick.report.types import Cell, Panel, Table


@dataclass(frozen=True)
class SuitePanel:
    """Of one model a row a benchmark or average, of several a row a model; in the table of each other, a column."""

    title: str = "Suite"
    order: int = 5

    def __call__(self, study: Study) -> Panel | None:
        """The table; None unless a folder is that of a suite."""
        if not study.suites:
            return None
        tables = [_one(report) for report in study.suites.values()]
        note = "Averages are marked."
        if len(tables) > 1:
            try:
                tables = [_several(study, paper_rows(list(study.suites.values())))]
            except ConfigError:
                note += " The suites differ in title, benchmarks, number of problems or sampler: one table each."
        return Panel(self.title, tables, note)


def _one(report: Mapping[str, Any]) -> Table:
    rows: list[list[Cell | str]] = []
    for line in suite_lines(report):
        is_average = line.num_problems is None
        cells = [_cell(at, is_average) for at in line.pass_at]
        rows.append([line.label, "" if is_average else str(line.num_problems), *cells])
    headings = ["benchmark", "problems", *(f"pass@{k}" for k in report["ks"])]
    return Table(suite_title(report), headings, rows, caption=suite_caption(report))


def _several(study: Study, found: list[PaperRow]) -> Table:
    """As papers print it: models below each other, benchmarks beside each other."""
    models, first = list(study.suites), next(iter(study.suites.values()))
    styles, lines = arm_styles(study), suite_lines(first)
    rows: list[list[Cell | str]] = []
    for row in found:
        name = Cell(models[row.model], f"pass@{row.k}", colour=styles[models[row.model]].colour)
        cells = [_cell(at, line.num_problems is None) for at, line in zip(row.pass_at, lines, strict=True)]
        rows.append([name, *cells])
    headings = ["model", *(paper_heading(line) for line in lines)]
    return Table(str(first["title"]), headings, rows, caption=suite_caption(first))


def _cell(at: Interval, is_average: bool) -> Cell:
    return Cell(number(at.mean), f"{number(at.low)} to {number(at.high)}", is_average)
