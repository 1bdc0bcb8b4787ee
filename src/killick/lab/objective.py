"""One update of a trainer on an enumerated problem: the library's loss, exact or sampled, and its fixed point.

Everything that makes up the loss comes from `killick.maths` and `killick.methods.sage`. This file only decides which
rows enter with which weight: all answers weighted by π gives the expected gradient, drawn answers a sampled one.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from killick.lab.tree import Problems, Rows
from killick.maths import clipped_surrogate, forward_exact, k3, k3_ratio, row_sum
from killick.methods.sage import AnchorShaper
from killick.methods.slots import Guide, RolloutView

STEP_MAX = 2.0
"""Longest natural step in one logit. Far from the fixed point the forward forms have very steep slopes."""
NUM_STEPS, NUM_STEPS_FREE = 400, 1000
"""Most updates with an anchor and without. Fixed points are reached within about a hundred."""
TOLERANCE = 1e-6
"""Largest natural step at which a policy counts as converged. Guides and penalties are float32, as in training."""


@dataclass(frozen=True)
class TableGuide:
    """q given for every row and token: a guide that may know anything, e.g. which answers are right.

    Attributes:
        q_BT: the factors, for the rows the view holds, in their order.
        q_min: lower bound of q, as for every guide.
        q_max: upper bound.
    """

    q_BT: Tensor
    needs_noise: frozenset[str] = frozenset()
    q_min: float = 0.6
    q_max: float = 1.4

    def __call__(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """The table, whatever the view says."""
        return self.q_BT.float()


def shaper(kl_form: str, guide: Guide | None, beta: float) -> AnchorShaper:
    """An `AnchorShaper` without the warning about idle guides: showing that they are idle is the purpose here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return AnchorShaper(guide, kl_form, 0.0 if kl_form == "none" else beta)


def view_of(rows: Rows, logp_BTV: Float[Tensor, "B T V"], logp_ref_BTV: Float[Tensor, "B T V"]) -> RolloutView:
    """What a guide sees of these rows. A token that policy and reference exclude is masked: it is never sampled."""
    entropy = torch.special.entr(logp_BTV.detach().exp()).sum(-1)
    logp, logp_ref = rows.taken(logp_BTV.detach()), rows.taken(logp_ref_BTV)
    return RolloutView(logp, entropy, rows.mask & logp.isfinite(), logp_ref, step=0, num_steps=1)


def per_token_loss(
    problems: Problems,
    policy_SNV: Float[Tensor, "S N V"],
    rows: Rows,
    advantage_B: Float[Tensor, " B"],
    anchor: AnchorShaper,
) -> Float[Tensor, "B T"]:
    """The loss a trainer takes for one on-policy update, per token: surrogate plus β times the form's term.

    Args:
        problems: for the reference.
        policy_SNV: logits, with gradient.
        rows: what was sampled (or all there is).
        advantage_B: one per row.
        anchor: guide, `kl_form` and β.
    """
    logits_BTV, logits_ref_BTV = rows.states(policy_SNV), rows.states(problems.reference_SNV)
    logp_BTV = logits_BTV.log_softmax(-1)
    logp = rows.taken(logp_BTV)
    view = view_of(rows, logp_BTV, logits_ref_BTV.log_softmax(-1))
    shaped = anchor.shape(view)
    assert shaped.logp_ref is not None, "the view has a reference"
    advantage = advantage_B[:, None].expand_as(logp)
    if shaped.penalty_to_go is not None:
        advantage = advantage - shaped.penalty_to_go
    loss = clipped_surrogate(logp, logp, advantage, view.mask)
    match anchor.kl_form:
        case "k3_loss":
            return loss + anchor.beta * k3(logp, shaped.logp_ref, view.mask)
        case "k3_ratio":
            return loss + anchor.beta * k3_ratio(logp, logp, shaped.logp_ref, view.mask)
        case "forward_exact":
            return loss + anchor.beta * forward_exact(logits_BTV, logits_ref_BTV, view.mask)
    extra = anchor.extra_per_token(logp, shaped, view.mask)
    return loss if extra is None else loss + anchor.beta * extra


def descent(loss: Tensor, policy_SNV: Float[Tensor, "S N V"]) -> Float[Tensor, "S N V"]:
    """−∂loss/∂logits."""
    return -torch.autograd.grad(loss, policy_SNV)[0]


