import pytest
import torch

from killick.maths import clipped_surrogate, ratio

ONE = torch.ones(1, 1, dtype=torch.bool)


def loss_and_gradient(rho, advantage, **settings):
    logp_old = torch.zeros(1, 1)
    logp = torch.tensor([[rho]]).log().requires_grad_()
    loss = clipped_surrogate(logp, logp_old, torch.tensor([[advantage]]), ONE, **settings)
    loss.sum().backward()
    return loss.item(), logp.grad.item()


# ρ, A -> loss −min(ρA, clip(ρ)A), gradient −ρA unless the clip binds.
CASES = [
    (1.0, 2.0, -2.0, -2.0),
    (1.1, 2.0, -2.2, -2.2),
    (1.5, 2.0, -2.4, 0.0),  # rose beyond 1.2 and is wanted: stop
    (1.5, -2.0, 3.0, 3.0),  # rose and is not wanted: keep pulling
    (0.5, 2.0, -1.0, -1.0),  # fell and is wanted: keep pushing
    (0.5, -2.0, 1.6, 0.0),  # fell beyond 0.8 and is not wanted: stop
]


@pytest.mark.parametrize(("rho", "advantage", "loss", "gradient"), CASES)
def test_clip_table(rho, advantage, loss, gradient):
    assert loss_and_gradient(rho, advantage) == pytest.approx((loss, gradient))


def test_the_two_ranges_are_separate():
    assert loss_and_gradient(1.25, 1.0, epsilon_high=0.28)[1] == pytest.approx(-1.25)
    assert loss_and_gradient(1.25, 1.0, epsilon_low=0.28)[1] == 0.0
    assert loss_and_gradient(0.75, -1.0, epsilon_low=0.28)[1] == pytest.approx(0.75)
    assert loss_and_gradient(0.75, -1.0, epsilon_high=0.28)[1] == 0.0


def test_on_policy_the_ratio_is_one_and_its_gradient_is_the_score():
    logp = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    rho = ratio(logp, logp, torch.ones(1, 2, dtype=torch.bool))
    rho.sum().backward()
    assert rho.tolist() == [[1.0, 1.0]]
    assert logp.grad.tolist() == [[1.0, 1.0]]


def test_only_the_current_policy_is_differentiated():
    logp_old = torch.zeros(1, 1, requires_grad=True)
    advantage = torch.ones(1, 1, requires_grad=True)
    logp = torch.zeros(1, 1, requires_grad=True)
    clipped_surrogate(logp, logp_old, advantage, ONE).sum().backward()
    assert logp.grad is not None
    assert logp_old.grad is None
    assert advantage.grad is None


def test_masked_positions_cannot_poison_values_or_gradients():
    nan, inf = float("nan"), float("inf")
    logp = torch.tensor([[-1.0, nan, inf]], requires_grad=True)
    loss = clipped_surrogate(
        logp, torch.tensor([[-1.0, nan, -inf]]), torch.tensor([[2.0, nan, inf]]), torch.tensor([[True, False, False]])
    )
    loss.sum().backward()
    assert loss.tolist() == [[-2.0, 0.0, 0.0]]
    assert logp.grad.tolist() == [[-2.0, 0.0, 0.0]]
