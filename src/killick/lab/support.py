"""`support`: Theorem 4.3. How large must q be to bring in a right answer that the reference hardly ever finds?"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.errors import ConfigError
from killick.lab.objective import TableGuide, descend, shaper
from killick.lab.output import DASHED, DOTTED, Track, silent, trace
from killick.lab.theory import stationary
from killick.lab.tree import Problems, Tree, check_range, draw_problems
from killick.maths import closed_form_logp, support_threshold
from killick.methods.guides.base import BoundedGuide
from killick.report.markup import number
from killick.report.palette import HUES
from killick.report.types import Cell, Figure, Panel, Table

FORMS = ("k1_reward_to_go", "k3_loss", "k3_ratio")
Q_LARGEST = 1e8
"""Where the search for a form's threshold ends."""
BISECTIONS = 40
Method = Callable[[Problems, int, Tensor, str, float], Tensor]


@dataclass(frozen=True)
class SupportSettings:
    """What `killick lab support` runs.

    Attributes:
        branching: tokens to choose from at every node.
        depth: tokens of an answer.
        correct: right answers; the first of them is the rare one.
        spread: standard deviation of the reference's logits.
        beta: weight of the anchor.
        delta: the support S_δ holds the answers with π ≥ δ; 1/δ samples find such an answer once on average.
        mass: π_ref of the rare answer in the sweep of q, below δ.
        points: values of q in that sweep.
        seed: of the problem.

    Raises:
        ConfigError: a number out of range.
    """

    branching: int = 3
    depth: int = 3
    correct: int = 3
    spread: float = 1.0
    beta: float = 0.3
    delta: float = 0.05
    mass: float = 1e-3
    points: int = 25
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("beta", self.beta, 0.005, 100.0)
        check_range("delta", self.delta, 0.0, 0.5, open_low=True)
        check_range("mass", self.mass, 0.0, 0.5, open_low=True)
        check_range("points", self.points, 2, 200)
        check_range("seed", self.seed, 0, 2**31)
        if self.mass >= self.delta:
            raise ConfigError(
                f"mass = {self.mass} is not below delta = {self.delta}: the reference's support holds the answer. "
                "Choose a smaller mass."
            )


def rare_problem(settings: SupportSettings, masses: list[float]) -> tuple[Problems, int]:
    """One problem per mass, equal but for π_ref(y*); the other answers keep their proportions. And the index of y*."""
    tree = Tree(settings.branching, settings.depth)
    drawn = draw_problems(tree, settings.correct, settings.spread, 1, settings.seed)
    answer = int(drawn.reward_SY[0].argmax())
    p_Y = tree.answer_logp(drawn.reference_SNV)[0].exp()
    mass_S1 = torch.tensor(masses, dtype=torch.float64)[:, None]
    p_SY = p_Y * (1.0 - mass_S1) / (1.0 - p_Y[answer])
    p_SY[:, answer] = mass_S1[:, 0]
    problems = Problems(tree, tree.policy_of(p_SY.log()), drawn.reward_SY.repeat(len(masses), 1))
    return problems, answer


def guide_for(problems: Problems, answer: int, q_S: Float[Tensor, " S"]) -> TableGuide:
    """q(y*) = q, every other answer 1. The factor sits on the last token, the only one that y* shares with no other."""
    q_SYT = torch.ones(problems.num, problems.tree.num_answers, problems.tree.depth, dtype=torch.float64)
    q_SYT[:, answer, -1] = q_S
    return TableGuide(q_SYT.flatten(0, 1), q_min=1.0 / Q_LARGEST, q_max=Q_LARGEST)


def trained_mass(problems: Problems, answer: int, q_S: Tensor, kl_form: str, beta: float) -> Float[Tensor, " S"]:
    """π(y*) where the expected update of the form stands still, per problem."""
    found = descend(problems, shaper(kl_form, guide_for(problems, answer, q_S), beta))
    return problems.tree.answer_logp(found.policy_SNV)[:, answer].exp()


def stationary_mass(problems: Problems, answer: int, q_S: Tensor, kl_form: str, beta: float) -> Float[Tensor, " S"]:
    """The same from theory, without a gradient."""
    policy_SNV = stationary(problems, shaper(kl_form, guide_for(problems, answer, q_S), beta))
    assert policy_SNV is not None, "only form `none` has no fixed point"
    return problems.tree.answer_logp(policy_SNV)[:, answer].exp()


def smallest_q(mass_at: Callable[[Tensor], Tensor], num: int, delta: float) -> Float[Tensor, " S"]:
    """The smallest q with which y* holds δ or more: bisection of log q, all problems at once.

    Args:
        mass_at: q [S] -> π(y*) [S], growing in q.
        num: S.
        delta: δ.

    Returns:
        +inf where even `Q_LARGEST` does not bring it in; 0 where 1/`Q_LARGEST` does.
    """
    high_S = torch.full((num,), math.log(Q_LARGEST), dtype=torch.float64)
    low_S = -high_S
    never_S, always_S = mass_at(high_S.exp()) < delta, mass_at(low_S.exp()) >= delta
    for _ in range(BISECTIONS):
        middle_S = 0.5 * (low_S + high_S)
        inside_S = mass_at(middle_S.exp()) >= delta
        low_S, high_S = torch.where(inside_S, low_S, middle_S), torch.where(inside_S, middle_S, high_S)
    return torch.where(never_S, torch.inf, torch.where(always_S, 0.0, high_S.exp()))


