"""`killick tasks`: list, show and validate the problem sources, and compare two of them."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import track
from rich.table import Column, Table

from killick.cli.console import err, out
from killick.config import toml_value
from killick.errors import ConfigError
from killick.registry import nearest
from killick.tasks import TASKS
from killick.tasks.types import Row, Task

_FACTS = ("splits", "settings", "what it is")
_OF_A_FILE = ("columns", "problem_column", "id_column")  # what of the settings of `jsonl` a bare file can need

app = typer.Typer(help="List, show, validate and compare tasks.", no_args_is_help=True)

SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the task, e.g. path=data/mine.jsonl."),
]


def parse_settings(pairs: list[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` pairs to settings; `a.b=VALUE` fills a table; values are TOML, a bare word is a string.

    Raises:
        ConfigError: a pair without `=`, or a path through a value.
    """
    settings: dict[str, Any] = {}
    for pair in pairs or []:
        path, equals, text = pair.partition("=")
        *tables, key = path.strip().split(".")
        if not equals or not all((*tables, key)):
            raise ConfigError(f"{pair!r} is not KEY=VALUE. Example: path=data/mine.jsonl")
        table = settings
        for name in tables:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{pair!r}: {name!r} is a value, not a table.")
        table[key] = toml_value(text)
    return settings


@app.command("list", help="All tasks with their splits.\n\nExample:\n\n    killick tasks list")
def list_() -> None:
    """See help."""
    table = Table(Column("task", no_wrap=True), *(Column(name, overflow="fold") for name in _FACTS))
    for name in TASKS.names():
        try:
            cls = TASKS.get(name)
            keys = ", ".join(f.name for f in dataclasses.fields(cls))
        except (ConfigError, TypeError) as error:  # a plug-in; TypeError: it is no dataclass
            table.add_row(name, "", "", escape(f"cannot be loaded: {error}"))
            continue
        known = getattr(cls, "splits", ())
        splits = ", ".join(known) if isinstance(known, tuple) else "by its settings"
        table.add_row(name, splits, keys, escape((cls.__doc__ or "").partition("\n")[0]))
    out.print(table)


@app.command(
    help="Print rows of a split as JSON lines.\n\nExample:\n\n    killick tasks show countdown --split hard --limit 3"
)
def show(
    name: Annotated[str, typer.Argument(help="Task.")],
    split: Annotated[str | None, typer.Option(help="Split. Default: the first.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows to print.")] = 5,
    set_: SettingsOption = None,
) -> None:
    """See help."""
    task: Task = TASKS.build(name, **parse_settings(set_))
    for row in task.rows(split or task.splits[0], limit):
        typer.echo(json.dumps(dataclasses.asdict(row), ensure_ascii=False))


@app.command(
    help="Check every gold: written as a model would write it, it must be judged right; a wrong gold, wrong.\n\n"
    "Rows that fail are listed, and the exit code is 1.\n\n"
    "Examples:\n\n    killick tasks validate countdown\n"
    "    killick tasks validate gsm8k --split test --set path=data/bench\n"
    "    killick tasks validate all --set path=data/bench"
)
def validate(
    name: Annotated[str, typer.Argument(help="Task, or `all`: every task whose data is at hand.")],
    split: Annotated[list[str] | None, typer.Option(help="Split (repeatable). Default: all.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows of each split.")] = None,
    set_: SettingsOption = None,
) -> None:
    """See help."""
    from killick.tasks.validate import validate as check

    settings = parse_settings(set_)
    asked = _at_hand(settings) if name == "all" else _splits(name, TASKS.build(name, **settings), split)
    table = Table("task", "split", "rows", "gold judged right", "wrong gold judged wrong")
    bad: list[str] = []
    for task_name, task, part in asked:
        rows = task.rows(part, limit)
        found = check(task, part, rows, track(rows, description=f"{task_name} {part}", console=err))
        golds = found.num - len(found.no_gold)
        right, wrong = golds - len(found.rejected), found.num_wrong - len(found.accepted)
        table.add_row(task_name, part, str(found.num), f"{right} of {golds}", f"{wrong} of {found.num_wrong}")
        bad += [f"{task_name} {part} {uid}: the gold is judged {reason}" for uid, reason in found.rejected]
        bad += [f"{task_name} {part} {uid}: judged right: {text[-80:]!r}" for uid, text in found.accepted]
    out.print(table)
    for line in bad:
        err.print(line, markup=False, highlight=False, soft_wrap=True)
    if bad:
        err.print(f"[red]{len(bad)} verdicts are not as they must be.[/red]")
        raise typer.Exit(1)


