"""Laws of `killick.maths` that hold for every input."""

import itertools
import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from killick.maths import (
    REDUCTIONS,
    Stat,
    aggregate,
    centred,
    closed_form_logp,
    cosine_cycles,
    forward_exact,
    generalised_kl,
    k1,
    k2,
    k3,
    masked_mean,
    masked_quantile,
    reward_to_go,
    standardised,
    support_threshold,
)

SETTINGS = {"num_items": 37.0, "max_completion_length": 11}
ESTIMATORS = [k1, k2, k3]


@st.composite
def batches(draw):
    """(generator, B, T, mask) with empty rows and empty masks among them; float64 values come from the generator."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    num_rows, num_tokens = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    keep = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    mask = torch.rand(num_rows, num_tokens, generator=generator) < keep
    return generator, num_rows, num_tokens, mask


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)


# Masks -------------------------------------------------------------------------------------------------------------


@given(batches(), st.sampled_from(sorted(REDUCTIONS)), st.integers(1, 4))
def test_padding_and_row_order_do_not_change_a_reduction(batch, loss_type, extra):
    generator, num_rows, num_tokens, mask = batch
    values = normal(generator, num_rows, num_tokens)
    loss = aggregate(values, mask, loss_type, **SETTINGS)
    padded = torch.cat([values, torch.full((num_rows, extra), math.nan, dtype=torch.float64)], dim=1)
    mask_padded = torch.cat([mask, torch.zeros(num_rows, extra, dtype=torch.bool)], dim=1)
    close(aggregate(padded, mask_padded, loss_type, **SETTINGS), loss)
    order = torch.randperm(num_rows, generator=generator)
    close(aggregate(values[order], mask[order], loss_type, **SETTINGS), loss)


@given(batches(), st.sampled_from(sorted(REDUCTIONS)))
def test_masked_is_cut_out(batch, loss_type):
    """The gradient of any reduction is 0 exactly at masked tokens, and the loss is its product with the values."""
    generator, num_rows, num_tokens, mask = batch
    values = torch.where(mask, normal(generator, num_rows, num_tokens), math.nan).requires_grad_()
    loss = aggregate(values, mask, loss_type, **SETTINGS)
    (gradient,) = torch.autograd.grad(loss, values)
    assert torch.equal(gradient != 0, mask)
    close((gradient * values.detach().nan_to_num()).sum(), loss.detach())


@given(batches(), st.sampled_from(sorted(REDUCTIONS)))
def test_a_reduction_is_linear(batch, loss_type):
    generator, num_rows, num_tokens, mask = batch
    a, b = normal(generator, num_rows, num_tokens), normal(generator, num_rows, num_tokens)
    whole = aggregate(2.0 * a - b, mask, loss_type, **SETTINGS)
    parts = [aggregate(part, mask, loss_type, **SETTINGS) for part in (a, b)]
    close(whole, 2.0 * parts[0] - parts[1])


@given(batches(), st.floats(0.01, 1e4), st.floats(0.1, 10))
def test_a_mean_is_linear_in_one_over_its_divisor(batch, divisor, factor):
    generator, num_rows, num_tokens, mask = batch
    values = normal(generator, num_rows, num_tokens)
    close(masked_mean(values, mask, divisor * factor) * factor, masked_mean(values, mask, divisor))


@given(batches(), st.floats(0, 1))
def test_masked_quantile_is_torchs_on_the_selected(batch, quantile):
    generator, num_rows, num_tokens, mask = batch
    values = normal(generator, num_rows, num_tokens)
    result = masked_quantile(torch.where(mask, values, math.nan), mask, quantile)
    for row, keep, found in zip(values, mask, result, strict=True):
        if keep.any():
            close(found, torch.quantile(row[keep], quantile))
        else:
            assert found.isnan()


@given(batches(), st.sampled_from(["mean", "min", "max"]))
def test_stats_do_not_depend_on_the_cut(batch, reduce):
    generator, num_rows, num_tokens, mask = batch
    values = normal(generator, num_rows, num_tokens)
    by_row = [Stat.of(values[i : i + 1], mask[i : i + 1], reduce) for i in range(num_rows)]
    close(Stat.combine(by_row).result(), Stat.of(values, mask, reduce).result())


# Estimators --------------------------------------------------------------------------------------------------------


@given(batches())
def test_k2_and_k3_are_non_negative_and_vanish_at_the_anchor(batch):
    generator, num_rows, num_tokens, mask = batch
    logp, logp_ref = normal(generator, num_rows, num_tokens), normal(generator, num_rows, num_tokens)
    for estimator in (k2, k3):
        assert (estimator(logp, logp_ref, mask) >= 0).all()
        assert torch.equal(estimator(logp, logp_ref, mask) > 0, mask)
    for estimator in ESTIMATORS:
        assert estimator(logp, logp, mask).eq(0).all()


@given(batches(), st.sampled_from(ESTIMATORS))
def test_bfloat16_is_close_to_float32(batch, estimator):
    generator, num_rows, num_tokens, mask = batch
    logp, logp_ref = (-normal(generator, num_rows, num_tokens).abs().float() for _ in range(2))
    exact = estimator(logp, logp_ref, mask)
    rounded = estimator(logp.bfloat16(), logp_ref.bfloat16(), mask)
    # Each log-probability is off by at most 2⁻⁸ of itself; |∂| ≤ |d| + e^|d| + 1 carries that over.
    error = (logp.abs() + logp_ref.abs()) / 256
    slope = 2 + (logp - logp_ref).abs() + (logp_ref - logp).exp()
    assert ((rounded - exact).abs() <= error * slope * 1.1 + 1e-6).all()


@given(batches(), st.integers(2, 5), st.integers(1, 4))
def test_the_forward_kl_is_non_negative_and_ignores_shifts_of_the_logits(batch, vocabulary, chunk):
    generator, num_rows, num_tokens, mask = batch
    now, ref = (normal(generator, num_rows, num_tokens, vocabulary) for _ in range(2))
    kl = forward_exact(now, ref, mask, chunk=chunk)
    assert (kl >= -1e-12).all()
    shifted = forward_exact(now + normal(generator, num_rows, num_tokens, 1), ref, mask)
    close(kl, shifted)
    assert forward_exact(now, now, mask).abs().max() < 1e-12


@given(batches())
def test_return_to_go_telescopes(batch):
    """Its first entry is the row's sum, and neighbours differ by the token between them."""
    generator, num_rows, num_tokens, _ = batch
    values, mask = normal(generator, num_rows, num_tokens), torch.ones(num_rows, num_tokens, dtype=torch.bool)
    to_go = reward_to_go(values, mask)
    close(to_go[:, 0], values.sum(dim=1))
    close(to_go[:, :-1] - to_go[:, 1:], values[:, :-1])


