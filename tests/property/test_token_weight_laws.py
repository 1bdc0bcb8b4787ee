"""Laws of the token weights that hold for every input."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from killick.maths import (
    dft_weight,
    geometric_weight,
    nll_weight,
    salience,
    shaped_off_policy_weight,
    weighted_nll,
)

WEIGHTS = {
    "nll": lambda base, plan, mask: nll_weight(base, mask),
    "dft": lambda base, plan, mask: dft_weight(base, mask),
    "geometric": geometric_weight,
    "shaped": lambda base, plan, mask: shaped_off_policy_weight(base, mask),
}
names = st.sampled_from(sorted(WEIGHTS))


@st.composite
def texts(draw):
    """(generator, logp_base, logp_plan, mask), float64, with empty rows and empty masks among them."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    mask = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    # Nats up to 8: probabilities from 3e-4 to 1.
    base, plan = (-8.0 * torch.rand(shape, generator=generator, dtype=torch.float64).square() for _ in range(2))
    return generator, base, plan, mask


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def loss_of(name, base, plan, mask, divisor=7.0):
    return weighted_nll(base, WEIGHTS[name](base, plan, mask), mask, divisor)


@given(texts(), names, st.integers(1, 4))
def test_padding_changes_nothing(text, name, extra):
    _, base, plan, mask = text
    tail = torch.full((len(base), extra), math.nan, dtype=torch.float64)
    longer = [torch.cat([values, tail], dim=1) for values in (base, plan)]
    mask_longer = torch.cat([mask, torch.zeros(len(base), extra, dtype=torch.bool)], dim=1)
    weight = WEIGHTS[name](*longer, mask_longer)
    assert torch.equal(weight[:, : base.shape[1]], WEIGHTS[name](base, plan, mask))
    assert weight[:, base.shape[1] :].eq(0).all()
    close(loss_of(name, *longer, mask_longer), loss_of(name, base, plan, mask))


@given(texts(), names)
def test_the_order_of_rows_and_tokens_is_kept_and_does_not_matter_to_the_loss(text, name):
    generator, base, plan, mask = text
    rows, tokens = (torch.randperm(size, generator=generator) for size in base.shape)
    moved = [values[rows][:, tokens] for values in (base, plan, mask)]
    assert torch.equal(WEIGHTS[name](*moved), WEIGHTS[name](base, plan, mask)[rows][:, tokens])
    close(loss_of(name, *moved), loss_of(name, base, plan, mask))


@given(texts(), names, st.floats(0.01, 1e4), st.floats(0.1, 10))
def test_the_loss_is_linear_in_one_over_its_divisor(text, name, divisor, factor):
    _, base, plan, mask = text
    close(loss_of(name, base, plan, mask, divisor * factor) * factor, loss_of(name, base, plan, mask, divisor))


@given(texts(), names, st.integers(1, 4))
def test_slices_with_one_divisor_add_up(text, name, cut):
    """So a repair batch may be spread over slices and processes."""
    _, base, plan, mask = text
    parts = [[values[:cut] for values in (base, plan, mask)], [values[cut:] for values in (base, plan, mask)]]
    close(sum(loss_of(name, *part) for part in parts), loss_of(name, base, plan, mask))


@given(texts(), names)
def test_the_gradient_is_minus_the_weight(text, name):
    _, base, plan, mask = text
    leaf = torch.where(mask, base, math.nan).requires_grad_()
    (gradient,) = torch.autograd.grad(loss_of(name, leaf, plan, mask), leaf)
    close(gradient, -WEIGHTS[name](base, plan, mask) / 7.0)


@given(texts(), names)
def test_bfloat16_is_float32_of_the_rounded_log_probabilities(text, name):
    _, base, plan, mask = text
    rounded = [values.bfloat16() for values in (base, plan)]
    weight = WEIGHTS[name](*rounded, mask)
    assert torch.equal(weight, WEIGHTS[name](*(values.float() for values in rounded), mask))
    # Rounding moves log p by at most 2⁻⁸ of itself; |∂w/∂log p| ≤ w ≤ 1 for every weight here.
    error = (base.abs() + plan.abs()) / 256
    assert ((weight - WEIGHTS[name](base, plan, mask)).abs() <= error * 1.1 + 1e-6).all()