def _splits(name: str, task: Task, split: list[str] | None) -> Iterator[tuple[str, Task, str]]:
    for part in split or task.splits:
        yield name, task, part


def _at_hand(settings: dict[str, Any]) -> Iterator[tuple[str, Task, str]]:
    """Every task and split that needs no hub with these settings; the others are named."""
    broken = TASKS.broken()
    for name in TASKS.names():
        if name in broken:
            err.print(f"{name}: left out. {broken[name]}", markup=False, highlight=False, soft_wrap=True)
            continue
        cls = TASKS.get(name)
        own = {key: value for key, value in settings.items() if key in {f.name for f in dataclasses.fields(cls)}}
        sources = getattr(cls, "sources", None)
        if name == "jsonl":
            err.print("jsonl: left out, ask for it by name with its path")
            continue
        for part in cls.splits:
            file = None if sources is None else Path(str(own.get("path", ""))) / f"{sources[part].file}.jsonl"
            if file is None or ("path" in own and file.is_file()):
                yield name, TASKS.build(name, **own), part
            else:
                err.print(
                    f"{name} {part}: left out, {file if 'path' in own else 'the hub'} is not at hand", markup=False
                )


@app.command(
    help="Find evaluation problems that are also in training, by text and by 13-grams; exit code 1 if any.\n\n"
    "Each side is a task, `task:split`, or a file (.jsonl or .parquet with a column `problem`, or the one named by "
    "columns.problem).\n\n"
    "Examples:\n\n    killick tasks overlap math_train:train math500 --set path=data/bench\n"
    "    killick tasks overlap mine.jsonl aime25 --set columns.problem=question"
)
def overlap(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Training problems; default split `train`.")],
    evaluation: Annotated[str, typer.Argument(metavar="EVAL", help="Evaluation problems; default split `test`.")],
    min_share: Annotated[float, typer.Option(help="Share of an evaluation problem's 13-grams that counts.")] = 0.5,
    set_: SettingsOption = None,
) -> None:
    """See help."""
    from killick.tasks.overlap import overlap as compare

    settings = parse_settings(set_)
    _refuse_unknown(settings, train, evaluation)
    found = compare(_rows(train, "train", settings), _rows(evaluation, "test", settings), min_share)
    for match in found.matches:
        line = {"eval": match.eval_uid, "train": match.train_uid, "kind": match.kind, "share": round(match.share, 3)}
        typer.echo(json.dumps(line, ensure_ascii=False))
    err.print(f"{found}.", markup=False, highlight=False)
    if found.matches:
        raise typer.Exit(1)


def _is_file(text: str) -> bool:
    return text.endswith((".jsonl", ".parquet"))


def _known(side: str) -> set[str]:
    """The settings one side of a comparison has."""
    return (
        set(_OF_A_FILE) if _is_file(side) else {f.name for f in dataclasses.fields(TASKS.get(side.partition(":")[0]))}
    )


def _refuse_unknown(settings: dict[str, Any], *sides: str) -> None:
    """Every setting must belong to a side; what belongs to one only is not given to the other.

    Raises:
        ConfigError: one does not.
    """
    known = set().union(*map(_known, sides))
    for key in settings:
        if key not in known:
            raise ConfigError(f"Neither {' nor '.join(sides)} has a setting {key!r}. {nearest(key, known)}")


def _rows(text: str, default: str, settings: dict[str, Any]) -> list[Row]:
    """Rows of a file (questions only), or of a task and split."""
    own = {key: value for key, value in settings.items() if key in _known(text)}
    if _is_file(text):
        from killick.tasks.jsonl import questions

        return questions(text, **own)
    name, _, split = text.partition(":")
    task: Task = TASKS.build(name, **own)
    if not split and default not in task.splits:
        raise ConfigError(
            f"{name} has no split {default!r}. Say which one: {', '.join(f'{name}:{part}' for part in task.splits)}."
        )
    return task.rows(split or default)
