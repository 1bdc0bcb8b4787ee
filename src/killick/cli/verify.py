"""`killick verify`: score the verifier of mathematical answers on cases, or explain one verdict."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from killick.cli.console import out
from killick.errors import ConfigError

HELP = """Judge mathematical answers: score a file of cases, or explain one verdict step by step.

A case is a line of JSON with gold, pred, expected (true or false) and kind.

Examples:

    killick verify --cases cases.jsonl
    killick verify --cases cases.jsonl --json
    killick verify --gold "2\\sqrt{5}" --pred "so it is \\boxed{\\sqrt{20}}"
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(verify)


def verify(
    cases: Annotated[Path | None, typer.Option("--cases", help="JSONL file of cases to score.")] = None,
    gold: Annotated[str | None, typer.Option("--gold", help="The right answer of one case.")] = None,
    pred: Annotated[str | None, typer.Option("--pred", help="The completion, or an answer, to judge.")] = None,
    boxed: Annotated[
        bool,
        typer.Option("--boxed", help='Accept only a box, an answer tag or "final answer is", as training does.'),
    ] = False,
    timeout_s: Annotated[float, typer.Option("--timeout-s", help="Seconds for one call of math-verify.")] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """See HELP."""
    from killick.verifiers.latex import LatexVerifier

    verifier = LatexVerifier(fallback=not boxed, timeout_s=timeout_s)
    if cases is not None and gold is None and pred is None:
        _score(verifier, cases, as_json)
    elif cases is None and gold is not None and pred is not None:
        _explain(verifier, gold, pred, as_json)
    else:
        raise ConfigError("killick verify needs either --cases FILE, or --gold and --pred together.")


def _score(verifier: Any, path: Path, as_json: bool) -> None:
    from rich.table import Table

    from killick.verifiers.cases import load_cases, score

    result = score(verifier, load_cases(path)).to_dict()
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    table = Table("kind", "cases", "agreement", "false accepts", "false rejects")
    for kind, counts in [*result["by_kind"].items(), ("all", result)]:
        share = f"{counts['agreement']:.3f}"
        table.add_row(kind, str(counts["cases"]), share, str(counts["false_accepts"]), str(counts["false_rejects"]))
    out.print(table)
    for row in result["disagreements"]:
        verb = "rejected" if row["expected"] else "accepted"
        text = f"{verb} ({row['reason']}): gold {row['gold']!r}, prediction {row['pred'][:100]!r}"
        out.print(text, markup=False, highlight=False, soft_wrap=True)


def _explain(verifier: Any, gold: str, pred: str, as_json: bool) -> None:
    from killick.verifiers.explain import explain

    verdict, told = explain(verifier, pred, gold)
    if as_json:
        content = {"correct": verdict.correct, "reason": verdict.reason, "steps": [list(step) for step in told]}
        typer.echo(json.dumps(content, indent=2))
        return
    width = max(len(name) for name, _ in told)
    for name, text in told:
        out.print(f"{name:<{width}}  {text}", markup=False, highlight=False, soft_wrap=True)
