"""What each `kl_form` really converges to, worked out per state from the leaves up; no gradient is taken here.

With C(s, a) the conditional mean over answers through state s and token a, and π the policy below:

    k1_reward_to_go         π(a|s) ∝ π_ref·exp( C[r]/β + C[Σ_t' log q_t'] − Σ_{t'>t} C[log π/π_ref] )
    k2_loss, k3_ratio       π(a|s) ∝ π_ref·exp( C[r]/β + C[log q_t] )         the KL of later states is not planned for
    k3_loss, forward_exact  π(a|s) = β·m / (λ(s) − C[r]),  m = π_ref·C[q_t]   λ(s) makes it sum to 1

The first line is q·π_ref·exp(r/β)/Z. Its Σ_t' runs over the whole row: where q_t' depends on the tokens up to t' only,
earlier positions add a constant, and where it also depends on later ones (weights relative to the row) they count.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from killick.lab.objective import view_of
from killick.lab.tree import Problems
from killick.maths import closed_form_logp
from killick.methods.sage import AnchorShaper

NUM_SWEEPS = 150
"""Most repetitions of q(π) -> π(q). A guide that reads the policy needs a few dozen, a fixed one needs two."""
SETTLED = 1e-7
"""Change of a probability at which the repetition stops: guides are float32."""
NUM_NEWTON = 30


def log_q_of(problems: Problems, policy_SNV: Float[Tensor, "S N V"], anchor: AnchorShaper) -> Float[Tensor, "S Y T"]:
    """The guide's log q for every answer and token, at this policy."""
    rows = problems.tree.all_rows(problems.num)
    logp_BTV, logp_ref_BTV = (rows.states(p).log_softmax(-1) for p in (policy_SNV, problems.reference_SNV))
    log_q = anchor.log_q(view_of(rows, logp_BTV, logp_ref_BTV)).double()
    return log_q.reshape(problems.num, problems.tree.num_answers, problems.tree.depth)


def closed_form(problems: Problems, anchor: AnchorShaper) -> Float[Tensor, "S N V"]:
    """The policy q·π_ref·exp(r/β)/Z with the q it gives rise to itself.

    Without an anchor (β = 0) the limit β → 0: the reference given that the answer is right.
    """
    logp_ref_SY = problems.tree.answer_logp(problems.reference_SNV)
    beta = anchor.beta or 1e-3  # exp(−1000) is 0

    def solve(log_q_SYT: Tensor) -> Tensor:
        logp_SY = closed_form_logp(logp_ref_SY, log_q_SYT.sum(-1), problems.reward_SY, beta)
        return problems.tree.policy_of(logp_SY)

    return _self_consistent(problems, anchor, solve)


def stationary(problems: Problems, anchor: AnchorShaper) -> Float[Tensor, "S N V"] | None:
    """The fixed point of this form's expected update, from the table above; None for form "none", which has no single
    one: every policy that is always right stands still.
    """
    if anchor.kl_form == "none":
        return None
    return _self_consistent(problems, anchor, lambda log_q_SYT: _induction(problems, log_q_SYT, anchor))


def _self_consistent(problems: Problems, anchor: AnchorShaper, solve: Callable[[Tensor], Tensor]) -> Tensor:
    # A guide that reads the policy can make the map swing around its fixed point; then the way there is cut shorter.
    p_SNV = problems.reference_SNV.softmax(-1)
    share_S = torch.ones(problems.num, dtype=torch.float64)
    change_S = torch.full_like(share_S, torch.inf)
    for _ in range(NUM_SWEEPS):
        way_SNV = solve(log_q_of(problems, p_SNV.log(), anchor)).softmax(-1) - p_SNV
        before_S, change_S = change_S, way_SNV.abs().amax((1, 2))
        share_S = torch.where(change_S > 0.9 * before_S, 0.5 * share_S, (1.1 * share_S).clamp(max=1.0))
        p_SNV = p_SNV + share_S[:, None, None] * way_SNV
        if bool((change_S <= SETTLED).all()):
            break
    return p_SNV.log()


def _induction(problems: Problems, log_q_SYT: Float[Tensor, "S Y T"], anchor: AnchorShaper) -> Tensor:
    tree, beta = problems.tree, anchor.beta
    tail_SY = torch.ones_like(problems.reward_SY)  # probability of an answer given its first t+1 tokens
    later_SY = torch.zeros_like(problems.reward_SY)  # Σ_{t'>t} log q − log π/π_ref of that answer
    levels: list[Tensor] = []
    for t in reversed(range(tree.depth)):
        shape = (problems.num, tree.branching**t, tree.branching, -1)

        def given(values_SY: Tensor, tail: Tensor = tail_SY, shape: tuple[int, ...] = shape) -> Tensor:
            return (tail * values_SY).reshape(shape).sum(-1)

        logp_ref = problems.reference_SNV[:, tree.level(t)].log_softmax(-1)
        log_q_SY = log_q_SYT[..., t]
        if anchor.kl_form in ("k3_loss", "forward_exact"):
            logp = _forward(logp_ref.exp() * given(log_q_SY.exp()), given(problems.reward_SY), beta).log()
        else:
            credit_SY = log_q_SY
            if anchor.kl_form == "k1_reward_to_go":
                credit_SY = log_q_SYT[..., : t + 1].sum(-1) + later_SY
            logp = (logp_ref + given(problems.reward_SY) / beta + given(credit_SY)).log_softmax(-1)
        levels.insert(0, logp)

        def spread(values: Tensor, shape: tuple[int, ...] = shape) -> Tensor:
            return values[..., None].expand(*shape[:3], tree.num_answers // (shape[1] * shape[2])).reshape(shape[0], -1)

        tail_SY = tail_SY * spread(logp.exp())
        # Where the reference is 0 the policy is too: nothing is summed there.
        later_SY = later_SY + log_q_SY - spread(torch.where(logp_ref.isfinite(), logp - logp_ref, 0.0))
    return torch.cat(levels, 1)


def _forward(m: Float[Tensor, "S n V"], gain: Float[Tensor, "S n V"], beta: float) -> Float[Tensor, "S n V"]:
    """Solve p = β·m/(λ − gain) for the λ that makes Σ p = 1.

    The sum is convex and falls in λ, so Newton's method started left of the root, where one token alone would have
    probability 1, approaches it from there without ever overshooting.
    """
    gain = torch.where(m > 0, gain, 0.0)  # a token the reference excludes has p = 0, whatever it would gain
    level = torch.where(m > 0, gain + beta * m, -torch.inf).amax(-1, keepdim=True)
    for _ in range(NUM_NEWTON):
        p = beta * m / (level - gain)
        level = level + (p.sum(-1, keepdim=True) - 1.0) / (p / (level - gain)).sum(-1, keepdim=True)
    p = beta * m / (level - gain)
    return p / p.sum(-1, keepdim=True)
