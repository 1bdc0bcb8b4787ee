"""`killick report`: one self-contained HTML page of a study, a run or evaluations, or of several of the last two."""

from pathlib import Path
from typing import Annotated

import typer

from killick.cli.console import written

HELP = """Write one HTML page (works offline) of a study, a run, an evaluation, or a folder that holds evaluations.

Several folders are compared on one page, as by `killick compare`: the first holds the model the others are compared
with, and models of one name go by their folders. The same inputs give the same bytes.

Examples:

    killick report runs/quickstart
    killick report runs/nano-1f2e3d4c5b6a --out nano.html
    killick report runs/nano-1f2e3d4c5b6a/eval/mixed
    killick report runs/eval/smollm2-sage
    killick report runs/a/eval/test runs/c/eval/test --out a-c.html
    killick report runs/a/suites/sage runs/b/suites/sage
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(report)


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER", help="A study; or one or more runs, evaluations, folders of evaluations."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--out", help="HTML file. Default: report.html in FOLDER, comparison.html in the first of several."
        ),
    ] = None,
    may_differ: Annotated[
        list[str] | None,
        typer.Option(
            "--may-differ",
            metavar="NAME",
            help="backend or dtype (repeatable): compare all the same; page says so.",
        ),
    ] = None,
) -> None:
    """See HELP."""
    from killick.report.load import load_study
    from killick.report.page import write_report

    asked = folders if len(folders) > 1 else folders[0]
    written(write_report(asked, output, study=load_study(asked, may_differ or ())))
