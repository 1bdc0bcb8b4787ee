"""What each KL form descends: gradients of expected losses by enumeration, in float64 (baselines.md R1–R8).

"Exact" gradients are those autograd gives for the enumerated divergence. Values cannot tell the forms apart: k3 has the
same expectation in all of them.
"""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from killick.maths import forward_exact, generalised_kl, k1, k2, k3, k3_ratio, reward_to_go
from killick.methods.guides.branch import BranchGuide
from killick.methods.guides.constant import ConstantGuide
from killick.methods.guides.surprisal import SurprisalGuide
from killick.methods.sage import AnchorShaper

GUIDED_FORMS = ["k3_loss", "k3_ratio", "k2_loss", "k1_reward_to_go"]


def grad(value, logits):
    return torch.autograd.grad(value, logits, retain_graph=True)[0]


def close(a, b, atol=1e-13):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


def reverse_kl(logits, logits_ref):
    """KL(π‖π_ref) at every node."""
    logp, logp_ref = logits.log_softmax(-1), logits_ref.log_softmax(-1)
    return (logp.exp() * (logp - logp_ref)).sum(-1)


def forward_kl(logits, logits_ref):
    return reverse_kl(logits_ref, logits)


def sequence_reverse_kl(tree, logits, logits_ref):
    logp, logp_ref = tree.logp(logits).sum(-1), tree.logp(logits_ref).sum(-1)
    return (logp.exp() * (logp - logp_ref)).sum()


def setting(tree):
    logits, logits_ref = tree.policy(0).requires_grad_(), tree.policy(1)
    return logits, logits_ref, tree.logp(logits), tree.logp(logits_ref)


# One state ---------------------------------------------------------------------------------------------------------


def test_r1_k1_as_a_loss_does_not_regularise(state):
    logits, _, logp, logp_ref = setting(state)
    close(grad(state.expected(k1(logp, logp_ref, state.mask), logits), logits), torch.zeros_like(logits))


def test_r2_k2_as_a_loss_descends_the_reverse_kl(state):
    logits, logits_ref, logp, logp_ref = setting(state)
    result = grad(state.expected(k2(logp, logp_ref, state.mask), logits), logits)
    close(result, grad(reverse_kl(logits, logits_ref).sum(), logits))


def test_r3_k3_as_a_loss_descends_the_forward_kl(state):
    logits, logits_ref, logp, logp_ref = setting(state)
    loss = state.expected(k3(logp, logp_ref, state.mask), logits)
    close(loss, reverse_kl(logits, logits_ref).sum())  # it estimates the reverse KL …
    close(grad(loss, logits), grad(forward_kl(logits, logits_ref).sum(), logits))  # … and descends the forward KL


def test_r5_k3_in_the_reward_is_the_difference_of_the_two(state):
    logits, logits_ref, logp, logp_ref = setting(state)
    coefficient = k3(logp, logp_ref, state.mask).detach()
    result = grad(state.expected(coefficient * logp, logits), logits)
    difference = reverse_kl(logits, logits_ref).sum() - forward_kl(logits, logits_ref).sum()
    close(result, grad(difference, logits))


def test_r6_the_ratio_makes_k3_descend_the_reverse_kl_also_off_policy(state):
    logits, logits_ref, logp, logp_ref = setting(state)
    sampler = state.policy(2)
    exact = grad(reverse_kl(logits, logits_ref).sum(), logits)
    for old in (logits, sampler):
        loss = state.expected(k3_ratio(logp, state.logp(old), logp_ref, state.mask), old)
        close(grad(loss, logits), exact)
    uncorrected = grad(state.expected(k2(logp, logp_ref, state.mask), sampler), logits)
    assert (uncorrected - exact).norm() > 0.05


def test_r7_the_value_of_k3_can_be_had_with_the_gradient_of_k2(state):
    logits, logits_ref, logp, logp_ref = setting(state)
    value, slope = k3(logp, logp_ref, state.mask), k2(logp, logp_ref, state.mask)
    loss = state.expected(slope + (value - slope).detach(), logits)
    close(loss, reverse_kl(logits, logits_ref).sum())
    close(grad(loss, logits), grad(reverse_kl(logits, logits_ref).sum(), logits))


def test_the_exact_forward_kl_needs_no_sampling(tree):
    logits, logits_ref, _, _ = setting(tree)
    per_token = forward_exact(logits[tree.node], logits_ref[tree.node], tree.mask)
    result = grad(tree.expected(per_token, logits), logits)
    close(result, grad((tree.visits(logits) * forward_kl(logits, logits_ref)).sum(), logits))


