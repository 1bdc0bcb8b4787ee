"""Results go to stdout, everything else to stderr, so that `--json` output can be piped."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

out = Console(
    width=None if sys.stdout is None or sys.stdout.isatty() else 140
)  # a log file has no width; 80 would tear tables apart
err = Console(stderr=True)

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, e.g. method.anchor.gamma=0.5."),
]


def written(*paths: Path) -> None:
    """Say what was written, one path a line."""
    for path in paths:
        err.print(f"Written: {path}", highlight=False, soft_wrap=True)


def quiet_hub() -> None:
    """No line for every attempt at a hub that cannot be reached: the error at the end says it once."""
    logging.getLogger("huggingface_hub.utils._http").addFilter(_no_attempts)


def _no_attempts(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    return not ("thrown while requesting" in text or text.startswith("Retrying in"))


def quiet_transformers() -> None:
    """No progress bars for loading and writing weights: they are seconds long and tear ours apart."""
    from transformers.utils import logging

    logging.disable_progress_bar()
