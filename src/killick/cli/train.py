"""`killick train`: one recipe, resumed by itself, then evaluated."""

import os
from pathlib import Path
from typing import Annotated

import typer

from killick.cli.console import SetOption, err, quiet_transformers, written
from killick.config import Recipe, load_recipe
from killick.models import resolve
from killick.tasks import TASKS

HELP = """Train a recipe, then evaluate it as its `[evaluate]` section says.

Run the same command again to resume after an interruption.

Examples:

    killick train nano
    killick train nano --set method.anchor.kl_form=k1_reward_to_go --set trl.beta=0.3
    killick train recipes/gsm8k_smollm2.toml --set model.name_or_path=HuggingFaceTB/SmolLM2-135M-Instruct
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(train)


def train(
    recipe: Annotated[str, typer.Argument(help="Name of a shipped recipe (see `killick recipes`) or a TOML file.")],
    set_: SetOption = None,
    run_dir: Annotated[Path | None, typer.Option(help="Run folder. Default: OUTPUT_DIR/NAME-HASH.")] = None,
    evaluate: Annotated[bool, typer.Option(help="Evaluate after training.")] = True,
) -> None:
    """See HELP."""
    resolved = load_recipe(recipe, set_)
    folder = run_dir or Path(resolved.run.output_dir) / f"{resolved.run.name}-{resolved.hash()}"
    if evaluate:
        from killick.cli.evaluate import check_evaluation

        check_evaluation(resolved)
    if not (folder / "model").exists():  # a trained run is only evaluated
        _check(resolved)
    err.print("loading torch and trl …")
    quiet_transformers()
    from killick.engines.trl.run import train as run_training

    model = run_training(resolved, folder, err)
    if int(os.environ.get("RANK", "0")) != 0:
        return  # started by torchrun or accelerate: one process evaluates and reports, for there is one folder
    written(folder / "train_log.jsonl", model)
    if evaluate and resolved.evaluate.splits:
        from killick.cli.evaluate import evaluate_splits

        evaluate_splits(str(folder), resolved, folder / "eval")


def _check(recipe: Recipe) -> None:
    """What can be wrong without TRL, which takes long to import: the model's place, task, guide and repair rule.

    Raises:
        ConfigError, DataError: it is.
    """
    resolve(recipe.model.name_or_path)
    TASKS.build(recipe.task.name, **recipe.task.settings)
    if recipe.anchor.name is not None:
        from killick.methods.guides import GUIDES

        GUIDES.build(recipe.anchor.name, **recipe.anchor.settings)
    from killick.methods.sort import build_repair

    build_repair(recipe.repair.name, recipe.repair.settings)
