"""`killick nano`: rebuild the shipped base model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from killick.cli.console import written

app = typer.Typer(help="The tiny world and its base model.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """A group with one command, so that `killick nano build` keeps its name when others join."""


@app.command(
    help="Pretrain the base model from scratch (seeded; at most 30 minutes on 2 cores).\n\n"
    "It needs no data and no network.\n\n"
    "Examples:\n\n    killick nano build --out models/nano\n    killick nano build --out models/weak --steps 800"
)
def build(
    output: Annotated[Path, typer.Option("--out", help="Folder of the new model.")] = Path("models/nano"),
    seed: Annotated[int, typer.Option(help="Seed of data and weights.")] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimiser steps. Default: those of the shipped base.")
    ] = None,
    score: Annotated[bool, typer.Option(help="Measure pass@k for the model card.")] = True,
) -> None:
    """See help."""
    from killick.nano.build import build_nano

    settings: dict[str, Any] = {} if steps is None else {"steps": steps}
    build_nano(output, seed=seed, score=score, **settings)
    written(output)
