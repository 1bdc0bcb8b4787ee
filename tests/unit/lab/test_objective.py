"""Expected updates against autograd of what they claim to be; sampled updates against their mean over all groups."""

import itertools

import pytest
import torch

from killick.lab.anchors import GUIDE_NAMES, AnchorsSettings, arms, make_guide
from killick.lab.objective import TableGuide, descend, expected_descent, per_token_loss, shaper
from killick.lab.shrinkage import RULES, group_advantage, sampled_descent
from killick.lab.theory import closed_form, log_q_of, stationary
from killick.lab.tree import Tree, draw_problems
from killick.maths import generalised_kl, row_sum

BETA = 0.3


@pytest.fixture
def problems():
    return draw_problems(Tree(2, 3), 3, 1.0, 2, 0)


@pytest.fixture
def policy(problems):
    generator = torch.Generator().manual_seed(9)
    return torch.randn(problems.reference_SNV.shape, generator=generator, dtype=torch.float64)


def test_return_to_go_is_the_gradient_of_the_objective(problems, policy):
    """−∂/∂logits of −(E[r] − β·D̃(π ‖ q·π_ref)), which autograd takes from the enumerated divergence."""
    guide = make_guide("oracle", problems, AnchorsSettings())
    anchor = shaper("k1_reward_to_go", guide, BETA)
    log_m_SY = problems.tree.answer_logp(problems.reference_SNV) + log_q_of(problems, policy, anchor).sum(-1)
    policy.requires_grad_()
    logp_SY = problems.tree.answer_logp(policy)
    objective = (logp_SY.exp() * problems.reward_SY).sum() - BETA * generalised_kl(logp_SY, log_m_SY).sum()
    exact = torch.autograd.grad(objective, policy)[0]
    torch.testing.assert_close(expected_descent(problems, policy, anchor), exact, rtol=0, atol=2e-7)  # penalty: float32


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
    reaches = form == "k1_reward_to_go" and guide != "token"
    assert ((one - at_closed).abs().max() < 1e-5) == reaches


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


def test_the_whole_row_of_log_q_would_reach_the_closed_form(problems):
    """With a guide normalised within the row, a return-to-go leaves out Σ_{t'<t} log q_t', which depends on y_t.

    Adding it to the advantage makes the update zero at the closed form; without it the update is not.
    """
    anchor = shaper("k1_reward_to_go", make_guide("token", problems, AnchorsSettings()), BETA)
    policy = closed_form(problems, anchor).requires_grad_()
    rows = problems.tree.all_rows(problems.num)
    p_SY = problems.tree.answer_logp(policy).detach().exp()
    loss = per_token_loss(problems, policy, rows, problems.reward_SY.flatten(), anchor)
    log_q = log_q_of(problems, policy.detach(), anchor).flatten(0, 1)
    earlier = BETA * (log_q.cumsum(-1) - log_q)
    logp = rows.taken(rows.states(policy).log_softmax(-1))

    def largest(per_token):
        total = (p_SY.flatten() * row_sum(per_token, rows.mask)).sum()
        return float(torch.autograd.grad(total, policy, retain_graph=True)[0].abs().max())

    assert largest(loss) > 1e-3
    assert largest(loss - earlier * logp) < 1e-6


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
