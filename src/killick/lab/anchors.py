"""`anchors`: where every `kl_form` with every guide ends, against the closed form q·π_ref·exp(r/β)/Z."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.errors import ConfigError
from killick.lab.objective import TableGuide, descend, shaper
from killick.lab.output import DASHED, Track, named_axis, silent, trace
from killick.lab.theory import closed_form, stationary
from killick.lab.tree import Problems, Tree, check_range, draw_problems
from killick.methods.guides import GUIDES
from killick.methods.kl_forms import KL_FORMS
from killick.methods.slots import Guide
from killick.report.markup import number
from killick.report.palette import HUES, SYMBOLS, method_colours
from killick.report.types import Cell, Figure, Panel, Table

AGREE = 1e-3
"""Total variation below which two policies are said to agree."""
MEASURES = ("success", "entropy", "coverage")
GUIDE_NAMES = ("none", "branch", "token", "oracle")


@dataclass(frozen=True)
class AnchorsSettings:
    """What `killick lab anchors` runs.

    Attributes:
        branching: tokens to choose from at every node.
        depth: tokens of an answer.
        correct: right answers of a problem.
        spread: standard deviation of the reference's logits; 0 is a uniform reference.
        beta: weight of the anchor.
        gamma: strength of the branch guide.
        tau: its threshold, nats. The shipped 1.2 exceeds the entropy of any choice among three.
        alpha: strength of the token guide, without noise.
        k: samples of the coverage.
        seeds: problems, of which tables show the mean.
        seed: of the first.

    Raises:
        ConfigError: a number out of range.
    """

    branching: int = 3
    depth: int = 3
    correct: int = 3
    spread: float = 1.0
    beta: float = 0.3
    gamma: float = 0.3
    tau: float = 0.6
    alpha: float = 0.3
    k: int = 8
    seeds: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("beta", self.beta, 0.005, 100.0)
        check_range("k", self.k, 1, 1_000_000)
        check_range("seed", self.seed, 0, 2**31)

    def problems(self) -> Problems:
        """The problems these settings describe."""
        tree = Tree(self.branching, self.depth)
        return draw_problems(tree, self.correct, self.spread, self.seeds, self.seed)


def equalising_q(problems: Problems) -> Float[Tensor, "S N V"]:
    """The oracle's q: what would turn the reference into the policy that finds every right answer equally often.

    q(s, a) = (share of the right answers below s that lie behind a) / π_ref(a|s); 1 where no right answer is left.
    """
    tree = problems.tree
    levels = [
        problems.reward_SY.reshape(problems.num, tree.branching**t, tree.branching, -1).sum(-1)
        for t in range(tree.depth)
    ]
    num_right = torch.cat(levels, 1)
    total = num_right.sum(-1, keepdim=True)
    return torch.where(total > 0, num_right / total.clamp(min=1) / problems.reference_SNV.softmax(-1), 1.0)


def make_guide(name: str, problems: Problems, settings: AnchorsSettings) -> Guide | None:
    """A guide by its name in the tables of the lab, for all answers as rows."""
    if name == "none":
        return None
    if name == "oracle":
        rows = problems.tree.all_rows(problems.num)
        return TableGuide(rows.taken(rows.states(equalising_q(problems))))
    if name == "branch":
        return GUIDES.build("branch", gamma=float(settings.gamma), tau=float(settings.tau))
    if name == "token":
        quiet = {"sigma_upper": 0.0, "sigma_lower": 0.0}  # an expectation is exact only without noise
        return GUIDES.build("token", alpha_upper=float(settings.alpha), alpha_lower=0.0, **quiet)
    raise ConfigError(f"The lab knows no guide {name!r}. Known: {', '.join(GUIDE_NAMES)}.")


def arms() -> list[tuple[str, str]]:
    """(kl_form, guide) of every combination that is allowed."""
    return [
        (form, guide)
        for form, entry in KL_FORMS.items()
        for guide in GUIDE_NAMES
        if guide == "none" or entry.takes_guide
    ]


def measures(problems: Problems, policy_SNV: Float[Tensor, "S N V"], k: int) -> dict[str, list[float]]:
    """Per problem: success, entropy of the answer (nats), and coverage, the expected share of right answers among k
    samples: the mean of 1 − (1 − π(y))^k over right y.
    """
    p_SY = problems.tree.answer_logp(policy_SNV).exp()
    found_SY = -torch.expm1(k * torch.log1p(-p_SY.clamp(max=1.0)))
    right_SY = problems.reward_SY
    return {
        "success": (p_SY * right_SY).sum(-1).tolist(),
        "entropy": torch.special.entr(p_SY).sum(-1).tolist(),
        "coverage": ((found_SY * right_SY).sum(-1) / right_SY.sum(-1)).tolist(),
    }


def total_variation(problems: Problems, one_SNV: Tensor, other_SNV: Tensor) -> list[float]:
    """½ Σ |π − π'| over answers, per problem."""
    one, other = (problems.tree.answer_logp(policy).exp() for policy in (one_SNV, other_SNV))
    return (0.5 * (one - other).abs().sum(-1)).tolist()


