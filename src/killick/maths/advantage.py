"""Group advantages: how much better a completion is than its siblings."""

import torch
from jaxtyping import Float
from torch import Tensor

from killick.maths.reduce import upcast


def centred(reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
    """Reward minus the mean of its group: A = r − r̄.

    Args:
        reward_PG: rewards of P groups; NaN = unscorable, left out of the mean.

    Returns:
        float32 or wider; 0 for unscorable members and for groups without any scorable one.

    Limits: 0 when all members agree; scales with the reward.
    Source: Dr. GRPO; TRL `scale_rewards="none"` [code].
    """
    reward = upcast(reward_PG)
    return torch.nan_to_num(reward - reward.nanmean(dim=1, keepdim=True), nan=0.0)


def standardised(reward_PG: Float[Tensor, "P G"], eps: float = 1e-4) -> Float[Tensor, "P G"]:
    """Reward in units of its group's spread: A = (r − r̄) / (std + eps), std with Bessel's correction.

    Args:
        reward_PG: rewards of P groups; NaN = unscorable, left out of mean and std.
        eps: added to the std; TRL's 1e-4 keeps groups that agree at 0.

    Returns:
        float32 or wider; 0 for unscorable members, and where fewer than two members are scorable.

    Limits: unchanged (up to eps) when rewards are shifted or scaled by a positive factor.
    Source: GRPO; TRL `scale_rewards="group"` [code].
    """
    deviation = centred(reward_PG)
    num = (~reward_PG.isnan()).sum(dim=1, keepdim=True)
    # Unscorable members have deviation 0, so they add nothing to the sum of squares.
    variance = deviation.square().sum(dim=1, keepdim=True) / (num - 1).clamp(min=1)
    return deviation / (variance.sqrt() + eps)
