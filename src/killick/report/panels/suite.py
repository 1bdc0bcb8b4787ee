"""The table of a suite: benchmarks in and out of distribution, each group with its average."""

from dataclasses import dataclass

from killick.evaluate.suite_table import suite_caption, suite_lines, suite_title
from killick.report.markup import number
from killick.report.study import Study
from killick.report.types import Cell, Panel, Table


@dataclass(frozen=True)
class SuitePanel:
    """One row a benchmark or average, one column a k."""

    title: str = "Suite"
    order: int = 5

    def __call__(self, study: Study) -> Panel | None:
        """The table; None unless the folder is that of a suite."""
        if study.suite is None:
            return None
        rows: list[list[Cell | str]] = []
        for line in suite_lines(study.suite):
            is_average = line.num_problems is None
            cells = [Cell(number(at.mean), f"{number(at.low)} to {number(at.high)}", is_average) for at in line.pass_at]
            rows.append([line.label, "" if is_average else str(line.num_problems), *cells])
        headings = ["benchmark", "problems", *(f"pass@{k}" for k in study.suite["ks"])]
        table = Table(suite_title(study.suite), headings, rows, caption=suite_caption(study.suite))
        return Panel(self.title, [table], "Averages are marked.")
