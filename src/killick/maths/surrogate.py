"""Importance ratio and clipped surrogate: the oracle against which a host's loss is checked."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.maths.reduce import upcast


def ratio(
    logp: Float[Tensor, "B T"], logp_old: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """ρ = π/π_old of the taken token; 1 where masked.

    Gradient: ρ·s through `logp`; `logp_old` is detached. With logp_old = logp the value is 1 and the gradient s.
    """
    return torch.where(mask, upcast(logp) - upcast(logp_old.detach()), 0.0).exp()


def clipped_surrogate(
    logp: Float[Tensor, "B T"],
    logp_old: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.2,
) -> Float[Tensor, "B T"]:
    """The policy loss per token: −min(ρ·A, clip(ρ, 1−ε_low, 1+ε_high)·A).

    Args:
        logp: current policy, nats, with gradient.
        logp_old: sampling policy, nats.
        advantage: one per token (a row's advantage is expanded by the caller); detached here.
        mask: True where the token counts.
        epsilon_low: how far ρ may fall before a negative advantage stops pulling.
        epsilon_high: how far ρ may rise before a positive advantage stops pushing.

    Returns:
        a loss (to be minimised), 0 where masked; not reduced (see `aggregate`).

    Gradient: −A·ρ·s inside the clip range, 0 where the clip binds.
    Source: PPO; GRPO in TRL's form with two ranges [code].
    """
    rho = ratio(logp, logp_old, mask)
    gain = torch.where(mask, upcast(advantage.detach()), 0.0)
    clipped = rho.clamp(1.0 - epsilon_low, 1.0 + epsilon_high)
    return -torch.minimum(rho * gain, clipped * gain)