@given(batches())
def test_return_to_go_looks_forward_only(batch):
    generator, num_rows, num_tokens, mask = batch
    values = normal(generator, num_rows, num_tokens).requires_grad_()
    for t in range(num_tokens):
        (gradient,) = torch.autograd.grad(reward_to_go(values, mask)[:, t].sum(), values, allow_unused=True)
        expected = mask & mask[:, t : t + 1] & (torch.arange(num_tokens) >= t)
        assert torch.equal(gradient, expected.double())


# Advantages --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 8), st.floats(-5, 5), st.floats(0.5, 4))
def test_advantages_are_centred_and_standardised(seed, num_prompts, size, shift, scale):
    generator = torch.Generator().manual_seed(seed)
    reward_PG = normal(generator, num_prompts, size)
    reward_PG[torch.rand(num_prompts, size, generator=generator) < 0.2] = math.nan
    for rule in (centred, standardised):
        advantage = rule(reward_PG)
        assert advantage.isfinite().all()
        assert advantage.sum(dim=1).abs().max() < 1e-9 * max(size, 1) * 10
        assert advantage[reward_PG.isnan()].eq(0).all()
        torch.testing.assert_close(rule(reward_PG + shift), advantage, rtol=1e-6, atol=1e-9)
    close(centred(reward_PG * scale), centred(reward_PG) * scale)
    torch.testing.assert_close(standardised(reward_PG * scale, eps=0), standardised(reward_PG, eps=0), equal_nan=True)


