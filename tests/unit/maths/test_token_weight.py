import math

import pytest
import torch

from killick.errors import ConfigError
from killick.maths import (
    dft_weight,
    geometric_weight,
    nll_weight,
    salience,
    shaped_off_policy_weight,
    weighted_nll,
)

NAN, INF = float("nan"), float("inf")

# Every weight as a function of (logp_base, logp_plan, mask).
WEIGHTS = {
    "nll": lambda base, plan, mask: nll_weight(base, mask),
    "dft": lambda base, plan, mask: dft_weight(base, mask),
    "geometric": geometric_weight,
    "shaped": lambda base, plan, mask: shaped_off_policy_weight(base, mask, gamma=0.1, advantage=0.875),
}


def row(*probabilities, dtype=torch.float64):
    return torch.tensor([probabilities], dtype=dtype).log()


def on(values):
    return torch.ones(values.shape, dtype=torch.bool)


# One weight per method ---------------------------------------------------------------------------------------------

A, GAMMA = 0.875, 0.1

# Method -> (its loss for one token as its paper states it, our weight). `p` and `p_plan` carry gradients: in SORT one
# policy scores both, so a weight that is not detached would be seen.
METHODS = {
    "SFT": (lambda p, p_plan: -p.log(), WEIGHTS["nll"]),
    "DFT": (lambda p, p_plan: -p.detach() * p.log(), WEIGHTS["dft"]),
    "DFT as a sum of probabilities": (lambda p, p_plan: -p, WEIGHTS["dft"]),
    "LUFFY without shaping": (lambda p, p_plan: -A * p, lambda base, plan, mask: A * dft_weight(base, mask)),
    "LUFFY": (
        lambda p, p_plan: -A * p / (p + GAMMA),
        lambda base, plan, mask: shaped_off_policy_weight(base, mask, GAMMA, A),
    ),
    "SORT": (lambda p, p_plan: -(p * p_plan).sqrt().detach() * p.log(), WEIGHTS["geometric"]),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_gradient_of_each_paper_s_loss_is_minus_w_times_the_score(method):
    """Every token of a softmax over five is the target once; probabilities from 0.0005 to 0.8."""
    stated, weight = METHODS[method]
    logits = torch.tensor([3.0, 1.0, 0.5, -1.0, -4.5], dtype=torch.float64, requires_grad=True)
    p = logits.softmax(0)
    assert p.min() < 0.001
    assert p.max() > 0.75
    p_plan = (0.5 * logits + torch.tensor([-2.0, 0.0, 0.0, 4.0, 1.0])).softmax(0)
    for target in range(5):
        base, plan = p[target].log().view(1, 1), p_plan[target].log().view(1, 1)
        w = weight(base, plan, on(base))
        (paper,) = torch.autograd.grad(stated(p[target], p_plan[target]), logits, retain_graph=True)
        (ours,) = torch.autograd.grad(weighted_nll(base, w, on(base), 1.0), logits, retain_graph=True)
        score = torch.eye(5, dtype=torch.float64)[target] - p.detach()  # ∇ log p by the logits
        torch.testing.assert_close(paper, -w.item() * score, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(ours, paper, rtol=1e-12, atol=1e-15)


def test_weights_by_hand():
    # A decisive token (0.04 alone, 0.64 with the plan): sqrt(0.04·0.64) = 0.16, four times DFT's 0.04.
    # A routine token (0.9, 0.9) keeps 0.9. A token the plan speaks against (0.5, 0.02): sqrt(0.01) = 0.1.
    base, plan = row(0.04, 0.9, 0.5), row(0.64, 0.9, 0.02)
    assert geometric_weight(base, plan, on(base))[0].tolist() == pytest.approx([0.16, 0.9, 0.1])
    assert dft_weight(base, on(base))[0].tolist() == pytest.approx([0.04, 0.9, 0.5])
    assert salience(base, plan, on(base))[0].tolist() == pytest.approx([math.log(16), 0.0, math.log(1 / 25)])
    assert nll_weight(base, on(base)).eq(1).all()


def test_the_shaped_weight_peaks_at_gamma():
    # A·γp/(p+γ)² at p = γ: A·γ²/(4γ²) = A/4. At p = 1: A·0.1/1.21 = 0.0826·A. Near 0: A·p/γ.
    p = torch.linspace(1e-4, 1.0, 9999, dtype=torch.float64)
    weight = shaped_off_policy_weight(p.log().view(1, -1), on(p.view(1, -1)), 0.1, 2.0)[0]
    assert p[weight.argmax()].item() == pytest.approx(0.1, abs=1e-4)
    assert weight.max().item() == pytest.approx(2.0 / 4, rel=1e-6)
    assert weight[-1].item() == pytest.approx(2.0 * 0.1 / 1.21)
    tiny = row(1e-9)
    assert shaped_off_policy_weight(tiny, on(tiny), 0.1, 2.0).item() == pytest.approx(2.0 * 1e-9 / 0.1, rel=1e-6)


def test_a_trace_judged_wrong_is_pushed_down():
    base = row(0.1, 0.5).requires_grad_()
    weighted_nll(base, shaped_off_policy_weight(base, on(base), 0.1, -1.0), on(base), 1.0).backward()
    assert (base.grad > 0).all()  # descending lowers log p


@pytest.mark.parametrize("gamma", [0.0, -0.1, NAN])
def test_a_gamma_that_is_no_probability_is_refused(gamma):
    with pytest.raises(ConfigError, match="gamma"):
        shaped_off_policy_weight(row(0.5), on(row(0.5)), gamma)


# DFT is SORT without a plan ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [1, 7, 16, 1025])
def test_the_geometric_weight_is_dft_s_to_the_bit_when_the_plan_changes_nothing(dtype, size):
    generator = torch.Generator().manual_seed(size)
    uniform = torch.rand(2, 20, size, generator=generator, dtype=torch.float64)
    # Ordinary values, and magnitudes from 1e-44 (subnormal) to 2000 nats, whose exponential is 0.
    base = -torch.cat([20.0 * uniform[0], 10.0 ** (47.3 * uniform[1] - 44.0)]).to(dtype)
    mask = torch.rand(40, size, generator=generator) < 0.9
    expected = dft_weight(base, mask)
    assert torch.equal(geometric_weight(base, base.clone(), mask), expected)
    elsewhere = base.t().contiguous().t()  # equal values in another memory order
    assert torch.equal(geometric_weight(base, elsewhere, mask), expected)
    assert expected.unique().numel() > 10, "not only zeros and ones"


# Hostile values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("hole", [NAN, INF, -INF])
def test_what_lies_under_the_mask_reaches_neither_values_nor_gradients(name, hole):
    mask = torch.tensor([[True, False, True]])
    logits = torch.tensor([[-1.0, hole, -2.0]], requires_grad=True)
    plan = torch.tensor([[-0.5, hole, -3.0]])
    weight = WEIGHTS[name](logits, plan, mask)
    assert weight[0, 1].item() == 0.0
    assert weight.isfinite().all()
    loss = weighted_nll(logits, torch.where(mask, weight, hole), mask, 2.0)
    loss.backward()
    clean = torch.tensor([[-1.0, -9.0, -2.0]])
    expected = WEIGHTS[name](clean, torch.tensor([[-0.5, -9.0, -3.0]]), mask)
    torch.testing.assert_close(weight, expected)
    torch.testing.assert_close(loss.detach(), weighted_nll(clean, expected, mask, 2.0))
    torch.testing.assert_close(logits.grad, -expected / 2.0)
    assert salience(logits, plan, mask)[0].tolist() == [0.5, 0.0, -1.0]


@pytest.mark.parametrize("name", ["dft", "geometric", "shaped"])
def test_an_impossible_token_teaches_nothing_and_breaks_nothing(name):
    """The softmax excludes the target: log p = −inf, w = 0, and 0 · inf must not become NaN anywhere."""
    logits = torch.tensor([[[0.0, 1.0, -INF], [0.0, 1.0, 2.0]]], requires_grad=True)
    base = logits.log_softmax(-1)[..., 2]
    plan = torch.tensor([[-0.1, -0.2]])
    loss = weighted_nll(base, WEIGHTS[name](base, plan, on(base)), on(base), 2.0)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad[0, 0].eq(0).all()
    assert logits.grad[0, 1].isfinite().all()
    assert logits.grad[0, 1].ne(0).all()


def test_likelihood_of_an_impossible_token_is_infinite_and_says_so():
    base = torch.tensor([[-INF, -1.0]], requires_grad=True)
    loss = weighted_nll(base, nll_weight(base, on(base)), on(base), 2.0)
    loss.backward()
    assert loss.item() == INF
    assert base.grad.tolist() == [[-0.5, -0.5]]


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_nan_that_counts_is_not_hidden(name):
    base = torch.tensor([[NAN, -1.0]])
    assert weighted_nll(base, WEIGHTS[name](base, base, on(base)), on(base), 1.0).isnan()


def test_salience_of_impossible_tokens():
    base, plan = torch.tensor([[-INF, -INF, -1.0]]), torch.tensor([[-INF, -1.0, -INF]])
    assert salience(base, plan, on(base)).tolist() == [[0.0, INF, -INF]]


# Stop-gradients, divisor, precision --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*WEIGHTS, "salience"])
def test_weights_are_detached(name):
    base, plan = row(0.3, 0.5).requires_grad_(), row(0.4, 0.2).requires_grad_()
    weight = {**WEIGHTS, "salience": salience}[name](base, plan, on(base))
    assert not weight.requires_grad


def test_the_loss_detaches_a_weight_that_is_not():
    base = row(0.3, 0.5).requires_grad_()
    weighted_nll(base, base.exp(), on(base), 1.0).backward()
    # −w alone; through w = p as well it would be −p·(1 + log p).
    torch.testing.assert_close(base.grad, -base.detach().exp())


def test_the_divisor_is_the_one_handed_in():
    base = row(0.25, 0.5)
    # DFT: (0.25·ln 4 + 0.5·ln 2) / 8 = ln 2 / 8; divided by Σ w = 0.75 it would be 4/3·ln 2.
    loss = weighted_nll(base, dft_weight(base, on(base)), on(base), 8.0)
    assert loss.item() == pytest.approx(math.log(2) / 8)
    assert torch.equal(weighted_nll(base, dft_weight(base, on(base)), on(base), torch.tensor(8.0)), loss)
    with pytest.raises(ValueError, match="divisor"):
        weighted_nll(base, dft_weight(base, on(base)), on(base), 0.0)


@pytest.mark.parametrize("name", WEIGHTS)
def test_an_empty_mask_gives_a_zero_that_has_a_gradient(name):
    base = row(0.25, 0.5).requires_grad_()
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    loss = weighted_nll(base, WEIGHTS[name](base, base, nothing), nothing, 1.0)
    loss.backward()
    assert loss.item() == 0.0
    assert base.grad.eq(0).all()


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64, torch.float64)],
)
def test_precision(name, dtype, expected):
    base, plan = row(0.3, 0.5, dtype=dtype), row(0.4, 0.2, dtype=dtype)
    weight = WEIGHTS[name](base, plan, on(base))
    assert weight.dtype == expected
    assert weighted_nll(base, weight, on(base), 1.0).dtype == expected


def test_half_precision_log_probabilities_are_summed_in_float32():
    """In bfloat16 −1001 + −1 is −1001 again and sums stop growing at 256."""
    base = torch.full((1, 1024), -1.0, dtype=torch.bfloat16)
    assert weighted_nll(base, nll_weight(base, on(base)), on(base), 1.0).item() == 1024.0
    plan = torch.full((1, 1024), -0.0078125, dtype=torch.bfloat16)
    exact = math.exp(-(1.0 + 0.0078125) / 2)
    assert geometric_weight(base, plan, on(base))[0, 0].item() == pytest.approx(exact, rel=1e-6)


def test_gradcheck():
    generator = torch.Generator().manual_seed(0)
    base = -torch.rand(2, 4, generator=generator, dtype=torch.float64)
    weight, mask = (
        torch.rand(2, 4, generator=generator, dtype=torch.float64),
        torch.rand(2, 4, generator=generator) < 0.7,
    )
    assert torch.autograd.gradcheck(lambda x: weighted_nll(x, weight, mask, 3.0), (base.requires_grad_(),))
