import math

import pytest
import torch

from killick.maths import closed_form_logp, generalised_kl, shaped_anchor, support_threshold


def log(*values):
    return torch.tensor(values, dtype=torch.float64).log()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_silent_guide_leaves_every_bit(dtype):
    logp_ref = torch.tensor([[-0.0, 0.0, -1.3, float("-inf"), float("nan")]], dtype=dtype)
    shaped = shaped_anchor(logp_ref, torch.zeros(1, 5))
    assert shaped.dtype == dtype
    as_int = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float64: torch.int64}[dtype]
    assert torch.equal(shaped.view(as_int), logp_ref.view(as_int))


def test_a_guide_adds_its_logarithm_where_it_speaks():
    log_q = torch.tensor([[0.0, math.log(1.24)]])
    assert shaped_anchor(torch.tensor([[-1.0, -2.0]]), log_q)[0].tolist() == pytest.approx([-1.0, -2.0 + 0.21511138])


def test_generalised_kl_by_hand():
    # π = (½, ½), m = (¼, ¼): Σ π ln 2 − 1 + ½. Not a KL of a normalised m, which would be 0.
    assert generalised_kl(log(0.5, 0.5), log(0.25, 0.25)).item() == pytest.approx(math.log(2) - 0.5)


def test_generalised_kl_with_zeros():
    # π = (1, 0), m = (½, 2): 1·ln 2 − 1 + 2.5
    assert generalised_kl(log(1.0, 0.0), log(0.5, 2.0)).item() == pytest.approx(math.log(2) + 1.5)
    assert generalised_kl(log(1.0, 0.0), log(1.0, 0.0)).item() == 0.0
    assert generalised_kl(log(0.5, 0.5), log(1.0, 0.0)).item() == math.inf


def test_generalised_kl_is_the_ordinary_kl_of_distributions():
    p, m = log(0.2, 0.3, 0.5), log(0.6, 0.3, 0.1)
    assert generalised_kl(p, m).item() == pytest.approx((p.exp() * (p - m)).sum().item())


def test_generalised_kl_has_a_finite_gradient_at_zero_mass():
    logits = torch.tensor([0.0, 1.0, float("-inf")], dtype=torch.float64, requires_grad=True)
    generalised_kl(logits.log_softmax(0), log(0.3, 0.2, 0.0)).backward()
    assert logits.grad.isfinite().all()


def test_closed_form_by_hand():
    # q π_ref exp(r/β) = (2·¼·1, 1·¾·e²): reward 1 at β = ½.
    logp = closed_form_logp(log(0.25, 0.75), log(2.0, 1.0), torch.tensor([0.0, 1.0], dtype=torch.float64), beta=0.5)
    a, b = 0.5, 0.75 * math.exp(2)
    assert logp.exp().tolist() == pytest.approx([a / (a + b), b / (a + b)])


def test_closed_form_cannot_create():
    logp = closed_form_logp(log(0.0, 1.0), log(1.4, 0.6), torch.tensor([1.0, 0.0], dtype=torch.float64), beta=0.01)
    assert logp.exp().tolist() == [0.0, 1.0]


def test_closed_form_is_where_the_objective_is_stationary():
    generator = torch.Generator().manual_seed(0)
    logp_ref = torch.randn(5, generator=generator, dtype=torch.float64).log_softmax(0)
    log_q = torch.rand(5, generator=generator, dtype=torch.float64) - 0.5
    reward, beta = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0], dtype=torch.float64), 0.3

    def objective(logits):
        logp = logits.log_softmax(0)
        return (logp.exp() * reward).sum() - beta * generalised_kl(logp, logp_ref + log_q)

    optimum = closed_form_logp(logp_ref, log_q, reward, beta).requires_grad_()
    (gradient,) = torch.autograd.grad(objective(optimum), optimum)
    assert gradient.abs().max() < 1e-12
    # And it is a maximum: no neighbour is better.
    for _ in range(20):
        near = optimum.detach() + 0.1 * torch.randn(5, generator=generator, dtype=torch.float64)
        assert objective(near) < objective(optimum.detach())


def test_support_threshold_by_hand():
    # π_ref = (0.01, 0.99), r = (1, 0), β = 1, δ = ½, q = 1 elsewhere: W = 0.99, threshold 0.99/(0.01·e).
    reward = torch.tensor([1.0, 0.0], dtype=torch.float64)
    threshold = support_threshold(log(0.01, 0.99), log(1.0, 1.0), reward, beta=1.0, delta=0.5, answer=0)
    assert threshold.item() == pytest.approx(0.99 / (0.01 * math.e))


def test_support_threshold_is_infinite_outside_the_reference():
    reward = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert support_threshold(log(0.0, 1.0), log(1.0, 1.0), reward, beta=1.0, delta=0.1, answer=0).item() == math.inf
