"""`killick report`: one self-contained HTML page of a study, a run or evaluations."""

from pathlib import Path
from typing import Annotated

import typer

from killick.cli.console import written

HELP = """Write one HTML page (works offline) of a study, a run, an evaluation, or a folder that holds evaluations.

The same inputs give the same bytes.

Examples:

    killick report runs/quickstart
    killick report runs/nano-1f2e3d4c5b6a --out nano.html
    killick report runs/nano-1f2e3d4c5b6a/eval/mixed
    killick report runs/eval/smollm2-sage
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(report)


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of a study, a run, an evaluation, or several evaluations.")
    ],
    output: Annotated[Path | None, typer.Option("--out", help="HTML file. Default: FOLDER/report.html.")] = None,
) -> None:
    """See HELP."""
    from killick.report.page import write_report

    written(write_report(folder, output))
