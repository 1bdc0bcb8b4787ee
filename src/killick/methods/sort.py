"""SORT: a failed prompt learns from its reference solution, token by token, as far as a plan makes the tokens likely.

L = L_policy + λ · Σ ω_t · (−log π(τ_t | x, τ_<t)) / N, over the reference tokens τ of the repaired prompts; ω is the
detached weight of a repair rule and N counts these tokens over all processes. The policy loss is never touched.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.errors import ConfigError, ContractError
from killick.maths.reduce import Stat
from killick.maths.token_weight import salience, weighted_nll
from killick.methods.repairs import REPAIRS
from killick.methods.slots import RepairRule
from killick.registry import construct, nearest

NO_REPAIR = "none"
PlanSource = Literal["policy", "column", "none"]
_ABOUT_PLANS = ("plan_source", "max_plan_tokens", "plan_temperature")


@dataclass(frozen=True)
class RepairSettings:
    """What all repair rules share.

    Attributes:
        coefficient: λ, the weight of the term. Large values cost pass@1; sweep it.
        batch_size: prompts repaired in one update, over all processes; nothing happens until so many wait.
        capacity: failed prompts kept; the oldest is dropped beyond it.
        plan_source: "policy" (the current policy writes the plan), "column" (the data set holds it in `plan`), "none"
            (no plan: p_plan = p_base, which is DFT).
        max_plan_tokens: a plan that has not ended by then is not used.
        max_reference_tokens: longer references are left out; None for no limit. They are never cut.
        plan_temperature: 0 is greedy.

    Raises:
        ConfigError: a number out of range, or a batch that does not fit the buffer.
    """

    coefficient: float = 0.25
    batch_size: int = 16
    capacity: int = 1024
    plan_source: PlanSource = "policy"
    max_plan_tokens: int = 128
    max_reference_tokens: int | None = None
    plan_temperature: float = 0.0

    def __post_init__(self) -> None:
        for name in ("coefficient", "plan_temperature"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ConfigError(f"[method.repair] {name} must be a finite number >= 0, found {value!r}.")
        for name in ("batch_size", "capacity", "max_plan_tokens", "max_reference_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"[method.repair] {name} must be at least 1, found {value!r}.")
        if self.batch_size > self.capacity:
            raise ConfigError(
                f"[method.repair] batch_size = {self.batch_size} prompts never wait in a buffer of capacity = "
                f"{self.capacity}. Raise capacity or lower batch_size."
            )


def build_repair(name: str | None, settings: Mapping[str, Any]) -> tuple[RepairRule, RepairSettings] | None:
    """The rule of this name and what all rules share, from one flat table of settings; None without repair.

    Raises:
        ConfigError: unknown rule or setting (the nearest is offered), settings without a rule, a value out of range, or
            settings of the plan under a rule that reads none.
    """
    if name is None or name == NO_REPAIR:
        if settings:
            raise ConfigError(
                f"Repair settings {sorted(settings)} were given without a rule. Name one: {', '.join(REPAIRS.names())}."
            )
        return None
    component = REPAIRS.get(name)
    shared, own = {f.name for f in fields(RepairSettings)}, {f.name for f in fields(component) if f.init}
    for key in settings:
        if key not in shared | own:
            raise ConfigError(f"The repair rule {name!r} has no setting {key!r}. {nearest(key, shared | own)}")
    rule = REPAIRS.build(name, **{key: value for key, value in settings.items() if key in own})
    if not rule.needs_plan:
        idle = [key for key in _ABOUT_PLANS if key in settings and settings[key] != "none"]
        if idle:
            raise ConfigError(f"The repair rule {name!r} reads no plan, so {', '.join(idle)} has no effect. Remove it.")
        settings = {**settings, "plan_source": "none"}
    source = settings.get("plan_source", "policy")
    unread = {"policy": (), "column": ("plan_temperature",), "none": ("max_plan_tokens", "plan_temperature")}
    for key in unread.get(source, ()) if isinstance(source, str) else ():
        if key in settings:
            raise ConfigError(f"Under plan_source = {source!r} the setting {key} has no effect. Remove it.")
    given = {key: value for key, value in settings.items() if key in shared}
    return rule, construct("repair rule", name, RepairSettings, given)


@dataclass(frozen=True)
class Repair:
    """The auxiliary term of one process.

    Attributes:
        loss: Σ ω·(−logp_base) / divisor, with gradient; a zero that has one when no row counts.
        weight_BR: ω, detached, 0 where masked.
        logp_base_BR, logp_plan_BR: nats, detached; equal in rows without a plan.
    """

    loss: Float[Tensor, ""]
    weight_BR: Float[Tensor, "B R"]
    logp_base_BR: Float[Tensor, "B R"]
    logp_plan_BR: Float[Tensor, "B R"]


def repair(
    rule: RepairRule,
    logp_base_BR: Float[Tensor, "B R"],
    logp_plan_BR: Float[Tensor, "B R"] | None,
    planned_B: Bool[Tensor, " B"],
    mask_BR: Bool[Tensor, "B R"],
    divisor: float,
) -> Repair:
    """Weigh the reference tokens and sum their negative log-probabilities.

    Args:
        rule: the token weights.
        logp_base_BR: without a plan, nats, with gradient.
        logp_plan_BR: the same tokens with the plan in the prompt, nats; None without plans.
        planned_B: rows whose plan is usable; in the others p_plan := p_base, which is DFT.
        mask_BR: True on reference tokens that count.
        divisor: reference tokens of the whole repair batch, over all processes.

    Raises:
        ContractError: the policy gives NaN for a token that counts, or the rule returned another shape, a negative
            weight or NaN for one.

    Gradient: through logp_base as it is multiplied by −ω; none through ω.
    Source: SORT [paper]; the divisor of its own [derived], so that the policy loss keeps its scale.
    """
    base = logp_base_BR.detach()
    plan = base if logp_plan_BR is None else torch.where(planned_B[:, None], logp_plan_BR.detach().to(base), base)
    _refuse_nan(base, plan, mask_BR)
    weight_BR = rule(base, plan, mask_BR)
    if weight_BR.shape != mask_BR.shape or not bool((weight_BR[mask_BR] >= 0).all()):
        raise ContractError(
            f"{type(rule).__name__} must return weights >= 0 of shape {tuple(mask_BR.shape)}, found shape "
            f"{tuple(weight_BR.shape)}, smallest {float(weight_BR.min()) if weight_BR.numel() else math.nan}."
        )
    return Repair(weighted_nll(logp_base_BR, weight_BR, mask_BR, divisor), weight_BR.detach(), base, plan)


def _refuse_nan(base: Tensor, plan: Tensor, mask_BR: Tensor) -> None:
    for name, logp in (("without", base), ("with", plan)):
        num_nan = int((logp.isnan() & mask_BR).sum())
        if num_nan:
            raise ContractError(
                f"The log-probabilities of {num_nan} of {int(mask_BR.sum())} reference tokens, {name} a plan in the "
                "prompt, are NaN: the policy itself gives NaN, its weights hold some or its forward pass overflows. "
                "Resume from an earlier checkpoint with a lower learning rate, or compute in bfloat16 or float32."
            )


def repair_metrics(done: Repair, mask_BR: Bool[Tensor, "B R"]) -> dict[str, Stat]:
    """Undivided statistics over the reference tokens that count.

    sort/loss            mean of ω·(−logp_base), nats, without λ
    sort/nll_mean        mean of −logp_base, nats: what a weighted loss hides
    sort/weight_mean     mean of ω
    sort/salience_mean   mean of logp_plan − logp_base, nats
    sort/lift_mean       mean of ω / p_base, 1 for DFT
    """
    base = done.logp_base_BR.float()
    return {
        # A weight of 0 makes nothing of a log-probability of −inf, as in the loss.
        "sort/loss": Stat.of(torch.where(done.weight_BR > 0, -base * done.weight_BR, 0.0), mask_BR),
        "sort/nll_mean": Stat.of(-base, mask_BR),
        "sort/weight_mean": Stat.of(done.weight_BR, mask_BR),
        "sort/salience_mean": Stat.of(salience(base, done.logp_plan_BR.float(), mask_BR), mask_BR),
        "sort/lift_mean": Stat.of(done.weight_BR / base.exp().clamp(min=torch.finfo(base.dtype).tiny), mask_BR),
    }
