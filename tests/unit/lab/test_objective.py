"""Expected updates against autograd of what they claim to be; sampled updates against their mean over all groups."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from killick.lab.anchors import GUIDE_NAMES, AnchorsSettings, arms, make_guide
from killick.lab.objective import TableGuide, descend, expected_descent, shaper
from killick.lab.shrinkage import RULES, group_advantage, sampled_descent
from killick.lab.theory import closed_form, log_q_of, stationary
from killick.lab.tree import Tree, draw_problems
from killick.maths import generalised_kl
from killick.methods.guides.surprisal import SurprisalGuide

BETA = 0.3


@pytest.fixture
def problems():
    return draw_problems(Tree(2, 3), 3, 1.0, 2, 0)


@pytest.fixture
def policy(problems):
    generator = torch.Generator().manual_seed(9)
    return torch.randn(problems.reference_SNV.shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class ShortSightedToken(SurprisalGuide):
    """The token guide without its word that q reads later tokens."""

    reads_later: ClassVar[bool] = False


@pytest.mark.parametrize("name", ["oracle", "branch", "token", "short-sighted token"])
def test_return_to_go_is_the_gradient_of_the_objective(problems, policy, name):
    """−∂/∂logits of −(E[r] − β·D̃(π ‖ q·π_ref)), which autograd takes from the enumerated divergence.

    The q of `token` is relative to the row: the log q of earlier positions depends on the token taken at t and belongs
    to its return. A return-to-go without it misses the gradient.
    """
    short = ShortSightedToken(sigma_upper=0.0, sigma_lower=0.0)
    guide = short if name.startswith("short") else make_guide(name, problems, AnchorsSettings())
    anchor = shaper("k1_reward_to_go", guide, BETA)
    log_m_SY = problems.tree.answer_logp(problems.reference_SNV) + log_q_of(problems, policy, anchor).sum(-1)
    policy.requires_grad_()
    logp_SY = problems.tree.answer_logp(policy)
    objective = (logp_SY.exp() * problems.reward_SY).sum() - BETA * generalised_kl(logp_SY, log_m_SY).sum()
    exact = torch.autograd.grad(objective, policy)[0]
    miss = (expected_descent(problems, policy, anchor) - exact).abs().max()
    assert (miss < 2e-7) == (guide is not short)  # the penalty is float32
    assert miss < 2e-7 or miss > 1e-3


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("form", ["none", "k3_loss", "k1_reward_to_go", "forward_exact"])
def test_the_expected_update_is_the_mean_over_all_groups(rule, size, form):
    problems = draw_problems(Tree(2, 2), 1, 1.0, 1, 1)
    policy = problems.reference_SNV + 0.3
    anchor = shaper(form, None, BETA)
    p_Y = problems.tree.answer_logp(policy)[0].exp()
    mean = torch.zeros_like(policy)
    for group in itertools.product(range(4), repeat=size):
        direction = sampled_descent(problems, policy, anchor, RULES[rule], torch.tensor([group]))
        mean += p_Y[list(group)].prod() * direction
    exact = expected_descent(problems, policy, anchor, group_advantage(RULES[rule], size))
    torch.testing.assert_close(mean, exact, rtol=0, atol=1e-7)


def test_centred_advantages_shrink_by_their_own_share():
    # A = r − (r + Σ others)/G; the others are right with probability p: (G−1)/G·(r − p).
    success = torch.tensor([0.25], dtype=torch.float64)
    wrong, right = group_advantage(RULES["centred"], 4)(success)[0].tolist()
    assert (wrong, right) == pytest.approx((0.75 * -0.25, 0.75 * 0.75))


def test_problems_do_not_mix(problems, policy):
    anchor = shaper("k3_loss", None, BETA)
    both = expected_descent(problems, policy, anchor)
    alone = expected_descent(draw_problems(Tree(2, 3), 3, 1.0, 1, 1), policy[1:], anchor)  # problem 1 has seed 0 + 1
    torch.testing.assert_close(both[1:], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("form", "guide"), arms())
def test_training_ends_where_theory_says(problems, form, guide):
    anchor = shaper(form, make_guide(guide, problems, AnchorsSettings()), BETA)
    if form == "none":
        assert stationary(problems, anchor) is None
        return
    found = descend(problems, anchor)
    assert found.converged
    one, other = (problems.tree.answer_logp(p).exp() for p in (found.policy_SNV, stationary(problems, anchor)))
    assert (one - other).abs().max() < 1e-5
    at_closed = problems.tree.answer_logp(closed_form(problems, anchor)).exp()
    assert ((one - at_closed).abs().max() < 1e-5) == (form == "k1_reward_to_go")


def test_forward_point_by_hand():
    """One state, uniform reference, r = (1, 0), β = ½: p = ¼/(λ − r) sums to 1 for λ² − (3/2)λ + ¼ = 0.

    λ = (3 + √5)/4, so p₁ = ¼/(λ − 1) = 1/(√5 − 1) = 0.809.
    """
    problems = draw_problems(Tree(2, 1), 1, 0.0, 1, 0)
    right = int(problems.reward_SY[0].argmax())
    for policy in (
        stationary(problems, shaper("k3_loss", None, 0.5)),
        descend(problems, shaper("k3_loss", None, 0.5)).policy_SNV,
    ):
        assert problems.tree.answer_logp(policy)[0, right].exp().item() == pytest.approx(1 / (5**0.5 - 1), abs=1e-6)


def test_a_table_is_clamped_like_any_guide(problems):
    q = torch.full((problems.num * 8, 3), 9.0)
    assert log_q_of(
        problems, problems.reference_SNV, shaper("k3_loss", TableGuide(q), BETA)
    ).exp().max() == pytest.approx(1.4)


def test_every_guide_of_the_table_can_be_made(problems):
    made = {name: make_guide(name, problems, AnchorsSettings()) for name in GUIDE_NAMES}
    assert made["none"] is None
    assert (made["branch"].gamma, made["branch"].tau) == (0.3, 0.6)
    assert not made["token"].needs_noise