def expected_descent(
    problems: Problems,
    policy_SNV: Float[Tensor, "S N V"],
    anchor: AnchorShaper,
    advantage: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "S N V"]:
    """The direction of the expected update: every answer enters with its probability, which is not differentiated.

    Args:
        problems: S problems, updated side by side.
        policy_SNV: logits.
        anchor: guide, `kl_form` and β.
        advantage: success [S] -> advantage of a wrong and of a right answer [S, 2]; None gives r − E[r], the limit of
            large groups.
    """
    policy_SNV = policy_SNV.detach().requires_grad_()
    rows = problems.tree.all_rows(problems.num)
    with torch.no_grad():
        p_SY = problems.tree.answer_logp(policy_SNV).exp()
        success_S = (p_SY * problems.reward_SY).sum(-1)
        if advantage is None:
            advantage_SY = problems.reward_SY - success_S[:, None]
        else:
            advantage_SY = advantage(success_S).gather(1, problems.reward_SY.long())
    per_token = per_token_loss(problems, policy_SNV, rows, advantage_SY.flatten(), anchor)
    loss = (p_SY.flatten() * row_sum(per_token, rows.mask)).sum()
    return descent(loss, policy_SNV)


@dataclass(frozen=True)
class FixedPoint:
    """Where the expected update stands still.

    Attributes:
        policy_SNV: logits.
        residual: largest natural step left.
        num_steps: updates made.
    """

    policy_SNV: Float[Tensor, "S N V"]
    residual: float
    num_steps: int

    @property
    def converged(self) -> bool:
        """Whether the residual is below `TOLERANCE`."""
        return self.residual <= TOLERANCE


def descend(problems: Problems, anchor: AnchorShaper) -> FixedPoint:
    """Follow the expected update from the reference until it stands still.

    The gradient is taken by autograd through the library's loss, then divided by the Fisher matrix of the softmax at
    each node (visits · (diag p − p pᵀ); on vectors that sum to 0 its inverse is 1/(visits · p)). Where the update is
    zero does not depend on this, how fast one gets there does: along the raw gradient rarely visited nodes need
    10^5 steps. The step starts at 1/β for the reverse forms, which makes each of them an iteration of the soft Bellman
    equation, and lower for the forward ones, which are steeper. It is halved for a problem whose residual grew.

    Args:
        problems: S problems, each with its own step.
        anchor: guide, `kl_form` and β; with form "none" there is no unique fixed point, the path decides.

    Limits: gives up after `NUM_STEPS`; see `FixedPoint.converged`. A guide may leave no fixed point at all: `token`
        normalised over rows of two tokens jumps where both are equally surprising, and the policy is driven to that
        edge from both sides.
    """
    forward = anchor.kl_form in ("k3_loss", "forward_exact")
    rate = 1.0 if anchor.beta == 0.0 else 1.0 / (anchor.beta + (1.0 if forward else 0.0))
    policy_SNV, rate_S = problems.reference_SNV, torch.full((problems.num,), rate, dtype=torch.float64)
    residual_S = torch.full_like(rate_S, torch.inf)
    num_steps = NUM_STEPS if anchor.beta > 0.0 else NUM_STEPS_FREE
    for done in range(num_steps + 1):  # noqa: B007 (reported below)
        natural_SNV = natural_descent(problems, policy_SNV, anchor)
        before_S, residual_S = residual_S, natural_SNV.abs().amax((1, 2))
        if bool((residual_S <= TOLERANCE).all()):
            break
        if anchor.beta > 0.0:  # without an anchor the residual rises before it falls
            rate_S = torch.where(residual_S > before_S, 0.5 * rate_S, (1.05 * rate_S).clamp(max=rate))
        step_SNV = rate_S[:, None, None] * natural_SNV
        policy_SNV = (policy_SNV + step_SNV.clamp(-STEP_MAX, STEP_MAX)).log_softmax(-1)
    return FixedPoint(policy_SNV, float(residual_S.max()), done)


def natural_descent(
    problems: Problems, policy_SNV: Float[Tensor, "S N V"], anchor: AnchorShaper
) -> Float[Tensor, "S N V"]:
    """`expected_descent` divided by the Fisher matrix of each node."""
    fisher_SNV = problems.tree.visits(policy_SNV)[..., None] * policy_SNV.softmax(-1)
    gradient_SNV = expected_descent(problems, policy_SNV, anchor)
    # A node that is never reached, or a branch of probability 0, has no say in the update.
    return torch.where(fisher_SNV > 1e-300, gradient_SNV / fisher_SNV, 0.0)
