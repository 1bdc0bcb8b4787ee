"""`killick compare`: two or more evaluations side by side, with paired intervals and tests."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from killick.cli.console import err, out, written
from killick.errors import ConfigError
from killick.provenance import write_json

if TYPE_CHECKING:
    from killick.evaluate.compare import Comparison
    from killick.evaluate.macro import SuiteComparison
    from killick.evaluate.texts import PatternRequest

HELP = """Compare evaluations of the same problems under the same settings; refuses otherwise, saying where they differ.

The first folder is the baseline. Folders that hold several evaluations are compared by their macro average and, in
short, benchmark by benchmark; --full shows all tables of each.

Examples:

    killick compare runs/quickstart/base/eval/mixed runs/quickstart/arms/grpo/seed0/eval/mixed
    killick compare runs/a/eval runs/b/eval runs/c/eval
    killick compare runs/a/suites/sage runs/b/suites/sage --out sage.json
    killick compare runs/a/eval/test runs/b/eval-vllm/test --may-differ backend --may-differ dtype
    killick compare runs/a/eval/test runs/b/eval/test --patterns
"""
_JUDGED = 4  # samples of a problem a judge reads unless told otherwise


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(compare)


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER", help="Evaluations, or folders that hold evaluations."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    output: Annotated[Path | None, typer.Option("--out", help="Also write the JSON to this file.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All tables of every benchmark, not one row each.")] = False,
    may_differ: Annotated[
        list[str] | None,
        typer.Option(
            "--may-differ", metavar="NAME", help="backend or dtype (repeatable): compare all the same; tables say so."
        ),
    ] = None,
    patterns: Annotated[bool, typer.Option("--patterns", help="Share of answers by reasoning pattern.")] = False,
    pattern_samples: Annotated[
        int | None, typer.Option(min=1, help="Read the first samples of each problem only. Default: all; 4 by a judge.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="URL", help="Patterns by a model: base URL of an OpenAI-compatible server.")
    ] = None,
    judge_model: Annotated[str | None, typer.Option(help="Its name on that server.")] = None,
    judge_key: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Environment variable with the server's key.")
    ] = None,
) -> None:
    """See HELP."""
    from killick.evaluate.compare import compare as compare_evaluations
    from killick.evaluate.folder import is_evaluation
    from killick.evaluate.macro import SuiteComparison, compare_suites

    if not patterns and (judge or judge_model or judge_key or pattern_samples):
        raise ConfigError("--judge, --judge-model, --judge-key and --pattern-samples belong to --patterns: add it.")
    request = _request(pattern_samples, judge, judge_model, judge_key) if patterns else None
    comparison: Comparison | SuiteComparison
    if any(is_evaluation(folder) for folder in folders):
        comparison = compare_evaluations(folders, patterns=request, allow=may_differ or ())
    else:
        comparison = compare_suites(folders, patterns=request, allow=may_differ or ())
    if as_json:
        typer.echo(json.dumps(comparison.to_dict(), indent=2))
    else:
        _print(comparison, folders, full or patterns)
    parts = comparison.benchmarks.values() if isinstance(comparison, SuiteComparison) else [comparison]
    for note in dict.fromkeys(note for part in parts for note in part.notes):
        err.print(f"Left out: {note}", highlight=False, markup=False, soft_wrap=True)
    if output is not None:
        write_json(output, comparison.to_dict())
        written(output)


def _print(comparison: "Comparison | SuiteComparison", folders: list[Path], full: bool) -> None:
    """The names of the runs, the table of their suite if they have one, then what was compared."""
    from killick.evaluate.macro import SuiteComparison
    from killick.evaluate.suite_table import REPORT, paper_table, read_report
    from killick.evaluate.tables import comparison_tables, legend, suite_tables

    out.print(legend([str(folder) for folder in folders]), highlight=False)
    if not isinstance(comparison, SuiteComparison):
        tables = comparison_tables(comparison, out.width)
    else:
        reports = [folder / REPORT for folder in folders]
        if all(path.is_file() for path in reports):
            try:
                out.print(paper_table([(str(path.parent), read_report(path)) for path in reports]))
            except ConfigError as error:  # the evaluations agree all the same, and are compared below
                err.print(str(error), highlight=False, markup=False, soft_wrap=True)
        tables = suite_tables(comparison, out.width, full)
    for table in tables:
        out.print(table, highlight=False, crop=False)


def _request(samples: int | None, url: str | None, model: str | None, key: str | None) -> "PatternRequest":
    from killick.evaluate.texts import PatternRequest
    from killick.patterns.names import PATTERNS

    if url is None:
        from killick.patterns.rules import classify

        if model or key:
            raise ConfigError("--judge-model and --judge-key describe a judge: give its address with --judge.")
        return PatternRequest(tuple(PATTERNS), classify, samples, "rules for English")
    if model is None:
        raise ConfigError("--judge needs --judge-model: the name of the model on that server.")
    from killick.patterns.judge import EndpointJudge

    judge = EndpointJudge(url, model, key)
    return PatternRequest(judge.names, judge, samples or _JUDGED, f"the model {model}")
