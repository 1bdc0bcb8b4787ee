"""`killick compare`: two or more evaluations side by side, with paired intervals."""

import json
from pathlib import Path
from typing import Annotated

import typer

from killick.cli.console import out, written
from killick.provenance import write_json

HELP = """Compare evaluations of the same problems under the same settings; refuses otherwise, saying where they differ.

Examples:

    killick compare runs/quickstart/base/eval/mixed runs/quickstart/arms/grpo/seed0/eval/mixed
    killick compare A B --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(compare)


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation folders; differences are taken to the first.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    output: Annotated[Path | None, typer.Option("--out", help="Also write the JSON to this file.")] = None,
) -> None:
    """See HELP."""
    from killick.evaluate.compare import compare as run_compare
    from killick.evaluate.compare import comparison_table

    comparison = run_compare(folders)
    if as_json:
        typer.echo(json.dumps(comparison.to_dict(), indent=2))
    else:
        out.print(comparison_table(comparison))
    if output is not None:
        write_json(output, comparison.to_dict())
        written(output)
