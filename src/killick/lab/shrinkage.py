"""`shrinkage`: how many right answers survive when updates are sampled in small groups instead of taken in expectation.

Two runs of one objective from one reference with one optimiser (plain gradient steps on the logits):

    sampled    a group of G answers a step, advantages from the group, as GRPO does
    expected   the exact mean of that very update over all groups of G

What the expected run loses is the objective's doing; what the sampled runs lose beside it, that of finite groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.errors import ConfigError
from killick.lab.anchors import AnchorsSettings, make_guide, mean, measures
from killick.lab.objective import descent, expected_descent, per_token_loss, shaper
from killick.lab.output import DASHED, Track, named_axis, silent, trace
from killick.lab.tree import Problems, Tree, check_range, draw_problems
from killick.maths import centred, row_sum, standardised
from killick.methods.sage import AnchorShaper
from killick.registry import nearest
from killick.report.markup import number, signed
from killick.report.palette import HUES
from killick.report.types import Cell, Figure, Panel, Table

ARMS = (
    ("none", "none"),
    ("k3_loss", "none"),
    ("k3_loss", "branch"),
    ("k3_ratio", "none"),
    ("k2_loss", "none"),
    ("k1_reward_to_go", "none"),
    ("k1_reward_to_go", "branch"),
    ("forward_exact", "none"),
)
RULES: dict[str, Callable[[Tensor], Tensor]] = {"centred": centred, "standardised": standardised}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class ShrinkageSettings:
    """What `killick lab shrinkage` runs.

    Attributes:
        branching: tokens to choose from at every node.
        depth: tokens of an answer.
        correct: right answers of a problem.
        spread: standard deviation of the reference's logits. 0, a uniform reference, separates the two effects best:
            from an uneven one the expected run drops answers too.
        beta: weight of the anchor, in rewards per nat with centred advantages.
        gamma: strength of the branch guide.
        tau: its threshold, nats.
        advantage: rule for the advantages of a group, "centred" or "standardised".
        groups: sizes G.
        steps: updates of a run, one group each.
        rate: length of a gradient step on the logits.
        k: samples of the coverage.
        trees: problems.
        seeds: sampled runs of each problem.
        seed: of the first problem and of the sampling.

    Raises:
        ConfigError: a number out of range, or an unknown rule.
    """

    branching: int = 3
    depth: int = 3
    correct: int = 3
    spread: float = 0.0
    beta: float = 0.1
    gamma: float = 0.3
    tau: float = 0.6
    advantage: str = "centred"
    groups: tuple[int, ...] = (4, 16)
    steps: int = 300
    rate: float = 1.0
    k: int = 8
    trees: int = 4
    seeds: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("beta", self.beta, 0.005, 100.0)
        check_range("steps", self.steps, 1, 100_000)
        check_range("rate", self.rate, 0.0, 100.0, open_low=True)
        check_range("k", self.k, 1, 1_000_000)
        check_range("seed", self.seed, 0, 2**31)
        check_range("number of group sizes", len(self.groups), 1, 8)
        for size in self.groups:
            check_range("group", size, 2, 256)
            check_range("trees × seeds × group × depth", self.trees * self.seeds * size * self.depth, 1, 200_000)
        if self.advantage not in RULES:
            raise ConfigError(f"Unknown advantage {self.advantage!r}. {nearest(self.advantage, RULES)}")


def group_advantage(rule: Callable[[Tensor], Tensor], size: int) -> Callable[[Tensor], Tensor]:
    """The mean advantage of an answer over all groups it can be in.

    The other G − 1 members are right independently with the policy's success p: c of them ~ Binomial(G − 1, p).

    Args:
        rule: `centred` or `standardised`.
        size: G.

    Returns:
        success [S] -> advantage of a wrong and of a right answer, [S, 2].
    """
    others_G = torch.arange(size)
    # Row (own, c): the member itself, then c right ones, then wrong ones.
    siblings_GG = (torch.arange(size - 1) < others_G[:, None]).double()
    table = [torch.cat([torch.full((size, 1), own, dtype=torch.float64), siblings_GG], 1) for own in (0.0, 1.0)]
    advantage_2G = rule(torch.cat(table))[:, 0].reshape(2, size)

    def mean_advantage(success_S: Tensor) -> Tensor:
        count = torch.distributions.Binomial(size - 1, success_S.clamp(0.0, 1.0)[:, None])
        return count.log_prob(others_G.double()).exp() @ advantage_2G.T

    return mean_advantage


def sampled_descent(
    problems: Problems,
    policy_SNV: Float[Tensor, "S N V"],
    anchor: AnchorShaper,
    rule: Callable[[Tensor], Tensor],
    answer_SG: Tensor,
) -> Float[Tensor, "S N V"]:
    """The direction of one GRPO update: mean over the group of the sum over tokens.

    Args:
        problems: S problems, each updated from its own group.
        policy_SNV: logits.
        anchor: guide, `kl_form` and β.
        rule: advantages of a group.
        answer_SG: the group's answers.
    """
    policy_SNV = policy_SNV.detach().requires_grad_()
    num, size = answer_SG.shape
    rows = problems.tree.rows(torch.arange(num).repeat_interleave(size), answer_SG.flatten())
    advantage_SG = rule(problems.reward_SY.gather(1, answer_SG))
    per_token = per_token_loss(problems, policy_SNV, rows, advantage_SG.flatten(), anchor)
    return descent(row_sum(per_token, rows.mask).sum() / size, policy_SNV)


def train_sampled(
    problems: Problems, anchor: AnchorShaper, settings: ShrinkageSettings, size: int, generator: torch.Generator
) -> Float[Tensor, "S N V"]:
    """The policies after `steps` sampled updates."""
    policy_SNV = problems.reference_SNV
    for _ in range(settings.steps):
        answer_SG = problems.tree.sample(policy_SNV, size, generator)
        direction = sampled_descent(problems, policy_SNV, anchor, RULES[settings.advantage], answer_SG)
        policy_SNV = policy_SNV + settings.rate * direction
    return policy_SNV


def train_expected(
    problems: Problems, anchor: AnchorShaper, settings: ShrinkageSettings, size: int
) -> Float[Tensor, "S N V"]:
    """The policies after as many updates, each the mean over all groups of this size."""
    policy_SNV, advantage = problems.reference_SNV, group_advantage(RULES[settings.advantage], size)
    for _ in range(settings.steps):
        policy_SNV = policy_SNV + settings.rate * expected_descent(problems, policy_SNV, anchor, advantage)
    return policy_SNV


def run(settings: ShrinkageSettings, track: Track = silent) -> dict[str, Any]:
    """Both runs of every arm and group size.

    Returns:
        `settings`, the `reference`'s measures per tree, and `rows` with the expected run's coverage and success per
        tree, and of the sampled runs the quantiles of coverage, its mean per tree, and the mean success.
    """
    tree = Tree(settings.branching, settings.depth)
    problems = draw_problems(tree, settings.correct, settings.spread, settings.trees, settings.seed)
    many = problems.repeated(settings.seeds)
    guides = AnchorsSettings(gamma=settings.gamma, tau=settings.tau)
    cases = [(form, guide, size) for form, guide in ARMS for size in settings.groups]
    rows = []
    for form, guide, size in track(cases, "forms and group sizes"):
        anchor = shaper(form, make_guide(guide, problems, guides), settings.beta)
        expected = measures(problems, train_expected(problems, anchor, settings, size), settings.k)
        # Every arm meets the same stream of random numbers.
        generator = torch.Generator().manual_seed(settings.seed)
        sampled = measures(many, train_sampled(many, anchor, settings, size, generator), settings.k)
        rows.append({"kl_form": form, "guide": guide, "group": size} | _summary(expected, sampled, settings))
    reference = measures(problems, problems.reference_SNV, settings.k)
    return {"experiment": "shrinkage", "settings": asdict(settings), "reference": reference, "rows": rows}


def _summary(
    expected: dict[str, list[float]], sampled: dict[str, list[float]], settings: ShrinkageSettings
) -> dict[str, Any]:
    coverage = torch.tensor(sampled["coverage"], dtype=torch.float64)
    per_tree = coverage.reshape(settings.trees, settings.seeds).mean(1)
    lost = per_tree - torch.tensor(expected["coverage"], dtype=torch.float64)
    points = torch.tensor(QUANTILES, dtype=torch.float64)
    return {
        "expected_coverage": expected["coverage"],
        "expected_success": expected["success"],
        "sampled_coverage": per_tree.tolist(),
        "sampled_success": mean(sampled["success"]),
        "coverage_quantiles": coverage.quantile(points).tolist(),
        "noise_effect": float(lost.mean()),
    }


def panel(data: Mapping[str, Any]) -> Panel:
    """Table and figure of `run`."""
    settings, rows = data["settings"], data["rows"]
    start = mean(data["reference"]["coverage"])
    body: list[list[Cell | str]] = [
        [
            row["kl_form"],
            row["guide"],
            str(row["group"]),
            number(mean(row["expected_coverage"])),
            signed(mean(row["expected_coverage"]) - start),
            number(mean(row["sampled_coverage"])),
            signed(row["noise_effect"]),
            *(number(value, 2) for value in row["coverage_quantiles"]),
            number(mean(row["expected_success"])),
            number(row["sampled_success"]),
        ]
        for row in rows
    ]
    columns = ["kl_form", "guide", "G", "coverage, expected", "by objective", "coverage, sampled", "by noise"]
    columns += [f"{quantile:.0%}" for quantile in QUANTILES] + ["success, expected", "success, sampled"]
    table = Table(
        f"coverage@{settings['k']} after {settings['steps']} updates, {settings['trees']} problems × "
        f"{settings['seeds']} runs, β = {settings['beta']:g}, {settings['advantage']} advantages",
        columns,
        body,
        caption=(
            f"The reference has coverage {number(start)}. `by objective`: expected less reference. `by noise`: "
            "sampled runs less expected run. Percentages: quantiles of the sampled runs' coverage."
        ),
    )
    note = (
        "Sampled updates in groups of G against their exact mean: the same objective, start, steps and step length. "
        "What the expected run loses is the objective's doing; what the sampled runs lose beside it, that of small "
        "groups."
    )
    return Panel("Shrinkage: coverage lost to sampling noise", [table, _figure(rows, settings, start)], note)


def _figure(rows: list[Mapping[str, Any]], settings: Mapping[str, Any], start: float) -> Figure:
    arms = list(dict.fromkeys((row["kl_form"], row["guide"]) for row in rows))
    traces: list[dict[str, Any]] = []
    for index, (hue, size) in enumerate(zip(HUES, settings["groups"], strict=False)):
        shown = [row for row in rows if row["group"] == size]
        shift = 0.5 * (index + 0.5) / len(settings["groups"]) - 0.25
        place = [arms.index((row["kl_form"], row["guide"])) + shift for row in shown]
        low, _, middle, _, high = zip(*(row["coverage_quantiles"] for row in shown), strict=True)
        bars = {
            "type": "data",
            "symmetric": False,
            "array": [h - m for h, m in zip(high, middle, strict=True)],
            "arrayminus": [m - v for v, m in zip(low, middle, strict=True)],
            "color": hue,
        }
        dot, star = {"color": hue, "symbol": "circle", "size": 8}, {"color": hue, "symbol": "star", "size": 12}
        traces.append(trace(f"sampled, G = {size}", middle, place, marker=dot, error_x=bars))
        expected = [mean(row["expected_coverage"]) for row in shown]
        traces.append(trace(f"expected, G = {size}", expected, place, marker=star))
    traces.append(trace("reference", [start, start], [-0.5, len(arms) - 0.5], line=DASHED))
    layout = {
        "xaxis": {"title": {"text": f"coverage@{settings['k']}: median, and 5% to 95% of the runs"}},
        "yaxis": named_axis([f"{form}, {guide}" for form, guide in arms]),
    }
    return Figure("Coverage of sampled runs beside the expected run", traces, layout, height=150 + 50 * len(arms))
