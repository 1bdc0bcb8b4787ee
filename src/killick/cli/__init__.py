"""The command line: each command parses, calls the library, prints. Errors of ours come without a traceback."""

import errno
import logging
import sys
from typing import Any

import typer

from killick.cli import compare, doctor, evaluate, lab, nano, recipes, report, study, tasks, train, verify
from killick.cli.console import err, quiet_hub
from killick.errors import KillickError

INTERRUPTED = 130

app = typer.Typer(
    name="killick",
    help="Keep reinforcement learning with verifiable rewards from stalling or collapsing.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for module in (train, evaluate, compare, report, study, recipes, doctor, verify):
    module.register(app)
app.add_typer(tasks.app, name="tasks")
app.add_typer(nano.app, name="nano")
app.add_typer(lab.app, name="lab")


def main(argv: list[str] | None = None) -> None:
    """Run a command and exit: 0 fine, 1 a finding (`doctor`, `tasks validate`), 2 wrong use, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Δ must not end a command
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """As `main`, but returns the exit code."""
    quiet_hub()
    try:
        code: Any = app(argv, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except KillickError as error:
        err.print(f"[bold red]{type(error).__name__}[/bold red]", end=" ")
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        err.print("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        err.print(f"No space left to write to: {error}", markup=False)
        return KillickError.exit_code
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # wrong use of the command line itself
            error.show()
            return int(error.exit_code)
        raise
