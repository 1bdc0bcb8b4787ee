"""KL estimators per token, the exact forward KL, and the return-to-go.

With u = π_ref(y)/π(y) and the score s = ∇log π(y), at one state and y ~ π:

    estimator        value        gradient in expectation, used as a loss
    k1 = −log u      unbiased     0: no regularisation (R1 in docs/methods.md)
    k2 = ½(log u)²   biased       reverse KL (R2)
    k3 = u−1−log u   unbiased     forward KL (R3)
    k3_ratio = ρ·k3  unbiased     reverse KL, also when y was sampled by π_old (R6)

k1 regularises as part of the reward: with the return-to-go it gives the exact sequence-level reverse-KL gradient (R4,
R8). Which of them descends what is a matter of gradients, so tests differentiate; values alone cannot tell.
With a shaped anchor `logp_ref` is log π_ref + log q, and k3 is an unbiased estimate of the *generalised* KL.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from killick.maths.reduce import upcast


def _log_ratio(
    numerator: Float[Tensor, "B T"], denominator: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    # Masked before any exponential: 0 · exp(NaN) in a backward pass would be NaN.
    return torch.where(mask, upcast(numerator) - upcast(denominator), 0.0)


def k1(logp: Float[Tensor, "B T"], logp_ref: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Log-ratio log π − log π_ref of the taken token, nats: unbiased for the reverse KL, of either sign.

    Gradient: the score alone, whose expectation is 0, hence no regularisation as a loss (R1).
    """
    return _log_ratio(logp, logp_ref, mask)


def k2(logp: Float[Tensor, "B T"], logp_ref: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """½(log π − log π_ref)², nats²; ≥ 0, biased as a value.

    Gradient: (log π − log π_ref)·s, in expectation the reverse KL's, on-policy only (R2).
    """
    return 0.5 * _log_ratio(logp, logp_ref, mask).square()


def k3(logp: Float[Tensor, "B T"], logp_ref: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The estimate u − 1 − log u, nats; ≥ 0, unbiased, unbounded where the policy undershoots the anchor.

    Gradient: (1 − u)·s, in expectation the *forward* KL's (R3); with an anchor q·π_ref, whose mass is not 1, the
        gradient of Z·KL(q π_ref/Z ‖ π), Z = Σ q π_ref.
    Limits: expm1 keeps it exact near u = 1, where u − 1 − log u cancels.
    """
    log_u = _log_ratio(logp_ref, logp, mask)
    return torch.expm1(log_u) - log_u


def k3_ratio(
    logp: Float[Tensor, "B T"],
    logp_old: Float[Tensor, "B T"],
    logp_ref: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """ρ·k3 with ρ = π/π_old, differentiated through both factors.

    Args:
        logp: current policy, nats, with gradient.
        logp_old: the policy that sampled, nats; detached here.
        logp_ref: anchor, nats.
        mask: True where the token counts.

    Returns:
        nats, 0 where masked.

    Gradient: ρ·(log π − log π_ref)·s; its expectation under π_old is the reverse KL's (R6).
    Limits: differs from k3 in gradient even at ρ = 1, where the values agree.
    Source: DeepSeek-V3.2; TRL `use_bias_correction_kl` [code].
    """
    return _log_ratio(logp, logp_old.detach(), mask).exp() * k3(logp, logp_ref, mask)


def _forward_chunk(
    logits_BTV: Float[Tensor, "B T V"], logits_ref_BTV: Float[Tensor, "B T V"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    keep = mask.unsqueeze(-1)
    logp_BTV = torch.where(keep, upcast(logits_BTV), 0.0).log_softmax(dim=-1)
    logp_ref_BTV = torch.where(keep, upcast(logits_ref_BTV), 0.0).log_softmax(dim=-1)
    p_ref_BTV = logp_ref_BTV.exp()
    # Tokens the reference excludes contribute 0, although their log-ratio is not finite.
    term_BTV = torch.where(p_ref_BTV > 0, p_ref_BTV * (logp_ref_BTV - logp_BTV), 0.0)
    return torch.where(mask, term_BTV.sum(dim=-1), 0.0)


def forward_exact(
    logits_BTV: Float[Tensor, "B T V"],
    logits_ref_BTV: Float[Tensor, "B T V"],
    mask: Bool[Tensor, "B T"],
    chunk: int = 32,
) -> Float[Tensor, "B T"]:
    """Exact forward KL at each visited state: Σ_v π_ref(v)·log(π_ref(v)/π(v)).

    Args:
        logits_BTV: current policy, with gradient; already divided by the temperature if there is one.
        logits_ref_BTV: reference; detached here.
        mask: True where the position counts.
        chunk: positions computed at a time; bounds the float32 copies of [B, chunk, V]. Their log-softmax is
            recomputed in the backward pass instead of stored.

    Returns:
        nats, float32 or wider, ≥ 0; 0 where masked.

    Gradient: π − π_ref with respect to the logits, no sampling noise (form F3).
    Limits: +inf where the policy excludes a token the reference allows.
    """
    reference = logits_ref_BTV.detach()
    pieces = [
        checkpoint(_forward_chunk, now, ref, keep, use_reentrant=False, preserve_rng_state=False)
        for now, ref, keep in zip(
            torch.split(logits_BTV, chunk, dim=1),
            torch.split(reference, chunk, dim=1),
            torch.split(mask, chunk, dim=1),
            strict=True,
        )
    ]
    return torch.cat(pieces, dim=1)


def reward_to_go(per_token: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Sum of the unmasked values from each position to the end of its row: Σ_{t'≥t} x_t'.

    Args:
        per_token: a per-token reward or penalty.
        mask: True where the token counts; masked tokens inside a row are skipped, not barriers.

    Returns:
        float32 or wider; 0 where masked.

    Gradient: flows; callers that use it as a coefficient of the score detach it.
    """
    kept = torch.where(mask, upcast(per_token), 0.0)
    return torch.where(mask, kept.flip(-1).cumsum(dim=-1).flip(-1), 0.0)
