"""`killick doctor`: versions, the host's contract, plug-ins, hardware. Exit code 1 when something is wrong."""

import os

import typer
from rich.markup import escape
from rich.table import Table

from killick.cli.console import out
from killick.provenance import versions

HELP = """Check the installation: versions, what killick relies on in TRL, plug-ins, threads and devices.

Example:

    killick doctor
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=HELP)(doctor)


def doctor() -> None:
    """See HELP."""
    import torch

    from killick.engines.trl.contract import check_contract
    from killick.methods.guides import GUIDES
    from killick.methods.repairs import REPAIRS
    from killick.report.panels import PANELS
    from killick.tasks import TASKS
    from killick.verifiers import VERIFIERS

    table = Table("check", "result")
    findings = 0
    for package, version in versions().items():
        table.add_row(package, version or "not installed")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table.add_row("device", f"{device}, {torch.get_num_threads()} threads of {os.cpu_count()} cores")
    for name, problem in check_contract().items():
        findings += problem is not None
        table.add_row(f"TRL: {name}", "[green]holds[/green]" if problem is None else f"[red]{problem}[/red]")
    for registry in (GUIDES, REPAIRS, TASKS, VERIFIERS, PANELS):
        broken = registry.broken()
        findings += len(broken)
        names = ", ".join(name for name in registry.names() if name not in broken)
        table.add_row(f"{registry.kind}s", names)
        for name, reason in broken.items():
            table.add_row(f"{registry.kind} {name}", f"[red]{escape(reason)}[/red]")
    out.print(table)
    if findings:
        raise typer.Exit(1)
