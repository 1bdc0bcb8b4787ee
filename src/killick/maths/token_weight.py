"""How strongly each token of a reference text is learnt: the weights of SFT, DFT, LUFFY and SORT.

All of them add −Σ w·log p over the tokens of a given text, with a w that is not differentiated. With p the probability
of the token, p_plan the same with a plan in the prompt, A an advantage:

    nll_weight                1                    SFT, ReLIFT            rare tokens pull hardest
    dft_weight                p                    DFT; ·A: LUFFY, plain  tokens already likely
    shaped_off_policy_weight  A·γp / (p + γ)²      LUFFY, shaped          tokens with p near γ
    geometric_weight          sqrt(p·p_plan)       SORT                   tokens the plan makes likely
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.errors import ConfigError
from killick.maths.reduce import masked_mean, upcast


def _probability(logp_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]) -> Float[Tensor, "B R"]:
    return torch.where(mask_BR, upcast(logp_BR.detach()), -torch.inf).exp()


def nll_weight(logp_base_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]) -> Float[Tensor, "B R"]:
    """Plain maximum likelihood: w = 1.

    Args:
        logp_base_BR: the reference tokens under the current policy, nats; gives shape, device and precision.
        mask_BR: True on reference tokens.

    Returns:
        1 where unmasked, 0 elsewhere; float32 or wider.

    Gradient: none flows through w.
    Limits: the gradient of −log p by the logits has size 1 − p: tokens the policy finds impossible pull hardest.
    Source: SFT; the auxiliary step of ReLIFT [code].
    """
    return mask_BR.to(upcast(logp_base_BR).dtype)


def dft_weight(logp_base_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]) -> Float[Tensor, "B R"]:
    """DFT's token weight: the probability of the token itself, w = p.

    Args:
        logp_base_BR: the reference tokens under the current policy, nats; may carry a gradient.
        mask_BR: True on reference tokens.

    Returns:
        w in [0, 1], float32 or wider, 0 where masked.

    Gradient: none flows through w; −w·∇log p = −∇p, so the loss maximises the sum of token probabilities.
    Limits: w → 0 as p → 0: what the policy finds impossible is not learnt.
    Source: DFT, arXiv 2508.05629 [code]. Times A it is also LUFFY's weight without shaping [derived].
    """
    return _probability(logp_base_BR, mask_BR)


def geometric_weight(
    logp_base_BR: Float[Tensor, "B R"], logp_plan_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]
) -> Float[Tensor, "B R"]:
    """SORT's token weight: the geometric mean of two probabilities of the same reference token.

    w = sqrt(p_base · p_plan) = p_base · exp(salience / 2).

    Args:
        logp_base_BR: without the plan, nats; may carry a gradient.
        logp_plan_BR: with the plan, nats; may carry a gradient.
        mask_BR: True on reference tokens.

    Returns:
        w in [0, 1], float32 or wider, 0 where masked.

    Gradient: none flows through w; the caller multiplies by −logp_base_BR.
    Limits: equals `dft_weight` to the bit when both agree; w → 0 when either probability does. If p_plan is off by at
        most γ, w is off by at most sqrt(p_base · γ) [derived].
    Source: SORT, arXiv 2605.11505, geometric weighting [paper]; the exponential form [derived].
    """
    # The sum first: a + a and its half are exact in floating point, which makes "DFT to the bit" true.
    return _probability(0.5 * (upcast(logp_base_BR) + upcast(logp_plan_BR)), mask_BR)


def shaped_off_policy_weight(
    logp_base_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"], gamma: float = 0.1, advantage: float = 1.0
) -> Float[Tensor, "B R"]:
    """LUFFY's effective token weight: differentiating −A·p/(p + γ) gives −w·∇log p with w = A·γp / (p + γ)².

    Args:
        logp_base_BR: the trace's tokens under the current policy, nats; may carry a gradient.
        mask_BR: True on tokens of the trace.
        gamma: where the weight peaks, a probability > 0. 0.1 [code].
        advantage: A of the trace; w is linear in it and negative when the trace is pushed down.

    Returns:
        w, float32 or wider, 0 where masked.

    Raises:
        ConfigError: gamma is not positive.

    Gradient: none flows through w.
    Limits: largest at p = γ, A/4; A·γ/(1 + γ)² at p = 1; ≈ A·p/γ as p → 0.
    Source: LUFFY, arXiv 2504.14945, policy shaping [code]; the weight [derived].
    """
    if not gamma > 0:
        raise ConfigError(f"gamma is the probability where the weight peaks and must be > 0, found {gamma}. Use 0.1.")
    p_BR = _probability(logp_base_BR, mask_BR)
    return advantage * gamma * p_BR / (p_BR + gamma).square()


def salience(
    logp_base_BR: Float[Tensor, "B R"], logp_plan_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]
) -> Float[Tensor, "B R"]:
    """How much the plan raises a reference token: log p_plan − log p_base.

    Args:
        logp_base_BR: without the plan, nats.
        logp_plan_BR: with the plan, nats.
        mask_BR: True on reference tokens.

    Returns:
        nats of either sign, float32 or wider; 0 where masked.

    Gradient: none.
    Limits: 0 where both agree, also at −inf; ±inf where one alone is −inf.
    Source: SORT, arXiv 2605.11505 [paper].
    """
    base_BR, plan_BR = upcast(logp_base_BR.detach()), upcast(logp_plan_BR.detach())
    return torch.where(mask_BR & (base_BR != plan_BR), plan_BR - base_BR, 0.0)


def weighted_nll(
    logp_base_BR: Float[Tensor, "B R"],
    weight_BR: Float[Tensor, "B R"],
    mask_BR: Bool[Tensor, "B R"],
    divisor: Float[Tensor, ""] | float,
) -> Float[Tensor, ""]:
    """The loss Σ w·(−log p) / divisor over the tokens of a text.

    Args:
        logp_base_BR: the reference tokens under the current policy, nats, with gradient.
        weight_BR: one of the weights above; detached here as well.
        mask_BR: True on reference tokens.
        divisor: tokens to average over, > 0: the *number* of reference tokens of the whole batch, not Σ w.

    Returns:
        a scalar, float32 or wider; 0 for an empty mask.

    Raises:
        ValueError: a number that is not positive was handed in as the divisor.

    Gradient: −w / divisor by log p; 0 where masked, whatever lies there.
    Limits: a token of weight 0 contributes 0 even where log p = −inf, as p·log p → 0 demands. With w > 0 there, as
        under `nll_weight`, the loss is +inf and its gradient by log p still finite.
    """
    weight_BR = torch.where(mask_BR, upcast(weight_BR.detach()), 0.0)
    return masked_mean(-weight_BR * logp_base_BR, mask_BR & (weight_BR != 0), divisor)
