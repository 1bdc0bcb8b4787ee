"""Comparisons as tables for a terminal. Runs are numbers in them; `legend` says which is which."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from killick.evaluate.columns import Column, fitting, number_table, total_width
from killick.evaluate.compare import ComparedRun, Comparison, Estimate
from killick.evaluate.estimators import Interval
from killick.evaluate.macro import SuiteComparison
from killick.evaluate.paired import SMALLEST


def legend(names: Sequence[str]) -> Text:
    """Which run has which number."""
    return Text("\n".join(f"{n}: {name}{' (base)' if n == 1 else ''}" for n, name in enumerate(names, 1)))


def comparison_tables(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    """All tables of one comparison, with what was measured above them and how to read them below.

    Args:
        comparison: of two or more runs.
        width: of the terminal; k that do not fit are left out, and said to be.
    """
    yield _note(_asked(comparison))
    yield from _sections(comparison, width)
    yield _reading([comparison])


def suite_tables(suite: SuiteComparison, width: int, full: bool = False) -> Iterator[RenderableType]:
    """The macro averages and one row a benchmark; of a single benchmark all there is.

    Args:
        suite: of one or more benchmarks.
        width: of the terminal.
        full: then all tables of every benchmark.
    """
    comparisons = list(suite.benchmarks.values())
    if len(comparisons) == 1:
        yield from comparison_tables(comparisons[0], width)
        return
    yield from _macro_tables(suite, width)
    yield _heading("Benchmarks: differences from run 1")
    yield _benchmark_table(suite, width)
    for name, comparison in suite.benchmarks.items() if full else ():
        yield _heading(name)
        yield _note(_asked(comparison))
        yield from _sections(comparison, width)
    if not full:
        yield _note("\n".join(dict.fromkeys(_sampling(comparison) for comparison in comparisons)))
        yield _note("All tables of every benchmark: --full.")
    has_votes = full or any(run.maj_at for run in suite.macro)
    yield _reading(comparisons, full, has_votes)


def _sections(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    """pass@k, votes, what was lost and gained, patterns."""
    runs = [(n, run) for n, run in enumerate(comparison.runs, 1)]
    extra = [("tokens", [f"{run.tokens_mean:.1f}" for _, run in runs])]
    extra += [("truncated", [f"{run.truncated_frac:.3f}" for _, run in runs])]
    passed = [(n, Estimate(run.pass_at, run.difference)) for n, run in runs]
    yield from _estimates("pass", comparison.ks, passed, width, extra)
    votes = [(n, run.maj_at) for n, run in runs if run.maj_at is not None]
    if votes:
        yield _heading("Majority vote")
        yield from _estimates("maj", comparison.ks, votes, width)
    yield _heading("Problems solved, lost and gained")
    yield _support_table(comparison, width)
    if comparison.patterns:
        yield _heading("Reasoning patterns")
        yield _pattern_table(comparison, width)


def _estimates(
    name: str,
    ks: Sequence[int],
    runs: Sequence[tuple[int, Estimate]],
    width: int,
    extra: Sequence[tuple[str, list[str]]] = (),
) -> Iterator[RenderableType]:
    """One row a run and one for its difference, one column a k that fits; `extra` columns have one cell a run."""
    labels = [label for n, one in runs for label in ([str(n), f"{n} Δ"] if one.difference else [str(n)])]
    columns = [Column(f"{name}@{k}", _cells([one for _, one in runs], i)) for i, k in enumerate(ks)]
    others = [Column("run", labels)]
    for heading, cells in extra:
        rows = [[cell, ""] if one.difference else [cell] for cell, (_, one) in zip(cells, runs, strict=True)]
        others.append(Column(heading, [cell for own in rows for cell in own]))
    chosen = fitting(columns, width - total_width(others) - 1)
    shown = [others[0], *(columns[place] for place in chosen), *others[1:]]
    ends = [row for row, label in enumerate(labels) if row + 1 == len(labels) or "Δ" not in labels[row + 1]]
    yield number_table(shown, width, ends)
    if len(chosen) < len(ks):
        yield _note(f"Shown: k = {', '.join(str(ks[place]) for place in chosen)}; all k: --json.")


def _cells(estimates: Sequence[Estimate], place: int) -> list[str]:
    cells = []
    for one in estimates:
        cells.append(_interval(one.values[place], "{:.3f}"))
        cells += [_interval(one.difference[place], "{:+.3f}")] if one.difference else []
    return cells


def _macro_tables(suite: SuiteComparison, width: int) -> Iterator[RenderableType]:
    yield _heading(f"Macro average of {len(suite.benchmarks)} benchmarks")
    yield from _estimates("pass", suite.ks, [(n, run.pass_at) for n, run in enumerate(suite.macro, 1)], width)
    votes = [(n, run.maj_at) for n, run in enumerate(suite.macro, 1) if run.maj_at is not None]
    if votes:
        yield from _estimates("maj", suite.ks, votes, width)


def _benchmark_table(suite: SuiteComparison, width: int) -> RenderableType:
    """One row a benchmark and run: differences at the first and the last k, and what was lost and gained."""
    found = [(name, one, n) for name, one in suite.benchmarks.items() for n in range(2, len(one.runs) + 1)]
    runs = [one.runs[n - 1] for _, one, n in found]
    changes = [run.support for run in runs if run.support is not None]  # of all: the first has no row
    ks = [str(one.ks[-1]) for _, one, _ in found]
    same_k, several_runs = len(set(ks)) == 1, len(suite.macro) > 2
    columns = [Column("benchmark", [_named(name, one) if n == 2 else "" for name, one, n in found], is_text=True)]
    columns += [Column("run", [str(n) for _, _, n in found])] if several_runs else []
    columns += [Column("Δ pass@1", [_interval(run.difference[0], "{:+.3f}") for run in runs])]
    columns += [] if same_k else [Column("k", ks)]
    last = [_interval(run.difference[-1], "{:+.3f}") for run in runs]
    columns += [
        Column(f"Δ pass@{ks[0] if same_k else 'k'}", last),
        Column("lost", [str(change.num_lost) for change in changes]),
        Column("gained", [str(change.num_gained) for change in changes]),
        Column("by\nchance", [f"{change.num_by_chance:.1f}" for change in changes]),
        Column("p\nsolved", [_tested(one, run)[0] for (_, one, _), run in zip(found, runs, strict=True)]),
    ]
    return number_table(columns, width, [row for row, (_, one, n) in enumerate(found) if n == len(one.runs)])


def _named(name: str, comparison: Comparison) -> str:
    num = comparison.settings["num_problems"]
    return f"{name}\n{num} problem{'s' if num != 1 else ''}"


def _support_table(comparison: Comparison, width: int) -> RenderableType:
    has_modes = any(run.modes for run in comparison.runs)
    headings = ["run", "solved", "lost", "gained", "by\nchance", "p of\nloss", "p of\ngain", "p\nsolved", "p\nrates"]
    rows, ends = [], []
    for n, run in enumerate(comparison.runs, 1):
        rows.append([str(n), *_support_cells(comparison, run)])
        if has_modes:
            rows[-1].append("–" if run.modes is None else _interval(run.modes.values[0], "{:.2f}"))
        if run.modes is not None and run.modes.difference:
            gap = _interval(run.modes.difference[0], "{:+.2f}")
            rows.append([f"{n} Δ", *[""] * (len(headings) - 1), gap])
        ends.append(len(rows) - 1)
    headings += ["modes a\nproblem"] if has_modes else []
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return number_table([Column(heading, cells) for heading, cells in columns], width, ends)


def _support_cells(comparison: Comparison, run: ComparedRun) -> list[str]:
    change, total = run.support, comparison.settings["num_problems"]
    if change is None:
        solved = next((other.support.num_solved_base for other in comparison.runs if other.support is not None), 0)
        return [f"{solved}\nof {total}", *["–"] * 7]
    shares = [f"{number}\n{number / total:.3f}" for number in (change.num_lost, change.num_gained)]
    chance = f"{change.num_by_chance:.1f}"
    solved_of = f"{change.num_solved}\nof {total}"
    return [solved_of, *shares, chance, _p(change.p_lost), _p(change.p_gained), *_tested(comparison, run)]


def _tested(comparison: Comparison, run: ComparedRun) -> list[str]:
    """The two p-values, each with what it is when adjusted for the number of runs, where there are several."""
    assert run.support is not None, "only runs with a first run to compare with are tested"
    assert run.p_solved_holm is not None, "adjusted with the test"
    assert run.p_rates_holm is not None, "adjusted with the test"
    pairs = [(run.support.p_solved, run.p_solved_holm), (run.support.p_rates, run.p_rates_holm)]
    return [_p(p) if len(comparison.runs) == 2 else f"{_p(p)}\n({_p(q)})" for p, q in pairs]


def _pattern_table(comparison: Comparison, width: int) -> RenderableType:
    """One row a pattern and run: the columns are the same for any number of runs."""
    rows = []
    for place, name in enumerate(comparison.patterns):
        for n, run in enumerate(comparison.runs, 1):
            assert run.patterns is not None, "patterns are computed for every run or for none"
            gap = _interval(run.patterns.difference[place], "{:+.3f}", " ") if run.patterns.difference else "–"
            share = _interval(run.patterns.values[place], "{:.3f}", " ")
            rows.append([name if n == 1 else "", str(n), share, gap])
    cells = list(zip(*rows, strict=True))
    columns = [Column("pattern", cells[0], is_text=True), Column("run", cells[1])]
    columns += [Column("share", cells[2]), Column("Δ", cells[3])]
    return number_table(columns, width, range(len(comparison.runs) - 1, len(rows), len(comparison.runs)))


def _asked(comparison: Comparison) -> str:
    shared = comparison.settings
    return f"{shared['task']} / {shared['split']}: {shared['num_problems']} problems × {_sampling(comparison)}"


def _sampling(comparison: Comparison) -> str:
    shared = comparison.settings
    return (
        f"{shared['sampling.num_samples']} samples, temperature {shared['sampling.temperature']}, top_p "
        f"{shared['sampling.top_p']}, max_tokens {shared['sampling.max_tokens']}, stop {shared['sampling.stop']}."
    )


def _reading(comparisons: Sequence[Comparison], full: bool = True, has_votes: bool = True) -> Text:
    """How to read the tables, once for all of them. `full`: also those that only single comparisons have."""
    runs = comparisons[0].runs
    parts = ["pass@1 is the mean over all samples. Brackets: 95% bootstrap over problems; Δ: minus run 1, paired."]
    if len(comparisons) > 1:
        parts.append(
            "Macro average: every benchmark has the same weight, problems are resampled within each; only k that every "
            "benchmark has samples for."
        )
    if has_votes and any(run.maj_at for one in comparisons for run in one.runs):
        parts.append(
            "maj@k: the most frequent answer of k samples is right; samples without an answer do not vote, ties count "
            "by their expected value."
        )
    adjusted = f"; in brackets adjusted for {len(runs) - 1} runs (Holm)" if len(runs) > 2 else ""
    parts.append(
        "Solved: at least one sample is right; lost: by run 1 only; gained: not by run 1. By chance: losses (and as "
        "many gains) expected if both were one model. p solved: exact McNemar test of lost against gained"
        f"{'; p rates: exact sign-flip test of success rates' if full else ''}{adjusted}. Not adjusted for several "
        "tests, k or benchmarks: the more of them are read, the more are small by chance."
    )
    source = comparisons[0].pattern_source
    if source and full:
        parts.append(f"Patterns: share of answers, right or wrong; one may show several. Found by: {source}.")
    found = (f"{key}: {' / '.join(map(str, values))}" for one in comparisons for key, values in one.differing.items())
    listed = "; ".join(dict.fromkeys(found))
    parts += [f"Allowed to differ, so part of Δ: {listed}."] if listed else []
    return _note("\n" + "\n".join(parts))


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _note(text: str) -> Text:
    return Text(text, style="dim")


def _interval(interval: Interval, form: str, between: str = "\n") -> str:
    low, high = form.format(interval.low), form.format(interval.high)
    return f"{form.format(interval.mean)}{between}[{low}, {high}]"


def _p(value: float) -> str:
    if value <= SMALLEST:
        return f"<{SMALLEST:.0e}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
