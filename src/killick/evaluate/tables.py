"""Comparisons as tables for a terminal."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from killick.evaluate.compare import ComparedRun, Comparison, Estimate
from killick.evaluate.estimators import Interval
from killick.evaluate.macro import SuiteComparison
from killick.evaluate.paired import SMALLEST

_BOOTSTRAP = "95% bootstrap over problems; Δ: paired, minus the first run."


def comparison_tables(comparison: Comparison, name: str = "") -> Iterator[Table]:
    """All tables of one comparison: pass@k, votes, what was lost and gained, patterns."""
    title = name or None
    yield comparison_table(comparison, title)
    if any(run.maj_at for run in comparison.runs):
        yield _majority_table(comparison, title)
    yield _support_table(comparison, title)
    if comparison.patterns:
        yield _pattern_table(comparison, title)


def suite_tables(suite: SuiteComparison) -> Iterator[Table]:
    """Tables of every benchmark, then the macro averages."""
    for name, comparison in suite.benchmarks.items():
        yield from comparison_tables(comparison, name)
    caption = (
        f"Mean over {len(suite.benchmarks)} benchmarks, each with the same weight: {', '.join(suite.benchmarks)}. "
        "95% bootstrap over problems within each benchmark; Δ: paired, minus the first run. Only k that every "
        f"benchmark has samples for.{_differing(*suite.benchmarks.values())}"
    )
    has_votes = all(run.maj_at is not None for run in suite.macro)
    labels = [f"pass@{k}" for k in suite.ks] + ([f"maj@{k}" for k in suite.ks] if has_votes else [])
    table = _table("macro average", caption, labels)
    for run in suite.macro:
        maj = run.maj_at if has_votes and run.maj_at is not None else Estimate((), ())
        _add(table, run.folder, (*run.pass_at.values, *maj.values), (*run.pass_at.difference, *maj.difference))
    yield table


def comparison_table(comparison: Comparison, title: str | None = None) -> Table:
    """pass@k with intervals, then differences from the first run; settings in the caption."""
    shared = comparison.settings
    caption = (
        f"{shared['task']} / {shared['split']}: {shared['num_problems']} problems × {shared['sampling.num_samples']} "
        f"samples, temperature {shared['sampling.temperature']}, top_p {shared['sampling.top_p']}, max_tokens "
        f"{shared['sampling.max_tokens']}, stop {shared['sampling.stop']}. pass@1 is the mean over all samples "
        f"(mean@{shared['sampling.num_samples']}). {_BOOTSTRAP}{_differing(comparison)}"
    )
    table = _table(title, caption, [*(f"pass@{k}" for k in comparison.ks), "tokens", "truncated"])
    for run in comparison.runs:
        extra = (f"{run.tokens_mean:.1f}", f"{run.truncated_frac:.3f}")
        _add(table, run.folder, run.pass_at, run.difference, extra)
    return table


def _differing(*comparisons: Comparison) -> str:
    found = (f"{key}: {' / '.join(map(str, values))}" for one in comparisons for key, values in one.differing.items())
    listed = "; ".join(dict.fromkeys(found))
    return f" Allowed to differ, so part of Δ: {listed}." if listed else ""


def _majority_table(comparison: Comparison, title: str | None) -> Table:
    caption = (
        "maj@k: the most frequent answer of k samples is right; samples without an answer do not vote, ties count by "
        f"their expected value. {_BOOTSTRAP}"
    )
    table = _table(title, caption, [f"maj@{k}" for k in comparison.ks])
    for run in comparison.runs:
        if run.maj_at is not None:
            _add(table, run.folder, run.maj_at.values, run.maj_at.difference)
    return table


def _support_table(comparison: Comparison, title: str | None) -> Table:
    num_samples, others = comparison.settings["sampling.num_samples"], len(comparison.runs) - 1
    has_modes = any(run.modes for run in comparison.runs)
    caption = (
        f"Solved: at least one of {num_samples} samples is right. By chance: losses (and as many gains) expected if "
        "both were one model. p solved: exact McNemar test of lost against gained; p rates: exact sign-flip test of "
        f"success rates; in brackets adjusted for {others} run{'s' if others != 1 else ''} (Holm), not for several "
        "tests, k or benchmarks: the more of them are read, the more are small by chance."
    )
    labels = ["solved", "lost", "gained", "by chance", "p of loss", "p of gain", "p solved", "p rates"]
    table = _table(title, caption, labels + (["modes a problem"] if has_modes else []))
    for run in comparison.runs:
        modes = [_interval(run.modes.values[0], "{:.2f}")] if run.modes is not None else []
        table.add_row(Text(run.folder), *_support_cells(comparison, run), *modes)
        if run.modes is not None and run.modes.difference:
            table.add_row("  Δ", *[""] * len(labels), _interval(run.modes.difference[0], "{:+.2f}"), end_section=True)
    return table


def _support_cells(comparison: Comparison, run: ComparedRun) -> list[Any]:
    change, total = run.support, comparison.settings["num_problems"]
    if change is None:
        solved = next((other.support.num_solved_base for other in comparison.runs if other.support is not None), 0)
        return [f"{solved} / {total}", *["–"] * 7]
    shares = [f"{number}\n{number / total:.3f}" for number in (change.num_lost, change.num_gained)]
    tests = [f"{_p(p)}\n({_p(q)})" for p, q in _tested(run)]
    chance = f"{change.num_by_chance:.1f}"
    return [f"{change.num_solved} / {total}", *shares, chance, _p(change.p_lost), _p(change.p_gained), *tests]


def _tested(run: ComparedRun) -> list[tuple[float, float]]:
    assert run.support is not None, "only runs with a first run to compare with are tested"
    assert run.p_solved_holm is not None, "adjusted with the test"
    assert run.p_rates_holm is not None, "adjusted with the test"
    return [(run.support.p_solved, run.p_solved_holm), (run.support.p_rates, run.p_rates_holm)]


def _pattern_table(comparison: Comparison, title: str | None) -> Table:
    caption = (
        f"Share of answers, right or wrong, that show a pattern; one may show several. Found by: "
        f"{comparison.pattern_source}. {_BOOTSTRAP}"
    )
    table = Table(title=title, caption=caption)
    table.add_column("pattern")
    for run in comparison.runs:
        table.add_column(Text(run.folder, overflow="fold"), justify="right")
        if run.difference:
            table.add_column("Δ", justify="right")
    for p, name in enumerate(comparison.patterns):
        cells: list[Any] = []
        for run in comparison.runs:
            assert run.patterns is not None, "patterns are computed for every run or for none"
            cells.append(_interval(run.patterns.values[p], "{:.3f}"))
            cells += [_interval(run.patterns.difference[p], "{:+.3f}")] if run.patterns.difference else []
        table.add_row(name, *cells)
    return table


def _table(title: str | None, caption: str, labels: Sequence[str]) -> Table:
    table = Table(title=Text(title) if title else None, title_justify="left", caption=caption)
    table.add_column("run", overflow="fold")
    for label in labels:
        table.add_column(label, justify="right")
    return table


def _add(
    table: Table, name: str, values: Sequence[Interval], difference: Sequence[Interval], extra: Sequence[str] = ()
) -> None:
    table.add_row(Text(name), *[_interval(value, "{:.3f}") for value in values], *extra)
    if difference:
        table.add_row("  Δ", *[_interval(value, "{:+.3f}") for value in difference], end_section=True)


def _interval(interval: Interval, form: str) -> Text:
    low, high = form.format(interval.low), form.format(interval.high)
    return Text(f"{form.format(interval.mean)}\n[{low}, {high}]")  # Text: brackets are not markup


def _p(value: float) -> str:
    if value <= SMALLEST:
        return f"<{SMALLEST:.0e}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