def run(settings: SupportSettings, track: Track = silent) -> dict[str, Any]:
    """Thresholds for several masses of the rare answer, and its share of the policy as q grows.

    Returns:
        `settings`; `thresholds`, a row per mass with the smallest q by the theorem, of the policy `trained` under
        k1_reward_to_go, and of the other forms' fixed points (+inf, null in JSON: no q suffices);
        `sweep`, lists over q at the mass of the settings, with a second series for mass 0.
    """
    masses = [settings.mass * factor for factor in (10.0, 1.0, 0.1, 0.01)] + [0.0]
    masses = [mass for mass in masses if mass < settings.delta]
    problems, answer = rare_problem(settings, masses)
    logp_ref_SY = problems.tree.answer_logp(problems.reference_SNV)
    zero_Y = torch.zeros_like(logp_ref_SY[0])
    rows: list[dict[str, Any]] = []
    for mass, logp_ref_Y in zip(masses, logp_ref_SY, strict=True):
        reward_Y = problems.reward_SY[0]
        theorem = support_threshold(logp_ref_Y, zero_Y, reward_Y, settings.beta, settings.delta, answer)
        rows.append({"mass": mass, "theorem": float(theorem)})
    methods = [("trained", trained_mass, FORMS[0]), *((form, stationary_mass, form) for form in FORMS[1:])]
    for name, method, form in methods:

        def mass_at(q_S: Tensor, method: Method = method, form: str = form) -> Tensor:
            return method(problems, answer, q_S, form, settings.beta)

        for row, value in zip(rows, smallest_q(mass_at, len(rows), settings.delta).tolist(), strict=True):
            row[name] = value
    sweep = _sweep(settings, rows[masses.index(settings.mass)]["theorem"], track)
    bound = BoundedGuide().q_max
    return {
        "experiment": "support",
        "settings": asdict(settings),
        "shipped_q_max": bound,
        "shipped_q_answer": bound**settings.depth,
        "thresholds": rows,
        "sweep": sweep,
    }


def _sweep(settings: SupportSettings, threshold: float, track: Track) -> dict[str, Any]:
    q_S = torch.logspace(-2, 2, settings.points, dtype=torch.float64) * threshold
    sweep: dict[str, Any] = {"q": q_S.tolist()}
    for label, mass in track([("mass", settings.mass), ("zero", 0.0)], "policies as q grows"):
        problems, answer = rare_problem(settings, [mass] * settings.points)
        log_q_SY = torch.zeros_like(problems.reward_SY)
        log_q_SY[:, answer] = q_S.log()
        logp_ref_SY = problems.tree.answer_logp(problems.reference_SNV)
        closed_SY = closed_form_logp(logp_ref_SY, log_q_SY, problems.reward_SY, settings.beta)
        series = {"closed_form": closed_SY[:, answer].exp().tolist()}
        for form in FORMS:
            series[form] = trained_mass(problems, answer, q_S, form, settings.beta).tolist()
        sweep[label] = series
    return sweep


def panel(data: Mapping[str, Any]) -> Panel:
    """Table and figure of `run`."""
    settings = data["settings"]
    keys = ("theorem", "trained", *FORMS[1:])
    rows: list[list[Cell | str]] = [
        [f"{row['mass']:g}", *(_threshold(row[key]) for key in keys)] for row in data["thresholds"]
    ]
    table = Table(
        f"Smallest q(y*) that brings y* into the support, δ = {settings['delta']:g}, β = {settings['beta']:g}",
        ["π_ref(y*)", "Theorem 4.3", f"trained, {FORMS[0]}", *(f"{form}'s point" for form in FORMS[1:])],
        rows,
        caption=(
            "`never`: no q suffices. Below 1: the reward alone brings y* in; 0: any q does. With the shipped bounds "
            f"a guide gives at most {data['shipped_q_max']:g} a token, {number(data['shipped_q_answer'], 2)} for "
            f"{settings['depth']} tokens."
        ),
    )
    note = (
        "A right answer y* that the reference finds with probability π_ref(y*) < δ. The theorem says how large q(y*) "
        "must be; the trained policy is followed to where it stands still at each q. An answer of probability zero "
        "stays at zero: the anchor redistributes, it does not create."
    )
    return Panel("Support: what q brings in, and what it cannot", [table, _figure(data)], note)


def _threshold(value: float | None) -> str:
    return "never" if value is None or value == math.inf else f"{value:.4g}"


def _figure(data: Mapping[str, Any]) -> Figure:
    sweep, settings = data["sweep"], data["settings"]
    traces = [trace("closed form", sweep["q"], sweep["mass"]["closed_form"], line={"color": HUES[0]})]
    for hue, form in zip(HUES[1:], FORMS, strict=False):
        traces.append(trace(f"trained, {form}", sweep["q"], sweep["mass"][form], marker={"color": hue, "size": 7}))
    traces.append(trace("trained, π_ref(y*) = 0", sweep["q"], sweep["zero"][FORMS[0]], line=DOTTED))
    traces.append(trace("δ", [sweep["q"][0], sweep["q"][-1]], [settings["delta"]] * 2, line=DASHED))
    layout = {
        "xaxis": {"type": "log", "title": {"text": "q(y*)"}},
        "yaxis": {"title": {"text": "π(y*)"}},
        "hovermode": "closest",
    }
    return Figure(f"Share of y* in the policy, π_ref(y*) = {settings['mass']:g}", traces, layout, height=460)