# Anchor ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(2, 8), st.floats(0.0, 3.0))
def test_the_generalised_kl_is_non_negative_and_zero_only_at_equality(seed, size, distance):
    generator = torch.Generator().manual_seed(seed)
    logp = normal(generator, size).log_softmax(0)
    log_m = logp + distance * normal(generator, size)  # of any mass
    value = generalised_kl(logp, log_m)
    # Pinsker for one entry: π log(π/m) − π + m ≥ (√π − √m)².
    assert value >= ((logp / 2).exp() - (log_m / 2).exp()).square().sum() - 1e-12
    assert generalised_kl(logp, logp).item() == pytest.approx(0.0, abs=1e-15)


@given(
    seed=st.integers(0, 2**31),
    size=st.integers(2, 8),
    beta=st.floats(0.05, 2.0),
    delta=st.floats(0.001, 0.9),
    answer=st.integers(0, 7),
)
def test_theorem_4_3_the_threshold_is_where_the_answer_enters_the_support(seed, size, beta, delta, answer):
    assume(answer < size)
    generator = torch.Generator().manual_seed(seed)
    logp_ref, log_q = normal(generator, size).log_softmax(0), 0.3 * normal(generator, size)
    reward = (torch.rand(size, generator=generator) < 0.4).double()
    threshold = support_threshold(logp_ref, log_q, reward, beta, delta, answer)

    def mass(q):
        changed = log_q.clone()
        changed[answer] = q.log()
        return closed_form_logp(logp_ref, changed, reward, beta)[answer].exp()

    assert mass(threshold * 0.999) < delta < mass(threshold * 1.001)
    torch.testing.assert_close(mass(threshold), torch.tensor(delta, dtype=torch.float64))


@given(st.integers(0, 2**31), st.floats(0.05, 2.0))
def test_without_a_guide_the_reference_bounds_the_support(seed, beta):
    """With q = 1 an answer outside S_δ(π_ref) enters only if exp(r/β) lifts it: equal rewards never do."""
    logp_ref = normal(torch.Generator().manual_seed(seed), 5).log_softmax(0)
    equal = torch.ones(5, dtype=torch.float64)
    close(closed_form_logp(logp_ref, torch.zeros(5, dtype=torch.float64), equal, beta), logp_ref)


# Schedule ----------------------------------------------------------------------------------------------------------


@given(
    total=st.integers(1, 500),
    step=st.integers(0, 600),
    lower=st.floats(0, 1),
    span=st.floats(0, 1),
    cycles=st.integers(1, 12),
    decay=st.floats(0.1, 1.0),
)
def test_a_schedule_stays_between_its_bounds(total, step, lower, span, cycles, decay):
    value = cosine_cycles(step, total, lower + span, lower, cycles, decay)
    assert lower - 1e-12 <= value <= lower + span + 1e-12
    assert value == cosine_cycles(step, total, lower + span, lower, cycles, decay)


@given(st.integers(1, 60), st.integers(1, 9), st.floats(0.5, 1.0))
def test_a_schedule_falls_within_a_cycle_and_restarts_lower(length, cycles, decay):
    values = [cosine_cycles(step, length * cycles, 1.0, 0.2, cycles, decay) for step in range(length * cycles)]
    parts = [values[i : i + length] for i in range(0, len(values), length)]
    assert all(a >= b - 1e-12 for part in parts for a, b in itertools.pairwise(part))
    for cycle, part in enumerate(parts):
        assert part[0] == max(1.0 * decay**cycle, 0.2)
