"""`killick evaluate`: sample a model on a task with every setting pinned, and estimate pass@k."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from killick.cli.console import SetOption, err, out, quiet_transformers, written
from killick.cli.tasks import parse_settings
from killick.config import EvaluateSection, Recipe, load_recipe
from killick.errors import ConfigError
from killick.evaluate.settings import Performance, describe, evaluation_settings
from killick.tasks import TASKS
from killick.tasks.types import Task

HELP = """Sample a model on a task and estimate pass@k with intervals. Run the same command again to resume.

MODEL_OR_RUN is `nano`, a local model folder, a hub name, or a run folder of `killick train`.

Examples:

    killick evaluate nano --task countdown --split mixed --samples 256
    killick evaluate runs/nano-1f2e3d4c5b6a --task countdown --split hard --samples 256
    killick evaluate models/smollm2 --task gsm8k --task-set path=data --split test --problems 50 --samples 16
    killick evaluate nano --recipe nano
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(evaluate)


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL_OR_RUN", help="What to sample.")],
    task: Annotated[str | None, typer.Option(help="Registered task (see `killick tasks list`).")] = None,
    split: Annotated[list[str] | None, typer.Option(help="Split (repeatable).")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Completions a problem (N).")] = None,
    problems: Annotated[int | None, typer.Option(min=1, help="First problems of the split. Default: all.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0 is greedy.")] = None,
    top_p: Annotated[float | None, typer.Option(help="1 keeps every token.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Longest completion, tokens. Default: 256, or half the positions of a small model."),
    ] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Stop string (repeatable).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Names the random streams.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows decoded together (speed only).")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 (default) or bfloat16; or as the recipe says.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Take task and settings from this recipe.")] = None,
    set_: SetOption = None,
    task_set: Annotated[
        list[str] | None, typer.Option("--task-set", metavar="KEY=VALUE", help="A setting of the task.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--out", help="Folder; one subfolder a split.")] = None,
) -> None:
    """See HELP."""
    given: dict[str, Any] = {
        "splits": tuple(split) if split else None,
        "num_problems": problems,
        "num_samples": samples,
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "stop": tuple(stop) if stop else None,
        "seed": seed,
        "batch_size": batch_size,
    }
    if recipe is not None:
        resolved = load_recipe(recipe, set_)
        name, settings, section = resolved.task.name, resolved.task.settings, resolved.evaluate
        dtype = dtype or resolved.model.dtype
    elif set_:
        raise ConfigError("--set overrides keys of a recipe; say which with --recipe.")
    elif task is None or not split:
        raise ConfigError(
            "Say what to evaluate: --task NAME --split SPLIT, or --recipe NAME. See `killick tasks list`."
        )
    else:
        name, settings, section = task, {}, EvaluateSection()
    section = dataclasses.replace(section, **{k: v for k, v in given.items() if v is not None})
    if max_tokens is None and recipe is None:
        section = dataclasses.replace(section, max_tokens=_default_max_tokens(model))
    name, settings = task or name, {**settings, **parse_settings(task_set)}
    folder = output or _default_folder(model, name)
    evaluate_model(model, name, TASKS.build(name, **settings), section, folder, dtype or "float32")


def _default_max_tokens(model: str) -> int:
    """256, or half the positions of a small model: the other half is for the prompt."""
    quiet_transformers()
    from transformers import AutoConfig

    from killick.models import resolve

    source = resolve(model)
    config = AutoConfig.from_pretrained((source.base or source).name).get_text_config()
    positions = getattr(config, "max_position_embeddings", None)
    return min(256, positions // 2) if positions else 256


def _default_folder(model: str, task: str) -> Path:
    path = Path(model)
    if (path / "resolved.json").exists():
        return path / "eval"
    return Path("runs") / "eval" / f"{path.name or model}-{task}"


def check_evaluation(recipe: Recipe) -> None:
    """Everything of `[evaluate]` that can be wrong without a model, so that it shows before training and not after.

    Raises:
        ConfigError, DataError: a setting out of range, an unknown split, unreadable problems.
    """
    evaluation_settings(recipe.evaluate)
    Performance(batch_size=recipe.evaluate.batch_size, dtype=recipe.model.dtype)
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    for split in recipe.evaluate.splits:
        task.rows(split, recipe.evaluate.num_problems)


def evaluate_splits(run: str, recipe: Recipe, folder: Path) -> None:
    """Evaluate a trained run as its recipe says."""
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    evaluate_model(run, recipe.task.name, task, recipe.evaluate, folder, recipe.model.dtype, recipe.run.threads)


def evaluate_model(
    model: str, name: str, task: Task, section: EvaluateSection, folder: Path, dtype: str, threads: int | None = None
) -> None:
    """All splits of a section, a table, and the paths."""
    sampling = evaluation_settings(section)
    quiet_transformers()
    import torch

    from killick.evaluate.identity import model_identity
    from killick.evaluate.run import evaluate as run_evaluation
    from killick.models import load_model, resolve

    if threads:
        torch.set_num_threads(threads)
    identity = model_identity(resolve(model).name)
    loaded: tuple[Any, Any] | None = None
    table = Table("split", "problems", "samples", "pass@k", "estimate", "95% interval")
    for split in section.splits:
        spec = describe(name, task, split, section.num_problems, sampling, identity)
        spec = dataclasses.replace(spec, performance=Performance(batch_size=section.batch_size, dtype=dtype))
        loaded = loaded or load_model(model, dtype=dtype)
        err.print(f"{model} on {name}/{split}")
        result = run_evaluation(loaded[0], loaded[1], task, spec, folder / split)
        for k, entry in result.summary["pass_at"].items():
            interval = f"{entry['low']:.3f} … {entry['high']:.3f}"
            table.add_row(
                split, str(spec.num_problems), str(sampling.num_samples), f"pass@{k}", f"{entry['mean']:.3f}", interval
            )
        table.add_section()
    out.print(table)
    written(*(folder / split / "summary.json" for split in section.splits))
