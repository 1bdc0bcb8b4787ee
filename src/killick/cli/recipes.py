"""`killick recipes`: what ships, and one of them in full."""

from typing import Annotated

import typer
from rich.table import Table

from killick.cli.console import out
from killick.config import find_recipe, shipped_recipes
from killick.study import shipped_studies

HELP = """List the shipped recipes and studies, or print one.

A printed one is a starting point for your own.

Examples:

    killick recipes
    killick recipes nano > my_recipe.toml
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(recipes)


def recipes(name: Annotated[str | None, typer.Argument(help="Print this recipe or study.")] = None) -> None:
    """See HELP."""
    studies = shipped_studies()
    if name is not None:
        path = studies[name] if name in studies else find_recipe(name)
        typer.echo(path.read_text(encoding="utf-8", errors="replace"), nl=False)
        return
    table = Table("name", "command", "purpose, cost, expected number")
    for kind, files in (("train", shipped_recipes()), ("study", studies)):
        for key, path in files.items():
            first = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            table.add_row(key, f"killick {kind} {key}", first)
    out.print(table)
