"""The shaped anchor q·π_ref and the exact quantities of its objective on an enumerated problem.

J' = E_π[r] − β·D̃(π ‖ q·π_ref) is stationary at π ∝ q·π_ref·exp(r/β). The anchor's mass Σ q·π_ref is not 1, hence the
generalised KL. Functions with an axis Y enumerate the answers of one problem: they are for tests and small studies.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from killick.maths.reduce import upcast


def shaped_anchor(logp_ref: Float[Tensor, "B T"], log_q: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """log(q·π_ref) of the taken token, nats, in the dtype of `logp_ref`.

    Args:
        logp_ref: reference policy, nats.
        log_q: logarithm of the guide's factor; 0 leaves the token alone.

    Returns:
        logp_ref + log_q. Where log_q is 0 the result has the very bits of `logp_ref`, so that a guide that says
        nothing cannot change a run (adding 0.0 would turn −0.0 into 0.0).

    Gradient: none is expected in either argument.
    Limits: in bfloat16 a log_q below the spacing of logp_ref (0.03 at −8 nats) is rounded away.
    """
    shaped = (upcast(logp_ref) + log_q).to(logp_ref.dtype)
    return torch.where(log_q == 0, logp_ref, shaped)


def generalised_kl(logp_Y: Float[Tensor, "*n Y"], log_m_Y: Float[Tensor, "*n Y"]) -> Float[Tensor, "*n"]:
    """D̃(π‖m) = Σ π·log(π/m) − Σ π + Σ m, for measures that need not sum to 1.

    Args:
        logp_Y: log π over the enumerated answers, −inf allowed.
        log_m_Y: log m, e.g. log q + log π_ref, −inf allowed.

    Returns:
        ≥ 0, and 0 iff π = m; +inf where π has mass that m lacks. nats.

    Gradient: Σ log(π/m)·∂π, exact.
    Limits: the ordinary KL when both sum to 1.
    Source: SAGE's objective for an unnormalised anchor [paper].
    """
    p_Y, m_Y = logp_Y.exp(), log_m_Y.exp()
    # 0·log 0 = 0, with the logarithm replaced before it is multiplied so that the gradient stays finite too.
    log_ratio_Y = torch.where(p_Y > 0, logp_Y - log_m_Y, 0.0)
    return (p_Y * log_ratio_Y - p_Y + m_Y).sum(dim=-1)


def closed_form_logp(
    logp_ref_Y: Float[Tensor, "*n Y"], log_q_Y: Float[Tensor, "*n Y"], reward_Y: Float[Tensor, "*n Y"], beta: float
) -> Float[Tensor, "*n Y"]:
    """Where J' is stationary for a fixed q: log(q·π_ref·exp(r/β)/Z).

    Args:
        logp_ref_Y: log π_ref(y|x) of whole answers.
        log_q_Y: log q(x, y) = Σ_t log q_t; 0 gives the ordinary KL-regularised optimum.
        reward_Y: r(x, y).
        beta: > 0.

    Returns:
        normalised log-probabilities; −inf where π_ref is 0, whatever q: the anchor redistributes, it does not create.

    Source: SAGE, stationary policy [paper].
    """
    return (logp_ref_Y + log_q_Y + reward_Y / beta).log_softmax(dim=-1)


def support_threshold(
    logp_ref_Y: Float[Tensor, " Y"],
    log_q_Y: Float[Tensor, " Y"],
    reward_Y: Float[Tensor, " Y"],
    beta: float,
    delta: float,
    answer: int,
) -> Float[Tensor, ""]:
    """The smallest q(y*) with which answer y* holds at least `delta` of the stationary policy.

    q(y*) ≥ δ·W / ((1−δ)·π_ref(y*)·exp(r(y*)/β)),  W = Σ_{y≠y*} q·π_ref·exp(r/β).

    Args:
        logp_ref_Y: log π_ref over all answers.
        log_q_Y: log q; the entry of y* itself is not read.
        reward_Y: rewards.
        beta: > 0.
        delta: the support S_δ holds answers with π ≥ δ; in (0, 1).
        answer: index of y*.

    Returns:
        The threshold; +inf when π_ref(y*) = 0.

    Source: SAGE, Theorem 4.3; this form [derived] from π(y*) = a·q/(a·q + W) ≥ δ.
    """
    log_base_Y = logp_ref_Y + reward_Y / beta
    others = torch.arange(logp_ref_Y.shape[0], device=logp_ref_Y.device) != answer
    log_w = (log_base_Y + log_q_Y)[others].logsumexp(dim=0)
    odds = torch.tensor(delta / (1.0 - delta), dtype=log_w.dtype, device=log_w.device)
    return (odds.log() + log_w - log_base_Y[answer]).exp()
