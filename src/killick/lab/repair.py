"""`repair`: SORT's weight where the true plan is known.

Texts are rows of decisions and routine tokens. A model without a plan has probability b for a token. A plan names the
decision at each decision position; the model follows the entry with probability c and falls back on b otherwise:

    true entry    p* = c + (1 − c)·b        missing entry    b        wrong entry    (1 − c)·b        routine token    b

A plan is corrupted at rate γ. A reader who knows the rate but not the place has p_plan = (1 − γ)·p* + γ·p_corrupt, so
|p_plan − p*| ≤ γ and |ω − ω*| ≤ sqrt(b·γ) at every token. A single plan drawn with its errors keeps that bound only on
average: E|√p − √p*| ≤ sqrt(E|p − p*|) ≤ √γ by Jensen.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.lab.output import DASHED, Track, silent, trace
from killick.lab.tree import check_range
from killick.maths import dft_weight, geometric_weight, masked_mean, nll_weight, salience, token_count, weighted_nll
from killick.report.markup import number
from killick.report.palette import HUES
from killick.report.types import Cell, Figure, Panel, Table

GAMMAS = (0.0, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.5, 1.0)
CORRUPTIONS = ("missing", "wrong")


@dataclass(frozen=True)
class RepairSettings:
    """What `killick lab repair` runs.

    Attributes:
        texts: reference texts.
        length: tokens of the longest; the shortest has half as many.
        decisions: share of decision positions.
        alternatives: decisions to choose from; the reference's choice is uniform among them.
        certainty: c, how firmly the model follows an entry of the plan.
        plans: single plans drawn for each text.
        seed: of texts and plans.

    Raises:
        ConfigError: a number out of range.
    """

    texts: int = 64
    length: int = 48
    decisions: float = 0.2
    alternatives: int = 8
    certainty: float = 0.95
    plans: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("texts", self.texts, 1, 10_000)
        check_range("length", self.length, 2, 10_000)
        check_range("decisions", self.decisions, 0.0, 1.0, open_low=True)
        check_range("alternatives", self.alternatives, 2, 1_000)
        check_range("certainty", self.certainty, 0.0, 1.0, open_low=True)
        check_range("plans", self.plans, 1, 100_000)
        check_range("texts × length", self.texts * self.length, 2, 200_000)
        check_range("seed", self.seed, 0, 2**31)


@dataclass(frozen=True)
class Texts:
    """Reference texts under the model without a plan, with the true plan, and with each corruption of an entry.

    Attributes:
        p_base_BR: b of the reference token.
        p_true_BR: p*.
        p_corrupt_BR: name of a corruption -> probability if this position's entry is corrupted.
        decision_BR: True at decisions that count.
        mask_BR: True on tokens of the text.
    """

    p_base_BR: Float[Tensor, "B R"]
    p_true_BR: Float[Tensor, "B R"]
    p_corrupt_BR: Mapping[str, Float[Tensor, "B R"]]
    decision_BR: Bool[Tensor, "B R"]
    mask_BR: Bool[Tensor, "B R"]


def draw_texts(settings: RepairSettings) -> Texts:
    """Texts of the generative model; the first token of each is a decision."""
    generator = torch.Generator().manual_seed(settings.seed)
    shape = (settings.texts, settings.length)
    tokens_B1 = torch.randint((settings.length + 1) // 2, settings.length + 1, (settings.texts, 1), generator=generator)
    mask_BR = torch.arange(settings.length) < tokens_B1
    decision_BR = torch.rand(shape, generator=generator) < settings.decisions
    decision_BR[:, 0] = True
    logits_BRK = torch.randn(*shape, settings.alternatives, generator=generator, dtype=torch.float64)
    # Routine: the model has a favourite. Decisions: it has none, and the reference chose without asking it.
    logits_BRK[..., 0] += torch.where(decision_BR, 0.0, 6.0)
    b_BRK = logits_BRK.softmax(-1)
    routine_BR = torch.multinomial(b_BRK.flatten(0, 1), 1, generator=generator).reshape(shape)
    chosen_BR = torch.randint(settings.alternatives, shape, generator=generator)
    token_BR1 = torch.where(decision_BR, chosen_BR, routine_BR)[..., None]
    b_BR = b_BRK.gather(-1, token_BR1).squeeze(-1)
    c = settings.certainty
    return Texts(
        p_base_BR=b_BR,
        p_true_BR=torch.where(decision_BR, c + (1 - c) * b_BR, b_BR),
        p_corrupt_BR={"missing": b_BR, "wrong": torch.where(decision_BR, (1 - c) * b_BR, b_BR)},
        decision_BR=decision_BR & mask_BR,
        mask_BR=mask_BR,
    )


def weights(texts: Texts, p_plan_BR: Float[Tensor, "B R"]) -> Float[Tensor, "B R"]:
    """ω under a plan, by `killick.maths`."""
    return geometric_weight(texts.p_base_BR.log(), p_plan_BR.log(), texts.mask_BR)


def expected_plan(texts: Texts, corruption: str, gamma: float) -> Float[Tensor, "B R"]:
    """p_plan of a reader who knows that entries are corrupted at rate γ, but not which."""
    return (1.0 - gamma) * texts.p_true_BR + gamma * texts.p_corrupt_BR[corruption]


def compare(texts: Texts, corruption: str, gamma: float, num_plans: int, generator: torch.Generator) -> dict[str, Any]:
    """Errors of ω and of the loss at one rate, with the bounds."""
    logp_BR, mask_BR = texts.p_base_BR.log(), texts.mask_BR
    tokens = token_count(mask_BR)
    true_BR = weights(texts, texts.p_true_BR)
    bound_BR = torch.where(mask_BR, (texts.p_base_BR * gamma).sqrt(), 0.0)
    weight_BR = weights(texts, expected_plan(texts, corruption, gamma))
    error_BR = (weight_BR - true_BR).abs()
    drawn_sum_BR, broken = torch.zeros_like(error_BR), 0.0
    corrupt_BR = weights(texts, texts.p_corrupt_BR[corruption])
    for _ in range(num_plans):
        hit_BR = torch.rand(error_BR.shape, generator=generator, dtype=torch.float64) < gamma
        drawn_BR = (torch.where(hit_BR, corrupt_BR, true_BR) - true_BR).abs()
        drawn_sum_BR += drawn_BR
        broken += float(masked_mean((drawn_BR > bound_BR * (1 + 1e-9) + 1e-12).double(), mask_BR, tokens))
    at = texts.decision_BR
    lift_BR = salience(logp_BR, expected_plan(texts, corruption, gamma).log(), mask_BR).mul(0.5).exp()
    losses = [weighted_nll(logp_BR, w, mask_BR, tokens) for w in (weight_BR, true_BR, bound_BR)]
    return {
        "corruption": corruption,
        "gamma": gamma,
        "error_mean": float(masked_mean(error_BR, mask_BR, tokens)),
        "error_max": float(error_BR.max()),
        "bound_mean": float(masked_mean(bound_BR, mask_BR, tokens)),
        "within_bound": bool((error_BR <= bound_BR + 1e-12).all()),
        "drawn_error_mean": float(masked_mean(drawn_sum_BR / num_plans, mask_BR, tokens)),
        "drawn_broken_frac": broken / num_plans,
        "regret": float((losses[0] - losses[1]).abs()),
        "regret_bound": float(losses[2]),
        "lift_decisions": float(masked_mean(lift_BR, at, token_count(at))),
        "weight_decisions": float(masked_mean(weight_BR, at, token_count(at))),
        "equals_dft": bool(torch.equal(weight_BR, dft_weight(logp_BR, mask_BR))),
    }


def kinds(texts: Texts) -> list[dict[str, Any]]:
    """Mean weight of each method at decisions and at routine tokens."""
    logp_BR, mask_BR = texts.p_base_BR.log(), texts.mask_BR
    methods = {
        "nll": nll_weight(logp_BR, mask_BR),
        "dft": dft_weight(logp_BR, mask_BR),
        "sort, true plan": weights(texts, texts.p_true_BR),
        "sort, every entry missing": weights(texts, texts.p_corrupt_BR["missing"]),
        "sort, every entry wrong": weights(texts, texts.p_corrupt_BR["wrong"]),
    }
    places = {"decisions": texts.decision_BR, "routine": mask_BR & ~texts.decision_BR}
    return [
        {"method": name, **{kind: float(masked_mean(w, at, token_count(at))) for kind, at in places.items()}}
        for name, w in methods.items()
    ]


def run(settings: RepairSettings, track: Track = silent) -> dict[str, Any]:
    """The weight, its error and the regret as plans get worse.

    Returns:
        `settings`, `kinds` (mean weight per method and kind of token) and `rows` (one per corruption and rate).
    """
    texts = draw_texts(settings)
    generator = torch.Generator().manual_seed(settings.seed + 1)
    cases = [(corruption, gamma) for corruption in CORRUPTIONS for gamma in GAMMAS]
    rows = [
        compare(texts, corruption, gamma, settings.plans, generator)
        for corruption, gamma in track(cases, "rates of corruption")
    ]
    return {"experiment": "repair", "settings": asdict(settings), "kinds": kinds(texts), "rows": rows}


def panel(data: Mapping[str, Any]) -> Panel:
    """Tables and figure of `run`."""
    settings = data["settings"]
    size = f"{settings['texts']} texts of up to {settings['length']} tokens"
    kind_rows: list[list[Cell | str]] = [
        [row["method"], number(row["decisions"]), number(row["routine"])] for row in data["kinds"]
    ]
    first = Table(f"Mean token weight, {size}", ["method", "decisions", "routine"], kind_rows)
    body: list[list[Cell | str]] = [
        [
            row["corruption"],
            f"{row['gamma']:g}",
            *(number(row[key], 4) for key in ("error_mean", "error_max", "bound_mean")),
            "yes" if row["within_bound"] else "no",
            number(row["drawn_error_mean"], 4),
            number(row["drawn_broken_frac"], 4),
            number(row["regret"], 4),
            number(row["regret_bound"], 4),
            number(row["lift_decisions"], 2),
            "yes" if row["equals_dft"] else "no",
        ]
        for row in data["rows"]
    ]
    columns = ["entries", "γ", "mean |ω−ω*|", "max", "mean √(bγ)", "all within", "one plan: mean", "tokens outside"]
    second = Table(
        "Plans corrupted at rate γ",
        [*columns, "regret", "its bound", "lift at decisions", "is DFT"],
        body,
        caption=(
            "Left: a reader who knows γ and averages. `one plan`: errors drawn, so a token is right or wholly off; "
            "then the bound holds for the mean only. Regret: |L(ω) − L(ω*)| per token, nats. Lift: ω / b. `is DFT`: "
            "the weights are those of `dft_weight`, bit for bit."
        ),
    )
    note = (
        "The weight ω = sqrt(b·p_plan) as plans get worse. A plan that says nothing turns SORT into DFT. One that is "
        "wrong throughout weighs decisions less than DFT does: it teaches less, not something else."
    )
    return Panel("Repair: SORT's weight against the true plan", [first, second, _figure(data["rows"])], note)


def _figure(rows: list[Mapping[str, Any]]) -> Figure:
    traces: list[dict[str, Any]] = []
    for hue, corruption in zip(HUES, CORRUPTIONS, strict=False):
        shown = [row for row in rows if row["corruption"] == corruption and row["gamma"] > 0]
        gammas = [row["gamma"] for row in shown]
        for key, name, dash in (("error_mean", "averaging reader", "solid"), ("drawn_error_mean", "one plan", "dot")):
            line, marker = {"color": hue, "dash": dash}, {"color": hue, "size": 6}
            errors = [row[key] for row in shown]
            traces.append(trace(f"{corruption}, {name}", gammas, errors, line=line, marker=marker))
    traces.append(trace("bound √(bγ)", gammas, [row["bound_mean"] for row in shown], line=DASHED))
    layout = {
        "xaxis": {"type": "log", "title": {"text": "γ, rate of corrupted entries"}},
        "yaxis": {"type": "log", "title": {"text": "mean |ω − ω*|"}},
        "hovermode": "closest",
    }
    return Figure("Error of the weight and its bound", traces, layout, height=460)
