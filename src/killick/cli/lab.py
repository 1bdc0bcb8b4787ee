"""`killick lab`: each objective against its closed form, on problems small enough to enumerate."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from killick.cli.console import err, out, written

app = typer.Typer(help="Each objective against its closed form, on small problems, in seconds.", no_args_is_help=True)

Branching = Annotated[int, typer.Option(help="Tokens to choose from at every node.")]
Depth = Annotated[int, typer.Option(help="Tokens of an answer.")]
Correct = Annotated[int, typer.Option(help="Right answers of a problem.")]
Spread = Annotated[float, typer.Option(help="Standard deviation of the reference's logits; 0 is uniform.")]
Beta = Annotated[float, typer.Option(help="Weight of the anchor.")]
Gamma = Annotated[float, typer.Option(help="Strength of the branch guide.")]
Tau = Annotated[float, typer.Option(help="Threshold of the branch guide, nats.")]
Samples = Annotated[int, typer.Option("--k", help="Samples of the coverage.")]
Seed = Annotated[int, typer.Option(help="Seed; the same seed gives the same numbers.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of JSON, PNG and lab.html.")]
FOLDER = Path("runs/lab")
FILES = "Prints tables; writes JSON, a PNG and a panel of lab.html into --out.\n\n"


def _finish(run: Callable[..., dict[str, Any]], settings: Any, folder: Path) -> None:
    """Run, print the tables, write the files, say which."""
    from rich.progress import track

    from killick.lab import output
    from killick.provenance import make_folder

    output.check_drawing()
    make_folder(folder)  # before the work, so that a wrong folder costs nothing

    def bar(items: Sequence[Any], what: str) -> Iterable[Any]:
        return track(items, description=what, console=err, transient=True)

    data = run(settings, bar)
    for table in output.terminal_tables(output.panel_of(data)):
        out.print(table)
    written(*output.write(folder, data))


@app.command(
    help="Where every kl_form with every guide ends, against q·π_ref·exp(r/β)/Z.\n\n"
    f"{FILES}Examples:\n\n    killick lab anchors\n    killick lab anchors --branching 4 --depth 3 --beta 0.1 --tau 1.0"
)
def anchors(
    branching: Branching = 3,
    depth: Depth = 3,
    correct: Correct = 3,
    spread: Spread = 1.0,
    beta: Beta = 0.3,
    gamma: Gamma = 0.3,
    tau: Tau = 0.6,
    alpha: Annotated[float, typer.Option(help="Strength of the token guide.")] = 0.3,
    k: Samples = 8,
    seeds: Annotated[int, typer.Option(help="Problems; tables show their mean.")] = 4,
    seed: Seed = 0,
    folder: Out = FOLDER,
) -> None:
    """See help."""
    from killick.lab import anchors as lab

    settings = lab.AnchorsSettings(branching, depth, correct, spread, beta, gamma, tau, alpha, k, seeds, seed)
    _finish(lab.run, settings, folder)


@app.command(
    help="Theorem 4.3: how large q must be to bring a rare right answer into the support; zero stays zero.\n\n"
    f"{FILES}Examples:\n\n    killick lab support\n    killick lab support --delta 0.01 --mass 1e-4"
)
def support(
    branching: Branching = 3,
    depth: Depth = 3,
    correct: Correct = 3,
    spread: Spread = 1.0,
    beta: Beta = 0.3,
    delta: Annotated[float, typer.Option(help="The support holds answers with probability >= delta.")] = 0.05,
    mass: Annotated[float, typer.Option(help="Reference probability of the rare answer in the sweep of q.")] = 1e-3,
    points: Annotated[int, typer.Option(help="Values of q in the sweep.")] = 25,
    seed: Seed = 0,
    folder: Out = FOLDER,
) -> None:
    """See help."""
    from killick.lab import support as lab

    settings = lab.SupportSettings(branching, depth, correct, spread, beta, delta, mass, points, seed)
    _finish(lab.run, settings, folder)


@app.command(
    help="SORT's weight where the true plan is known: error, bound and regret as plans get worse.\n\n"
    f"{FILES}Examples:\n\n    killick lab repair\n    killick lab repair --alternatives 32 --certainty 0.8"
)
def repair(
    texts: Annotated[int, typer.Option(help="Reference texts.")] = 64,
    length: Annotated[int, typer.Option(help="Tokens of the longest text.")] = 48,
    decisions: Annotated[float, typer.Option(help="Share of decision tokens.")] = 0.2,
    alternatives: Annotated[int, typer.Option(help="Tokens to choose from at a decision.")] = 8,
    certainty: Annotated[float, typer.Option(help="How firmly the model follows an entry of the plan.")] = 0.95,
    plans: Annotated[int, typer.Option(help="Single plans drawn at each rate.")] = 200,
    seed: Seed = 0,
    folder: Out = FOLDER,
) -> None:
    """See help."""
    from killick.lab import repair as lab

    settings = lab.RepairSettings(texts, length, decisions, alternatives, certainty, plans, seed)
    _finish(lab.run, settings, folder)


@app.command(
    help="Coverage lost to sampling noise: GRPO in small groups against its exact mean, with and without anchors.\n\n"
    f"{FILES}Examples:\n\n    killick lab shrinkage\n    killick lab shrinkage --group 2 --group 8 --beta 0.05\n"
    "    killick lab shrinkage --advantage standardised --spread 1"
)
def shrinkage(
    branching: Branching = 3,
    depth: Depth = 3,
    correct: Correct = 3,
    spread: Spread = 0.0,
    beta: Beta = 0.1,
    gamma: Gamma = 0.3,
    tau: Tau = 0.6,
    advantage: Annotated[str, typer.Option(help="centred or standardised.")] = "centred",
    group: Annotated[list[int] | None, typer.Option(help="Group size G (repeatable). Default: 4 and 16.")] = None,
    steps: Annotated[int, typer.Option(help="Updates, one group each.")] = 300,
    rate: Annotated[float, typer.Option(help="Length of a gradient step on the logits.")] = 1.0,
    k: Samples = 8,
    trees: Annotated[int, typer.Option(help="Problems.")] = 4,
    seeds: Annotated[int, typer.Option(help="Sampled runs of each problem.")] = 32,
    seed: Seed = 0,
    folder: Out = FOLDER,
) -> None:
    """See help."""
    from killick.lab import shrinkage as lab

    problem = {"branching": branching, "depth": depth, "correct": correct, "spread": spread, "trees": trees}
    anchor = {"beta": beta, "gamma": gamma, "tau": tau}
    training = {"advantage": advantage, "steps": steps, "rate": rate, "k": k, "seeds": seeds, "seed": seed}
    groups = {"groups": tuple(group)} if group else {}
    _finish(lab.run, lab.ShrinkageSettings(**problem, **anchor, **training, **groups), folder)  # type: ignore[arg-type]
