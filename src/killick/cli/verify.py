"""`killick verify`: judge a file of answers, score a verifier on labelled cases, or explain one verdict."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from killick.cli.console import err, out
from killick.errors import ConfigError, DataError
from killick.registry import nearest

if TYPE_CHECKING:
    from killick.verifiers.cases import Score
    from killick.verifiers.types import Verifier

HELP = """Judge answers: a file of them, or one verdict explained step by step.

A line of the file is JSON with gold and pred; with expected (true or false) and kind, the verifier itself is scored.

Examples:

    killick verify --gold "2\\sqrt{5}" --pred "so it is \\boxed{\\sqrt{20}}"
    killick verify --gold 18 --pred - --task gsm8k < completion.txt
    killick verify --cases answers.jsonl --columns gold=answer,pred=response --json
    killick verify --cases cases.jsonl --json
"""
_LONGEST = 400  # characters of a text that are printed
_IN_TRAINING = "in training and evaluation"
_WHY = 'no_answer (no box, answer tag or "final answer is")'


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(verify)


def verify(
    cases: Annotated[Path | None, typer.Option("--cases", help="JSONL file of cases to judge.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="KEY=NAME,…", help="Other names of gold, pred, expected, kind in the file.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", help="The right answer of one case; - is standard input.")
    ] = None,
    pred: Annotated[
        str | None, typer.Option("--pred", help="The completion, or an answer, to judge; - is standard input.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Judge as this task does. Default: as mathematics, anywhere.")
    ] = None,
    task_set: Annotated[
        list[str] | None, typer.Option("--task-set", metavar="KEY=VALUE", help="A setting of the task (repeatable).")
    ] = None,
    boxed: Annotated[
        bool,
        typer.Option("--boxed", help='Accept only a box, an answer tag or "final answer is", as training does.'),
    ] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout-s", help="Seconds for one call of math-verify. Default: 20.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """See HELP."""
    if task is not None and (boxed or timeout_s is not None):
        raise ConfigError("--task judges with the task's own settings: leave out --boxed and --timeout-s.")
    verifier = _verifier(task, task_set, fallback=not boxed, timeout_s=20.0 if timeout_s is None else timeout_s)
    if cases is not None and gold is None and pred is None:
        _judge_file(verifier, cases, _mapping(columns), task is None, as_json)
    elif cases is None and gold is not None and pred is not None:
        if columns is not None:
            raise ConfigError("--columns names the columns of a file: give it with --cases.")
        if gold == pred == "-":
            raise ConfigError("Only one of --gold and --pred can be read from standard input.")
        _explain(verifier, _text(gold), _text(pred), task is None, as_json)
    else:
        raise ConfigError("killick verify needs either --cases FILE, or --gold and --pred together.")


def _verifier(task: str | None, task_set: list[str] | None, *, fallback: bool, timeout_s: float) -> "Verifier":
    if task is not None:
        from killick.cli.tasks import parse_settings
        from killick.tasks import TASKS

        own: Verifier = TASKS.build(task, **parse_settings(task_set)).verifier
        return own
    if task_set:
        raise ConfigError("--task-set gives settings of a task: say which with --task.")
    from killick.verifiers.latex import LatexVerifier

    return LatexVerifier(fallback=fallback, timeout_s=timeout_s)


def _mapping(columns: str | None) -> dict[str, str]:
    """`gold=answer,pred=response` as a table."""
    from killick.verifiers.cases import KEYS

    names = {}
    for pair in columns.split(",") if columns is not None else ():
        key, _, name = (part.strip() for part in pair.partition("="))
        if not key or not name:
            raise ConfigError(f"--columns {columns!r}: {pair!r} is not KEY=NAME, as in gold=answer,pred=response.")
        if key not in KEYS:
            raise ConfigError(f"--columns has no key {key!r}. {nearest(key, KEYS)}")
        names[key] = name
    return names


def _text(option: str) -> str:
    """An option's text, or standard input without its last line end."""
    if option != "-":
        return option
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"Standard input is not UTF-8: {error}.") from error


def _judge_file(verifier: "Verifier", path: Path, names: dict[str, str], anywhere: bool, as_json: bool) -> None:
    from killick.verifiers.cases import load_cases, score
    from killick.verifiers.explain import only_by_fallback

    result = score(verifier, load_cases(path, names))
    if result.labelled:
        _show_score(result, as_json)
        return
    _show_verdicts(result, as_json)
    found = sum(only_by_fallback(verifier, case.pred) for case in result.cases) if anywhere else 0
    if found:
        text = f"{found} of {len(result.cases)}: {_IN_TRAINING} {_WHY}. --boxed or --task NAME judges as they do."
        err.print(text, markup=False, highlight=False, soft_wrap=True)


def _show_score(result: "Score", as_json: bool) -> None:
    from rich.table import Table

    content = result.to_dict()
    if as_json:
        typer.echo(json.dumps(content, indent=2))
        return
    table = Table("kind", "cases", "agreement", "false accepts", "false rejects")
    for kind, counts in [*content["by_kind"].items(), ("all", content)]:
        share = f"{counts['agreement']:.3f}"
        table.add_row(kind, str(counts["cases"]), share, str(counts["false_accepts"]), str(counts["false_rejects"]))
    out.print(table)
    for row in content["disagreements"]:
        verb = "rejected" if row["expected"] else "accepted"
        _print(f"{verb} ({row['reason']}): gold {row['gold']}  prediction {row['pred'][:100]}")


def _show_verdicts(result: "Score", as_json: bool) -> None:
    from rich.table import Table

    if as_json:
        for row in result.lines():
            typer.echo(json.dumps(row))
        return
    table = Table("reason", "cases", "share")
    for reason, num in [*result.reasons().items(), ("all", len(result.cases))]:
        table.add_row(reason, str(num), f"{num / len(result.cases):.3f}")
    out.print(table)
    for case, problem in zip(result.cases, result.problems, strict=True):
        if problem:
            _print(f"line {case.line}: {problem}")


def _explain(verifier: "Verifier", gold: str, pred: str, anywhere: bool, as_json: bool) -> None:
    from killick.verifiers.explain import explain, only_by_fallback

    verdict, told = explain(verifier, pred, gold)
    if anywhere and only_by_fallback(verifier, pred):
        told.append((_IN_TRAINING, _WHY))
    if as_json:
        content = {"correct": verdict.correct, "reason": verdict.reason, "steps": [list(step) for step in told]}
        typer.echo(json.dumps(content, indent=2))
        return
    width = max(len(name) for name, _ in told)
    for name, text in told:
        _print(f"{name:<{width}}  {text}")


def _print(text: str) -> None:
    """One line, in which nothing can act on a terminal; a longer text is cut."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    out.print(shown, markup=False, highlight=False, soft_wrap=True)