@given(texts())
def test_the_geometric_weight_lies_between_both_probabilities_and_is_symmetric(text):
    _, base, plan, mask = text
    weight, p_base, p_plan = geometric_weight(base, plan, mask), dft_weight(base, mask), dft_weight(plan, mask)
    assert (weight >= torch.minimum(p_base, p_plan) * (1 - 1e-12)).all()
    assert (weight <= torch.maximum(p_base, p_plan) * (1 + 1e-12)).all()
    assert torch.equal(geometric_weight(plan, base, mask), weight)


@given(texts())
def test_lift_is_the_exponential_of_half_the_salience(text):
    _, base, plan, mask = text
    weight, lift = geometric_weight(base, plan, mask), (salience(base, plan, mask) / 2).exp()
    close(weight[mask], (dft_weight(base, mask) * lift)[mask])
    assert torch.equal(salience(plan, base, mask), -salience(base, plan, mask))
    assert salience(base, base, mask).eq(0).all()


@given(texts())
def test_without_a_plan_sort_is_dft_to_the_bit_in_loss_and_gradient(text):
    _, base, _, mask = text
    base = base.float()
    results = []
    for name in ("geometric", "dft"):
        leaf = base.clone().requires_grad_()
        loss = loss_of(name, leaf, base, mask)
        results.append((loss.detach(), torch.autograd.grad(loss, leaf)[0]))
    assert all(torch.equal(ours, dft) for ours, dft in zip(*results, strict=True))


@given(st.floats(0.0, 400.0), st.floats(0.0, 20.0))
def test_the_weight_vanishes_with_either_probability(nats, other):
    """w ≤ sqrt of either probability."""
    one = torch.ones(1, 1, dtype=torch.bool)
    far, near = (torch.tensor([[-value]], dtype=torch.float64) for value in (nats, other))
    for pair in ((far, near), (near, far)):
        assert geometric_weight(*pair, one).item() <= math.exp(-nats / 2) * (1 + 1e-12)


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_an_almost_right_plan_gives_an_almost_right_weight_and_a_bounded_regret(seed, size):
    """Over every token of enumerated distributions of which the true plan's is known.

    |ω − ω*| = sqrt(p_base)·|sqrt(p_plan) − sqrt(p*)| ≤ sqrt(p_base·γ) for γ = max |p_plan − p*|, because
    |sqrt(a) − sqrt(b)| ≤ sqrt(|a − b|). Hence the losses differ by at most Σ sqrt(p_base·γ)·(−log p_base).
    """
    generator = torch.Generator().manual_seed(seed)
    logits = 3.0 * torch.randn(4, size, generator=generator, dtype=torch.float64)
    base, true = logits.log_softmax(-1), logits.flip(0).log_softmax(-1)
    mask = torch.ones(4, size, dtype=torch.bool)
    perturbation, last = torch.randn(4, size, generator=generator, dtype=torch.float64), math.inf
    for distance in (1.0, 1e-2, 1e-4):
        plan = (true + distance * perturbation).log_softmax(-1)
        gamma = (plan.exp() - true.exp()).abs().max()
        weight, ideal = geometric_weight(base, plan, mask), geometric_weight(base, true, mask)
        bound = (base.exp() * gamma).sqrt()
        assert ((weight - ideal).abs() <= bound * (1 + 1e-9)).all()
        regret = (weighted_nll(base, weight, mask, 1.0) - weighted_nll(base, ideal, mask, 1.0)).abs()
        assert regret <= (bound * -base).sum() * (1 + 1e-9)
        assert (weight - ideal).abs().max() < last, "a better plan must come closer"
        last = (weight - ideal).abs().max()
