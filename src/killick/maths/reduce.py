"""From one number per token to one number: masked sums, means and quantiles, with the divisor handed in.

A divisor is an argument and never derived from the slice at hand unless the name says so, because a slice does not
know how many slices, steps or processes share an update.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.errors import ConfigError
from killick.registry import nearest

REDUCTIONS = {
    "grpo": "row_mean",
    "sapo": "row_mean",
    "bnpo": "token_mean_local",
    "dr_grpo": "row_budget",
    "dapo": "token_mean_global",
    "cispo": "token_mean_global",
    "vespo": "token_mean_global",
    "luspo": "row_sum",
}
"""TRL's `loss_type` -> how it reduces the per-token term. Three of its names are published methods of which only this
reduction is meant (there is no Beta distribution in "bnpo", no dynamic sampling in "dapo")."""


def upcast(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Half precision as float32 (exact), wider types unchanged."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _kept(values: Float[Tensor, "*axes"], mask: Bool[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    # Selection instead of values * mask: 0 * NaN is NaN.
    return torch.where(mask, upcast(values), 0.0)


def token_count(mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Number of unmasked tokens, at least 1 so that it can divide; float32 (exact below 2**24)."""
    return mask.sum().clamp(min=1).float()


def masked_sum(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Sum over unmasked tokens, accumulated in float32 or wider; 0 for an empty mask.

    Gradient: 1 where unmasked, 0 elsewhere.
    """
    return _kept(values, mask).sum()


def masked_mean(
    values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], divisor: Float[Tensor, ""] | float
) -> Float[Tensor, ""]:
    """Σ unmasked values / divisor, linear in 1 / divisor.

    Args:
        values: one number per token.
        mask: True where the token counts.
        divisor: what to divide by, e.g. `token_count(mask)` or the tokens of a whole update; > 0, not clamped here.

    Returns:
        A scalar, float32 or wider; 0 for an empty mask.

    Raises:
        ValueError: a number that is not positive was handed in (tensors are not inspected: that would synchronise).
    """
    if not isinstance(divisor, Tensor) and not divisor > 0:
        raise ValueError(f"The divisor of a mean must be positive, found {divisor}. Clamp counts to at least 1.")
    return masked_sum(values, mask) / divisor


def row_sum(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """Sum over the unmasked tokens of each row; 0 for an empty row."""
    return _kept(values, mask).sum(dim=-1)


def row_mean(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """Mean over the unmasked tokens of each row; 0 for an empty row."""
    return row_sum(values, mask) / mask.sum(dim=-1).clamp(min=1)


def window_tokens(
    num_items_in_batch: Float[Tensor, ""] | float,
    num_processes: int,
    accumulation_steps: int,
    steps_per_generation: int,
) -> Float[Tensor, ""]:
    """The divisor `num_items` of the `token_mean_global` family, as TRL 1.16 computes it in training.

    TRL counts the tokens of a whole generation batch over all processes; a backward pass sees one process, and an
    update sees `accumulation_steps` of the `steps_per_generation` slices.

    Args:
        num_items_in_batch: unmasked tokens of the generation batch, all processes.
        num_processes: processes whose gradients are averaged.
        accumulation_steps: slices that share one update.
        steps_per_generation: slices into which the generation batch is split.

    Returns:
        max(num_items_in_batch, 1) / num_processes · accumulation_steps / steps_per_generation, float32.
    """
    tokens = torch.as_tensor(num_items_in_batch, dtype=torch.float32).clamp(min=1.0)
    return tokens / num_processes * accumulation_steps / steps_per_generation


def aggregate(
    per_token: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    loss_type: str,
    *,
    num_items: Float[Tensor, ""] | float | None = None,
    max_completion_length: int | None = None,
    accumulation: float = 1.0,
) -> Float[Tensor, ""]:
    """Reduce a per-token term as TRL 1.16 does for a `loss_type`.

    row_mean           mean over rows of the row's token mean                       grpo, sapo
    token_mean_local   Σ / unmasked tokens of this slice                            bnpo
    row_budget         Σ / (rows · max_completion_length)                           dr_grpo
    token_mean_global  Σ / num_items                                                dapo, cispo, vespo
    row_sum            mean over rows of the row's token sum                        luspo

    Args:
        per_token: the term, e.g. the negative surrogate plus beta times a KL estimate.
        mask: True where the token counts.
        loss_type: a key of `REDUCTIONS`.
        num_items: divisor of `token_mean_global`, used as it is (`window_tokens` builds TRL's).
        max_completion_length: T_max of `row_budget`, tokens.
        accumulation: slices that share an update; divides every form except `token_mean_global`, whose divisor
            already spans the update.

    Returns:
        A scalar, float32 or wider; 0 for an empty mask, with a gradient of 0.

    Raises:
        ConfigError: unknown `loss_type`, or the divisor it needs was not handed in.

    Source: TRL 1.16.0, `GRPOTrainer._compute_loss` [code]. An empty row counts among the rows, as there.
    """
    if loss_type not in REDUCTIONS:
        raise ConfigError(f"Unknown loss_type {loss_type!r}. {nearest(loss_type, REDUCTIONS)}")
    match REDUCTIONS[loss_type]:
        case "row_mean":
            reduced = row_mean(per_token, mask).mean()
        case "row_sum":
            reduced = row_sum(per_token, mask).mean()
        case "token_mean_local":
            reduced = masked_mean(per_token, mask, token_count(mask))
        case "row_budget":
            if max_completion_length is None:
                raise ConfigError(f"loss_type {loss_type!r} divides by max_completion_length; hand it in.")
            reduced = masked_mean(per_token, mask, float(mask.shape[0] * max_completion_length))
        case _:
            if num_items is None:
                raise ConfigError(
                    f"loss_type {loss_type!r} divides by the tokens of the whole update, which a slice cannot know; "
                    "hand in num_items (see window_tokens)."
                )
            return masked_mean(per_token, mask, num_items)
    return reduced / accumulation


def masked_quantile(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], quantile: float) -> Float[Tensor, " B"]:
    """Quantile of the unmasked values of each row, linearly interpolated between order statistics.

    Args:
        values: one number per token.
        mask: True where the value counts.
        quantile: in [0, 1].

    Returns:
        float32 or wider; NaN for an empty row (a quantile of nothing is not a number).

    Gradient: not meant to be differentiated.
    Limits: 0 gives the row's minimum, 1 its maximum. Unlike `torch.quantile` it has no size limit and needs no loop
        over rows of different length.
    """
    values = upcast(values)
    last = mask.sum(dim=-1, keepdim=True) - 1
    ordered = torch.where(mask, values, torch.inf).sort(dim=-1).values
    position = last.clamp(min=0).to(values.dtype) * quantile
    low = position.floor().long()
    below, above = ordered.gather(-1, low), ordered.gather(-1, position.ceil().long())
    # The fraction is 0 when low is the last entry, so `above` never reaches into the masked tail.
    interpolated = below + (above - below) * (position - low)
    return torch.where(last >= 0, interpolated, torch.nan).squeeze(-1)


class Stat(NamedTuple):
    """A metric that has not been divided yet, so that slices and processes combine exactly.

    Attributes:
        value: sum of the values ("mean"), or their extreme so far ("min": +inf when empty, "max": −inf).
        num: how many values went in; a scalar like `value`.
        reduce: how two of them combine.
    """

    value: Tensor
    num: Tensor
    reduce: Literal["mean", "min", "max"]

    @classmethod
    def of(cls, values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], reduce: str = "mean") -> "Stat":
        """The statistic of the unmasked values; stays on the device, detached."""
        values, num = upcast(values.detach()), mask.sum().float()
        if reduce == "mean":
            return cls(_kept(values, mask).sum(), num, "mean")
        if reduce == "min":
            return cls(torch.where(mask, values, torch.inf).amin(), num, "min")
        if reduce == "max":
            return cls(torch.where(mask, values, -torch.inf).amax(), num, "max")
        raise ConfigError(f"Unknown reduction {reduce!r} of a metric. {nearest(reduce, ('mean', 'min', 'max'))}")

    @classmethod
    def combine(cls, stats: Iterable["Stat"]) -> "Stat":
        """One statistic of several slices or processes, all with the same `reduce`."""
        values, nums, reduces = zip(*stats, strict=True)
        if len(set(reduces)) != 1:
            raise ConfigError(f"Cannot combine metrics reduced by {sorted(set(reduces))}; combine one key at a time.")
        stacked = torch.stack(values)
        match reduces[0]:
            case "mean":
                combined = stacked.sum()
            case "min":
                combined = stacked.amin()
            case _:
                combined = stacked.amax()
        return cls(combined, torch.stack(nums).sum(), reduces[0])

    def result(self) -> Tensor:
        """The number to log, a scalar tensor; NaN when nothing went in."""
        number = self.value / self.num.clamp(min=1.0) if self.reduce == "mean" else self.value
        return torch.where(self.num > 0, number, torch.nan)
