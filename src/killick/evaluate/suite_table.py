"""The report of a suite (`suites.suite_report`, `suite.json`) as a table: in and out of distribution, with averages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from killick.errors import ConfigError, RecordError
from killick.evaluate.estimators import Interval
from killick.evaluate.suites import GROUPS, Group
from killick.provenance import read_json

if TYPE_CHECKING:
    from rich.table import Table

REPORT = "suite.json"


class Line(NamedTuple):
    """One line of the table: a benchmark, or the average of a group.

    Attributes:
        group: "in" or "out" of distribution.
        label: of the benchmark, or which average, and how many sets it lacks.
        num_problems: None for an average.
        pass_at: one interval a column, in the order of the report's `ks`.
    """

    group: Group
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
        lines += [Line(group, str(one["label"]), int(one["num_problems"]), intervals(one)) for one in shown]
        average = report["averages"].get(group)
        if average:
            whole = average["num_benchmarks"] == average["of"]
            share = "" if whole else f", only {average['num_benchmarks']} of {average['of']} sets"
            lines.append(Line(group, f"average {name}{share}", None, intervals(average)))
    return lines


def suite_title(report: Mapping[str, Any]) -> str:
    """The suite and the model."""
    return f"{report['title']}: {model_of(report)}"


def model_of(report: Mapping[str, Any]) -> str:
    """The model; of a path its last part: the rest tells where somebody keeps models."""
    name = Path(report["model"]["name"])
    return name.name if name.is_absolute() else str(name)


def suite_caption(report: Mapping[str, Any]) -> str:
    """The sampler, and what the table leaves out."""
    sampling = report["sampling"]
    pools: dict[str, list[str]] = {}
    for one in report["benchmarks"]:
        if one["pool"]:
            pools.setdefault(one["pool"], []).append(one["label"])
    pooled = "".join(f", {' and '.join(labels)} as one" for labels in pools.values() if len(labels) > 1)
    return (
        f"{sampling['num_samples']} samples, temperature {sampling['temperature']}, top_p {sampling['top_p']}, "
        f"max_tokens {sampling['max_tokens']}. 95% bootstrap over problems. Averages count each set once{pooled}."
        f"{_left_out(report)}"
    )


def _left_out(report: Mapping[str, Any]) -> str:
    return f" Left out: {', '.join(one['label'] for one in report['left_out'])}." if report["left_out"] else ""


class PaperRow(NamedTuple):
    """One row of a table as papers print it.

    Attributes:
        model: its place among the reports.
        k: of pass@k.
        pass_at: one interval a `suite_lines` of the first report.
    """

    model: int
    k: int
    pass_at: list[Interval]


def paper_rows(reports: Sequence[Mapping[str, Any]]) -> list[PaperRow]:
    """Every model's row for every k.

    Args:
        reports: at least one, of one suite.

    Raises:
        ConfigError: of several suites, or with other benchmarks or sampler.
    """
    asked = [_asked(report) for report in reports]
    if any(one != asked[0] for one in asked):
        raise ConfigError(
            "These suites differ in title, benchmarks, number of problems or sampler, so they make no common table. "
            "Evaluate the models with the same suite and options."
        )
    return [
        PaperRow(place, k, [line.pass_at[i] for line in suite_lines(report)])
        for place, report in enumerate(reports)
        for i, k in enumerate(report["ks"])
    ]


def paper_heading(line: Line) -> str:
    """The heading of its column: the label, shortened for averages."""
    if line.num_problems is not None:
        return line.label
    return line.label.replace(f"average {GROUPS[line.group]}", f"avg {line.group}")


def paper_table(reports: Sequence[tuple[str, Mapping[str, Any]]]) -> "Table":
    """A rich table as papers print it: one column a benchmark or average, one row a model and k; 80 characters do.

    Args:
        reports: at least one, of one suite, each with what to call its model. Several are numbered in the table, and
            it is left to the caller to say which is which.

    Raises:
        ConfigError: of several suites, or with other benchmarks or sampler.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = paper_rows([report for _, report in reports])
    name, first = reports[0]
    several = len(reports) > 1
    caption = f"{'' if several else f'{name}.'}{_left_out(first)}".strip()
    table = Table(title=Text(str(first["title"])), box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.caption = Text(caption) if caption else None
    table.add_column("", no_wrap=True)
    for line in suite_lines(first):
        style = "bold" if line.num_problems is None else ""
        table.add_column(Text(paper_heading(line)), justify="right", min_width=5, overflow="fold", style=style)
    for row in rows:
        label = f"{row.model + 1} pass@{row.k}" if several else f"pass@{row.k}"
        table.add_row(label, *(f"{at.mean:.3f}" for at in row.pass_at), end_section=row.k == first["ks"][-1])
    return table


def _asked(report: Mapping[str, Any]) -> list[Any]:
    sets = [(one["label"], one["task"], one["split"], one["num_problems"]) for one in report["benchmarks"]]
    return [report["title"], report["ks"], {**report["sampling"], "seed": None}, sets]


def suite_table(report: Mapping[str, Any]) -> "Table":
    """A rich table with intervals: one row a `Line`, one column a k."""
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
        for part in (suite_title, suite_caption, suite_lines, _asked):
            part(report)
        return report
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"{path} is no report of a suite this version can read ({type(error).__name__}: {error}). Run the same "
            "`killick evaluate --suite` again: it only writes the report anew. Or remove the file."
        ) from error