# Two steps: what a state-wise gradient leaves out ------------------------------------------------------------------


def test_r4_k1_in_the_reward_with_return_to_go_is_the_sequence_gradient(tree):
    logits, logits_ref, logp, logp_ref = setting(tree)
    coefficient = reward_to_go(k1(logp, logp_ref, tree.mask), tree.mask).detach()
    result = grad(tree.expected(coefficient * logp, logits), logits)
    close(result, grad(sequence_reverse_kl(tree, logits, logits_ref), logits))


def test_r4_without_return_to_go_only_the_state_wise_part_is_left(tree):
    logits, logits_ref, logp, logp_ref = setting(tree)
    coefficient = k1(logp, logp_ref, tree.mask).detach()
    result = grad(tree.expected(coefficient * logp, logits), logits)
    close(result, grad((tree.visits(logits) * reverse_kl(logits, logits_ref)).sum(), logits))


def test_r8_forms_in_the_loss_drop_the_future(tree):
    logits, logits_ref, logp, logp_ref = setting(tree)
    in_loss = grad(tree.expected(k2(logp, logp_ref, tree.mask), logits), logits)
    exact = grad(sequence_reverse_kl(tree, logits, logits_ref), logits)
    # What is missing: each score times the KL at the states that come after it.
    kl_at = reverse_kl(logits, logits_ref).detach()[tree.node]
    future = reward_to_go(kl_at, tree.mask) - kl_at
    missing = grad(tree.expected(future * logp, logits), logits)
    close(in_loss + missing, exact)
    assert missing.norm() > 0.01


# Guides ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableGuide:
    """q given for each node and token, as a guide that reads the token in general terms."""

    q_nodes: tuple[tuple[float, ...], ...]
    node: tuple[tuple[int, ...], ...]
    choice: tuple[tuple[int, ...], ...]
    needs_noise: ClassVar[frozenset[str]] = frozenset()
    reads_token: ClassVar[bool] = True
    q_min: float = 0.6
    q_max: float = 1.4

    def __call__(self, view):
        return torch.tensor(self.q_nodes)[torch.tensor(self.node), torch.tensor(self.choice)]


def table_guide(tree):
    q_nodes = 0.6 + 0.8 * torch.rand(tree.num_nodes, tree.width, generator=torch.Generator().manual_seed(3))
    as_tuple = [tuple(map(tuple, table.tolist())) for table in (q_nodes, tree.node, tree.choice)]
    return q_nodes.double(), TableGuide(*as_tuple)


def form_gradient(tree, logits, logits_ref, guide, kl_form):
    """Expected gradient of one unit of the penalty (β = 1), assembled as an engine does it."""
    shaper = AnchorShaper(guide, kl_form, beta=1.0)
    view, logp = tree.view(logits, logits_ref), tree.logp(logits)
    shaped = shaper.shape(view)
    if kl_form == "k3_loss":
        per_token = k3(logp, shaped.logp_ref, tree.mask)
    elif kl_form == "k3_ratio":
        per_token = k3_ratio(logp, view.logp, shaped.logp_ref, tree.mask)
    elif kl_form == "k2_loss":
        per_token = shaper.extra_per_token(logp, shaped, tree.mask)
    else:
        per_token = shaped.penalty_to_go * logp
    return grad(tree.expected(per_token, logits), logits)


@pytest.fixture
def branch():
    # Random nodes have entropies between 0.4 and 1.1 nats (ln 3); the threshold cuts through them.
    return BranchGuide(gamma=0.5, tau=0.6)


@pytest.mark.filterwarnings("ignore:The guide")
@pytest.mark.parametrize("kl_form", ["k2_loss", "k3_ratio"])
def test_the_branch_guide_cancels_in_reverse_kl_losses(tree, branch, kl_form):
    logits, logits_ref, _, _ = setting(tree)
    with_guide = form_gradient(tree, logits, logits_ref, branch, kl_form)
    close(with_guide, form_gradient(tree, logits, logits_ref, None, kl_form))
    # It does act on single samples, so the test would see a guide that is off.
    assert AnchorShaper(branch, kl_form, 1.0).log_q(tree.view(logits, logits_ref)).max() > 0.1


