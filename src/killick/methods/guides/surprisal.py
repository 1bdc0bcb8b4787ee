"""`token`: widen the anchor for tokens that were surprising when they were taken."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.errors import ContractError
from killick.maths.reduce import masked_quantile, row_mean
from killick.methods.guides.base import ScheduledGuide, drawn, require
from killick.methods.slots import RolloutView

CLIP_QUANTILES = (0.05, 0.95)
SPREAD_MIN = 1e-6
"""A row whose spread is below this is constant: dividing by it would amplify rounding."""


def minmax(surprisal: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Position between the row's 5% and 95% quantiles, clipped to [0, 1]. Constant and one-token rows give 0."""
    low, high = (masked_quantile(surprisal, mask, quantile).unsqueeze(-1) for quantile in CLIP_QUANTILES)
    return ((surprisal - low) / (high - low).clamp(min=SPREAD_MIN)).clamp(0.0, 1.0)


def rank(surprisal: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Rank within the row over n − 1; equal values share their mean rank.

    One-token rows give 0, constant rows of several tokens 0.5 throughout.
    """
    num = mask.sum(dim=-1, keepdim=True)
    ordered = torch.where(mask, surprisal, torch.inf).sort(dim=-1).values
    sought = surprisal.contiguous()
    below = torch.searchsorted(ordered, sought, right=False)
    up_to = torch.searchsorted(ordered, sought, right=True)
    return 0.5 * (below + up_to - 1) / (num - 1).clamp(min=1)


def zscore(surprisal: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Sigmoid of the z-score within the row (population std). Constant and one-token rows give 0.5."""
    deviation = surprisal - row_mean(surprisal, mask).unsqueeze(-1)
    std = row_mean(deviation.square(), mask).sqrt().unsqueeze(-1)
    return torch.sigmoid(deviation / std.clamp(min=SPREAD_MIN))


NORMALISATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"minmax": minmax, "rank": rank, "zscore": zscore}
SOURCES = ("current", "reference")


@dataclass(frozen=True, kw_only=True)
class SurprisalGuide(ScheduledGuide):
    """q_t = 1 + α·w_t + σ·w_t·ε, w_t the surprisal −log p(y_t) normalised within its row to [0, 1].

    q depends on the token taken, so it shifts the anchor in every `kl_form` that has one.

    Attributes:
        alpha_upper: pull towards surprising tokens at the start, >= 0. 0.3 [shipped].
        alpha_lower: at the end of a cycle. 0.1 [shipped].
        sigma_upper: noise at the start, >= 0; 0 makes the guide deterministic. 0.25 [shipped].
        sigma_lower: noise at the end of a cycle. 0.1 [shipped].
        normalisation: "minmax" [shipped], "rank" or "zscore".
        source: whose surprisal, "current" [shipped] or "reference".

    Raises:
        ConfigError: a setting out of range.

    Limits: weights are relative to the row, so q_t also depends on the tokens after t. With "rank" all rows of a length
        have the same sum of weights (n/2): whole answers differ little in log q(x, y), single tokens do.
    Source: SAGE, token-level guide [paper]; mean ranks for ties are ours (the order of equal tokens is arbitrary).
    """

    alpha_upper: float = 0.3
    alpha_lower: float = 0.1
    sigma_upper: float = 0.25
    sigma_lower: float = 0.1
    normalisation: str = "minmax"
    source: str = "current"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0.0 <= self.alpha_lower <= self.alpha_upper, self, "alpha must satisfy 0 <= alpha_lower <= alpha_upper")
        require(0.0 <= self.sigma_lower <= self.sigma_upper, self, "sigma must satisfy 0 <= sigma_lower <= sigma_upper")
        require(self.normalisation in NORMALISATIONS, self, f"normalisation must be one of {', '.join(NORMALISATIONS)}")
        require(self.source in SOURCES, self, f"source must be one of {', '.join(SOURCES)}")

    @property
    def needs_noise(self) -> frozenset[str]:  # type: ignore[override]  # depends on a setting, unlike the base's
        """Normal noise, unless sigma is 0."""
        return frozenset({"normal"}) if self.sigma_upper > 0.0 else frozenset()

    def __call__(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """Return q before clamping, float32; reads `logp` or `logp_ref`, the step, and the normal noise."""
        logp = view.logp if self.source == "current" else view.logp_ref
        if logp is None:
            raise ContractError('source = "reference" needs logp_ref, but the view has none. Use source = "current".')
        # What masked positions hold stays out of the row's statistics, and is dropped here.
        w = torch.where(view.mask, NORMALISATIONS[self.normalisation](-logp.float(), view.mask), 0.0)
        q = 1.0 + self.at(view.step, view.num_steps, self.alpha_upper, self.alpha_lower) * w
        if self.needs_noise:
            sigma = self.at(view.step, view.num_steps, self.sigma_upper, self.sigma_lower)
            q = q + sigma * w * drawn(view.noise, "normal")
        return q
