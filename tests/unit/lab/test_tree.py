"""The enumeration: probabilities, nodes and samples of a tree."""

import pytest
import torch

from killick.errors import ConfigError
from killick.lab.tree import Tree, draw_problems


def test_nodes_and_choices_by_hand():
    # Two branches, two tokens: node 0 first, then node 1 or 2 by the first token.
    rows = Tree(2, 2).all_rows(1)
    assert rows.node_BT.tolist() == [[0, 1], [0, 1], [0, 2], [0, 2]]
    assert rows.choice_BT.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_probabilities_by_hand():
    tree = Tree(2, 2)
    p_SNV = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [0.1, 0.9]]], dtype=torch.float64)
    p_SY = tree.answer_logp(p_SNV.log()).exp()
    assert p_SY[0].tolist() == pytest.approx([0.125, 0.125, 0.075, 0.675])
    assert tree.visits(p_SNV.log())[0].tolist() == pytest.approx([1.0, 0.25, 0.75])


def test_policy_of_inverts_answer_logp():
    tree = Tree(3, 3)
    logp_SY = draw_problems(tree, 1, 1.5, 2, 3).reference_SNV.new_zeros(2, 27).normal_().log_softmax(-1)
    torch.testing.assert_close(tree.answer_logp(tree.policy_of(logp_SY)), logp_SY)


def test_policy_of_keeps_zeros_and_unreachable_nodes_finite():
    tree = Tree(2, 2)
    logp_SY = torch.tensor([[0.0, 0.0, 0.5, 0.5]], dtype=torch.float64).log()
    policy_SNV = tree.policy_of(logp_SY)
    assert tree.answer_logp(policy_SNV).exp()[0].tolist() == [0.0, 0.0, 0.5, 0.5]
    assert policy_SNV[0, 1].tolist() == [0.0, 0.0]  # never reached


def test_samples_follow_the_policy_of_their_own_problem():
    tree = Tree(2, 2)
    logp_SY = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]], dtype=torch.float64).log()
    answer_SG = tree.sample(tree.policy_of(logp_SY), 400, torch.Generator().manual_seed(0))
    assert set(answer_SG[0].tolist()) == {1}
    assert 0.4 < (answer_SG[1] == 2).double().mean() < 0.6
    assert set(answer_SG[1].tolist()) == {2, 3}


def test_a_problem_does_not_depend_on_its_neighbours():
    one, many = (draw_problems(Tree(3, 2), 2, 1.0, num, 5) for num in (1, 3))
    assert torch.equal(one.reference_SNV[0], many.reference_SNV[0])
    assert torch.equal(one.reward_SY[0], many.reward_SY[0])
    assert many.reward_SY.sum(-1).tolist() == [2.0, 2.0, 2.0]
    assert not torch.equal(many.reference_SNV[0], many.reference_SNV[1])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Tree(1, 3), "branching = 1"),
        (lambda: Tree(3, 0), "depth = 0"),
        (lambda: Tree(10, 6), "1000000 answers"),
        (lambda: draw_problems(Tree(2, 2), 4, 1.0, 1, 0), "correct = 4"),
        (lambda: draw_problems(Tree(2, 2), 0, 1.0, 1, 0), "correct = 0"),
        (lambda: draw_problems(Tree(2, 2), 1, float("nan"), 1, 0), "spread = nan"),
        (lambda: draw_problems(Tree(2, 2), 1, 1.0, 10**6, 0), "seeds = 1000000"),
    ],
)
def test_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()