def run(settings: AnchorsSettings, track: Track = silent) -> dict[str, Any]:
    """Every form with every guide: where the expected update stands still, and where theory says it does.

    Returns:
        `settings`, the `reference`'s measures, and `rows`, one per form and guide, whose measures are lists over
        problems. `tv_stationary` is None for form "none".
    """
    problems = settings.problems()
    rows: list[dict[str, Any]] = []
    unguided: dict[str, Tensor] = {}
    for form, name in track(arms(), "forms and guides"):
        anchor = shaper(form, make_guide(name, problems, settings), settings.beta)
        found = descend(problems, anchor)
        closed, own = closed_form(problems, anchor), stationary(problems, anchor)
        unguided.setdefault(form, found.policy_SNV)  # "none" is the first guide of each form
        tv_closed = total_variation(problems, found.policy_SNV, closed)
        tv_own = None if own is None else total_variation(problems, found.policy_SNV, own)
        rows.append(
            {
                "kl_form": form,
                "guide": name,
                **measures(problems, found.policy_SNV, settings.k),
                "closed_form": measures(problems, closed, settings.k),
                "tv_closed_form": tv_closed,
                "tv_stationary": tv_own,
                "tv_unguided": total_variation(problems, found.policy_SNV, unguided[form]),
                "agrees_closed_form": max(tv_closed) <= AGREE,
                "agrees_stationary": None if tv_own is None else max(tv_own) <= AGREE,
                "converged": found.converged,
                "residual": found.residual,
                "num_steps": found.num_steps,
            }
        )
    reference = measures(problems, problems.reference_SNV, settings.k)
    return {"experiment": "anchors", "settings": asdict(settings), "reference": reference, "rows": rows}


def mean(values: list[float]) -> float:
    """Mean over problems."""
    return sum(values) / len(values)


def _distance(values: list[float] | None) -> str:
    return "–" if values is None else f"{max(values):.1e}"


def panel(data: Mapping[str, Any]) -> Panel:
    """Table and figures of `run`."""
    settings, rows = data["settings"], data["rows"]
    k = settings["k"]
    ends = ["success", "entropy", f"coverage@{k}"]
    columns = ["kl_form", "guide", *ends, f"closed: {ends[0]}", *ends[1:]]
    columns += ["TV to closed", "agrees", "TV to own point", "agrees", "moved by guide"]
    yes = {True: "yes", False: "no", None: "–"}
    body: list[list[Cell | str]] = []
    for row in rows:
        reached = [number(mean(place[key])) for place in (row, row["closed_form"]) for key in MEASURES]
        closed = [_distance(row["tv_closed_form"]), yes[row["agrees_closed_form"]]]
        own = [_distance(row["tv_stationary"]), yes[row["agrees_stationary"]] if row["converged"] else "no rest"]
        body.append([row["kl_form"], row["guide"], *reached, *closed, *own, _distance(row["tv_unguided"])])
    start = ", ".join(f"{key} {number(mean(data['reference'][key]))}" for key in MEASURES)
    table = Table(
        f"Where each form ends: {settings['branching']}^{settings['depth']} answers, {settings['correct']} right, "
        f"β = {settings['beta']:g}, {settings['seeds']} problems",
        columns,
        body,
        caption=(
            "Means over problems; distances are the largest. TV: total variation. `closed`: q·π_ref·exp(r/β)/Z. `own "
            "point`: what the form's gradient really stands still at, worked out without gradients. `moved by guide`: "
            "TV to the same form without a guide. Form `none` has no single fixed point; its `closed` is the reference "
            "given that the answer is right. `no rest`: the update never stands still, because the guide jumps. "
            f"Reference: {start}."
        ),
    )
    note = (
        "The expected update of each form is followed to where it stands still. Only `k1_reward_to_go` is the gradient "
        "of the objective, so only it reaches the closed form; the others have fixed points of their own."
    )
    return Panel("Anchors: what each kl_form converges to", [table, _plane(rows, k), _distances(rows)], note)


def _plane(rows: list[Mapping[str, Any]], k: int) -> Figure:
    hues = method_colours([row["kl_form"] for row in rows])
    traces = []
    for row in rows:
        if row["kl_form"] == "k1_reward_to_go":
            closed = [[mean(row["closed_form"][key])] for key in ("success", "coverage")]
            star = {"color": "#8a8a8a", "symbol": "star", "size": 15}
            traces.append(trace(f"closed form, {row['guide']}", *closed, marker=star))
    for row in rows:
        marker = {"color": hues[row["kl_form"]], "symbol": SYMBOLS[GUIDE_NAMES.index(row["guide"])], "size": 10}
        point = [mean(row["success"])], [mean(row["coverage"])]
        traces.append(trace(f"{row['kl_form']}, {row['guide']}", *point, marker=marker))
    layout = {
        "xaxis": {"title": {"text": "success"}},
        "yaxis": {"title": {"text": f"coverage@{k}"}},
        "hovermode": "closest",
    }
    return Figure("Success and coverage where each form ends", traces, layout, height=560)


def _distances(rows: list[Mapping[str, Any]]) -> Figure:
    traces: list[dict[str, Any]] = []
    for key, name, symbol, colour in (
        ("tv_closed_form", "to the closed form", "circle", HUES[1]),
        ("tv_stationary", "to the form's own point", "diamond", HUES[0]),
    ):
        shown = [(max(row[key]), place) for place, row in enumerate(rows) if row[key] is not None]
        x, y = [max(value, 1e-9) for value, _ in shown], [place for _, place in shown]
        traces.append(trace(name, x, y, marker={"color": colour, "symbol": symbol, "size": 9}))
    traces.append(trace(f"{AGREE:g}", [AGREE, AGREE], [-0.5, len(rows) - 0.5], line=DASHED))
    layout = {
        "xaxis": {"type": "log", "title": {"text": "largest total variation"}, "exponentformat": "power"},
        "yaxis": named_axis([f"{row['kl_form']}, {row['guide']}" for row in rows]),
    }
    heading = "Distance to the closed form and to the form's own fixed point"
    return Figure(heading, traces, layout, height=140 + 24 * len(rows))
