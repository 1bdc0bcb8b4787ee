"""`killick study`: several arms and seeds of one recipe, side by side, then table, summary and report."""

from pathlib import Path
from typing import Annotated

import typer

from killick.cli.console import err, out

HELP = """Run a study: arms × seeds of one recipe, each trained and evaluated, then compared.

Run the same command again to go on after an interruption. See `killick recipes` for those that ship.

Examples:

    killick study quickstart
    killick study reproduce --seeds 5 --jobs 2
    killick study my_study.toml --out runs/mine
    killick study sort --set model.name_or_path=models/nano-1000 --out runs/sort_weak
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(study)


def study(
    name: Annotated[str, typer.Argument(help="Name of a shipped study or a TOML file.")],
    output: Annotated[Path | None, typer.Option("--out", help="Study folder. Default: runs/NAME.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Use seeds 0 … N-1 instead of those of the file.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes at a time. Default: as the file says.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for the recipe of every arm; may be repeated.")
    ] = None,
    arms: Annotated[
        list[str] | None, typer.Option("--arm", help="Run this arm only (with its sweep values); may be repeated.")
    ] = None,
) -> None:
    """See HELP."""
    from killick import study as studies

    parsed = studies.load_study(name, seeds, jobs, overrides or [], arms or [])
    err.print("checking every arm …")
    studies.check(parsed)
    folder = output or Path("runs") / parsed.name
    failed = studies.run(parsed, folder, err)
    studies.check_failed(failed)
    studies.finish(parsed, folder, out)
