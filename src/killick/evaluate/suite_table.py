"""The report of a suite (`suites.suite_report`, `suite.json`) as a table: in and out of distribution, with averages."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from killick.errors import RecordError
from killick.evaluate.estimators import Interval
from killick.evaluate.suites import GROUPS
from killick.provenance import read_json

if TYPE_CHECKING:
    from rich.table import Table

REPORT = "suite.json"


class Line(NamedTuple):
    """One line of the table: a benchmark, or the average of a group.

    Attributes:
        label: of the benchmark, or which average, and how many sets it lacks.
        num_problems: None for an average.
        pass_at: one interval a column, in the order of the report's `ks`.
    """

    label: str
    num_problems: int | None
    pass_at: list[Interval]


def suite_lines(report: Mapping[str, Any]) -> list[Line]:
    """What the table shows: the benchmarks of each group, then their average."""

    def intervals(entry: Mapping[str, Any]) -> list[Interval]:
        return [Interval(**{name: float(at) for name, at in entry["pass_at"][str(k)].items()}) for k in report["ks"]]

    lines = []
    for group, name in GROUPS.items():
        shown = [one for one in report["benchmarks"] if one["group"] == group]
        lines += [Line(str(one["label"]), int(one["num_problems"]), intervals(one)) for one in shown]
        average = report["averages"].get(group)
        if average:
            whole = average["num_benchmarks"] == average["of"]
            share = "" if whole else f", only {average['num_benchmarks']} of {average['of']} sets"
            lines.append(Line(f"average {name}{share}", None, intervals(average)))
    return lines


def suite_title(report: Mapping[str, Any]) -> str:
    """The suite and the model; of a path its last part: the rest tells where somebody keeps models."""
    name = Path(report["model"]["name"])
    return f"{report['title']}: {name.name if name.is_absolute() else name}"


def suite_caption(report: Mapping[str, Any]) -> str:
    """The sampler, and what the table leaves out."""
    sampling = report["sampling"]
    pools: dict[str, list[str]] = {}
    for one in report["benchmarks"]:
        if one["pool"]:
            pools.setdefault(one["pool"], []).append(one["label"])
    pooled = "".join(f", {' and '.join(labels)} as one" for labels in pools.values() if len(labels) > 1)
    missing = f" Left out: {', '.join(one['label'] for one in report['left_out'])}." if report["left_out"] else ""
    return (
        f"{sampling['num_samples']} samples, temperature {sampling['temperature']}, top_p {sampling['top_p']}, "
        f"max_tokens {sampling['max_tokens']}. 95% bootstrap over problems. Averages count each set once{pooled}."
        f"{missing}"
    )


def suite_table(report: Mapping[str, Any]) -> "Table":
    """A rich table: one row a `Line`, one column a k."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(suite_title(report)), caption=Text(suite_caption(report)))
    table.add_column("benchmark")
    for heading in ("problems", *(f"pass@{k}" for k in report["ks"])):
        table.add_column(heading, justify="right")
    for line in suite_lines(report):
        is_average = line.num_problems is None
        cells = [Text(f"{at.mean:.3f} [{at.low:.3f}, {at.high:.3f}]") for at in line.pass_at]
        number = "" if is_average else str(line.num_problems)
        table.add_row(Text(line.label), number, *cells, style="bold" if is_average else None, end_section=is_average)
    return table


def read_report(path: Path) -> dict[str, Any]:
    """A report that `killick evaluate --suite` wrote.

    Raises:
        RecordError: unreadable, or it lacks what the table shows.
    """
    report = read_json(path)
    try:
        for part in (suite_title, suite_caption, suite_lines):
            part(report)
        return report
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"{path} is no report of a suite this version can read ({type(error).__name__}: {error}). Run the same "
            "`killick evaluate --suite` again: it only writes the report anew. Or remove the file."
        ) from error
