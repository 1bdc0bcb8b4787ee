"""`killick tasks`: list, show and validate the problem sources."""

import dataclasses
import json
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from killick.cli.console import err, out
from killick.config import toml_value
from killick.errors import ConfigError
from killick.tasks import TASKS

app = typer.Typer(help="List, show and validate tasks.", no_args_is_help=True)

SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the task, e.g. path=data/mine.jsonl."),
]


def parse_settings(pairs: list[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` pairs to settings; values are TOML, a bare word is a string."""
    settings = {}
    for pair in pairs or []:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} is not KEY=VALUE.")
        settings[key.strip()] = toml_value(text)
    return settings


@app.command("list", help="All tasks with their splits.\n\nExample:\n\n    killick tasks list")
def list_() -> None:
    """See help."""
    table = Table("task", "splits", "settings", "what it is")
    for name in TASKS.names():
        cls = TASKS.get(name)
        keys = ", ".join(f.name for f in dataclasses.fields(cls))
        known = getattr(cls, "splits", ())
        splits = ", ".join(known) if isinstance(known, tuple) else "by its settings"
        table.add_row(name, splits, keys, (cls.__doc__ or "").partition("\n")[0])
    out.print(table)


@app.command(
    help="Print rows of a split as JSON lines.\n\nExample:\n\n    killick tasks show countdown --split hard --limit 3"
)
def show(
    name: Annotated[str, typer.Argument(help="Task.")],
    split: Annotated[str, typer.Option(help="Split.")] = "train",
    limit: Annotated[int, typer.Option(min=1, help="Rows to print.")] = 5,
    set_: SettingsOption = None,
) -> None:
    """See help."""
    for row in TASKS.build(name, **parse_settings(set_)).rows(split, limit):
        typer.echo(json.dumps(dataclasses.asdict(row), ensure_ascii=False))


@app.command(
    help="Check every gold: written as a model would write it, it must be judged right; another row's gold, wrong.\n\n"
    "Examples:\n\n    killick tasks validate countdown\n"
    "    killick tasks validate gsm8k --split test --set path=../shared/data/bench"
)
def validate(
    name: Annotated[str, typer.Argument(help="Task.")],
    split: Annotated[list[str] | None, typer.Option(help="Split (repeatable). Default: all.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows of each split.")] = None,
    set_: SettingsOption = None,
) -> None:
    """See help."""
    task = TASKS.build(name, **parse_settings(set_))
    table = Table("split", "rows", "gold judged right", "other gold judged wrong")
    bad = 0
    for part in split or task.splits:
        rows = task.rows(part, limit)
        right = wrong = others = 0
        for row, other in zip(track(rows, description=part, console=err), rows[1:] + rows[:1], strict=True):
            right += task.verifier(task.gold_completion(row), row.answer).correct
            if other.answer != row.answer:
                others += 1
                wrong += not task.verifier(task.gold_completion(other), row.answer).correct
        bad += (len(rows) - right) + (others - wrong)
        table.add_row(part, str(len(rows)), f"{right} of {len(rows)}", f"{wrong} of {others}")
    out.print(table)
    if bad:
        err.print(f"[red]{bad} verdicts are not as they must be.[/red]")
        raise typer.Exit(1)
