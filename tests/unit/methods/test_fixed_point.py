"""Where each form ends, by exact gradient ascent on 27 answers of which 3 are right.

Only `k1_reward_to_go` reaches the closed form q·π_ref·exp(r/β)/Z of the objective; the published loss ends elsewhere.
"""

import pytest
import torch

from killick.maths import closed_form_logp, k3
from killick.methods.guides.branch import BranchGuide
from killick.methods.sage import AnchorShaper

BETA = 0.3
CORRECT = [4, 13, 22]
GUIDE = BranchGuide(gamma=0.5, tau=0.5)


def run(tree, guide, kl_form, num_steps=300):
    """Final log-probabilities of the answers, and the closed form for the guide's q at that policy."""
    logits_ref = tree.policy(7)
    reward_Y = torch.zeros(27, dtype=torch.float64)
    reward_Y[CORRECT] = 1.0
    shaper = AnchorShaper(guide, kl_form, BETA)
    logits = logits_ref.clone().requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=0.1)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, num_steps)
    for _ in range(num_steps):
        logp = tree.logp(logits)
        shaped = shaper.shape(tree.view(logits, logits_ref))
        gain = reward_Y.unsqueeze(-1).expand_as(logp)
        if kl_form == "k1_reward_to_go":
            per_token = -(gain - shaped.penalty_to_go) * logp
        elif kl_form == "k2_loss":
            per_token = -gain * logp + BETA * shaper.extra_per_token(logp, shaped, tree.mask)
        else:
            per_token = -gain * logp + BETA * k3(logp, shaped.logp_ref, tree.mask)
        optimiser.zero_grad()
        tree.expected(per_token, logits).backward()
        optimiser.step()
        decay.step()
    log_q = shaper.log_q(tree.view(logits, logits_ref)).double().sum(-1)
    target = closed_form_logp(tree.logp(logits_ref).sum(-1), log_q, reward_Y, BETA)
    return tree.logp(logits).sum(-1).detach().exp(), target.exp()


def success(p_Y):
    return p_Y[CORRECT].sum().item()


@pytest.mark.parametrize("guide", [None, GUIDE], ids=["plain", "branch"])
def test_return_to_go_reaches_the_closed_form(big_tree, guide):
    p_Y, target_Y = run(big_tree, guide, "k1_reward_to_go")
    assert (p_Y - target_Y).abs().max() < 1e-5


def test_the_branch_guide_moves_that_fixed_point(big_tree):
    plain, guided = (run(big_tree, guide, "k1_reward_to_go")[0] for guide in (None, GUIDE))
    assert (plain - guided).abs().max() > 5e-3


@pytest.mark.filterwarnings("ignore:The guide")
def test_k2_loss_ends_elsewhere_and_ignores_the_branch_guide(big_tree):
    plain, target_Y = run(big_tree, None, "k2_loss")
    guided, _ = run(big_tree, GUIDE, "k2_loss")
    assert (plain - target_Y).abs().max() > 0.01
    torch.testing.assert_close(plain, guided, rtol=0, atol=1e-9)


def test_the_published_loss_ends_elsewhere_and_the_guide_holds_it_back(big_tree):
    plain, target_Y = run(big_tree, None, "k3_loss")
    guided, _ = run(big_tree, GUIDE, "k3_loss")
    assert success(guided) < success(plain) < success(target_Y) - 0.05