def test_the_branch_guide_scales_the_forward_pull_of_k3_loss(tree, branch):
    logits, logits_ref, _, _ = setting(tree)
    result = form_gradient(tree, logits, logits_ref, branch, "k3_loss")
    view = tree.view(logits, logits_ref)
    q_nodes = torch.zeros(tree.num_nodes, dtype=torch.float64)
    q_nodes[tree.node] = AnchorShaper(branch, "k3_loss", 1.0).log_q(view).double().exp()
    assert len(q_nodes.unique()) > 2
    close(result, grad((tree.visits(logits) * q_nodes * forward_kl(logits, logits_ref)).sum(), logits))


def test_the_branch_guide_is_a_bonus_for_reaching_open_states_under_return_to_go(tree, branch):
    logits, logits_ref, logp, _ = setting(tree)
    added = form_gradient(tree, logits, logits_ref, branch, "k1_reward_to_go")
    added = added - form_gradient(tree, logits, logits_ref, None, "k1_reward_to_go")
    log_q = AnchorShaper(branch, "k3_loss", 1.0).log_q(tree.view(logits, logits_ref)).double()
    later = log_q.flip(-1).cumsum(-1).flip(-1) - log_q  # own log q multiplies a mean score of 0
    close(added, grad(tree.expected(-later * logp, logits), logits), atol=1e-6)
    assert added.norm() > 0.01


@pytest.mark.parametrize("kl_form", ["k2_loss", "k3_ratio"])
def test_a_token_guide_shifts_the_anchor_of_reverse_kl_losses(tree, kl_form):
    logits, logits_ref, _, _ = setting(tree)
    q_nodes, guide = table_guide(tree)
    result = form_gradient(tree, logits, logits_ref, guide, kl_form)
    anchor = (logits_ref.log_softmax(-1) + q_nodes.log()).log_softmax(-1)
    close(result, grad((tree.visits(logits) * reverse_kl(logits, anchor)).sum(), logits), atol=1e-7)


def test_a_token_guide_shifts_the_anchor_of_k3_loss(tree):
    logits, logits_ref, _, _ = setting(tree)
    q_nodes, guide = table_guide(tree)
    result = form_gradient(tree, logits, logits_ref, guide, "k3_loss")
    # Z·KL(qπ_ref/Z ‖ π), state by state.
    anchor = logits_ref.log_softmax(-1) + q_nodes.log()
    mass = anchor.exp().sum(-1)
    exact = (tree.visits(logits) * mass * forward_kl(logits, anchor.log_softmax(-1))).sum()
    close(result, grad(exact, logits), atol=1e-7)


def test_return_to_go_is_the_gradient_of_the_generalised_kl_of_whole_answers(tree):
    logits, logits_ref, logp, logp_ref = setting(tree)
    q_nodes, guide = table_guide(tree)
    result = form_gradient(tree, logits, logits_ref, guide, "k1_reward_to_go")
    log_m_Y = logp_ref.sum(-1) + q_nodes.log()[tree.node, tree.choice].sum(-1)
    close(result, grad(generalised_kl(logp.sum(-1), log_m_Y), logits), atol=1e-6)


def test_k3_estimates_the_generalised_kl(state):
    _, _, logp, logp_ref = setting(state)
    log_q = torch.tensor([[0.3], [0.0], [-0.2], [0.1]], dtype=torch.float64)
    estimate = (logp.exp() * k3(logp, logp_ref + log_q, state.mask)).sum()
    close(estimate, generalised_kl(logp[:, 0], (logp_ref + log_q)[:, 0]))


@pytest.mark.parametrize("kl_form", GUIDED_FORMS)
def test_the_surprisal_guide_acts_in_every_form(big_tree, kl_form):
    logits, logits_ref, _, _ = setting(big_tree)
    guide = SurprisalGuide(sigma_upper=0.0, sigma_lower=0.0)
    shift = form_gradient(big_tree, logits, logits_ref, guide, kl_form)
    shift = shift - form_gradient(big_tree, logits, logits_ref, None, kl_form)
    # Not a state-wise rescaling either: weights are normalised within the answer, so they read the tokens around.
    assert shift.norm() > 0.01


@pytest.mark.parametrize("kl_form", GUIDED_FORMS)
@pytest.mark.filterwarnings("ignore:The guide")
def test_the_control_equals_no_guide_bit_by_bit(tree, kl_form):
    logits, logits_ref, _, _ = setting(tree)
    control = form_gradient(tree, logits, logits_ref, ConstantGuide(), kl_form)
    assert torch.equal(control, form_gradient(tree, logits, logits_ref, None, kl_form))
