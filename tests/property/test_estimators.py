"""Laws of the estimators: pass@k against enumeration of all subsets, intervals against simulated repetition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.errors import ConfigError
from killick.evaluate.estimators import (
    across_seeds,
    across_seeds_difference,
    bootstrap,
    ks_for,
    mean_at_1,
    paired_difference,
    pass_at_k,
    pass_at_ks,
)


@st.composite
def verdicts_and_k(draw):
    verdicts = draw(st.lists(st.booleans(), min_size=1, max_size=10))
    return verdicts, draw(st.integers(1, len(verdicts)))


@given(verdicts_and_k())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(case):
    verdicts, k = case
    subsets = list(itertools.combinations(verdicts, k))
    expected = sum(any(subset) for subset in subsets) / len(subsets)
    assert pass_at_k(np.array(sum(verdicts)), len(verdicts), k) == pytest.approx(expected, abs=1e-15)


@given(st.integers(1, 5000), st.data())
@settings(max_examples=60, deadline=None)
def test_pass_at_k_equals_exact_binomials_for_large_n(n, data):
    k, c = data.draw(st.integers(1, n)), data.draw(st.integers(0, n))
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert float(pass_at_k(np.array([c]), n, k)[0]) == pytest.approx(float(exact), abs=1e-12)


@given(st.integers(1, 64), st.data())
@settings(deadline=None)
def test_pass_at_k_grows_with_k_and_with_right_samples(n, data):
    counts = np.arange(n + 1)
    table = pass_at_ks(counts, n, list(range(1, n + 1)))
    assert (np.diff(table, axis=0) >= 0).all()
    assert (np.diff(table, axis=1) >= -1e-12).all()
    np.testing.assert_allclose(table[:, 0], counts / n, atol=1e-12)  # pass@1 = share of right samples
    assert (table[:, -1] == (counts > 0)).all()  # pass@N = any right


def test_pass_at_k_keeps_its_shape_and_is_unbiased():
    # Unbiased: the mean over Binomial(6, p) of the estimate is 1 - (1-p)^k, exactly.
    n, p = 6, 0.3
    chance = np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)])
    for k in (1, 2, 4, 6):
        assert chance @ pass_at_k(np.arange(n + 1), n, k) == pytest.approx(1 - (1 - p) ** k)
    assert pass_at_k(np.zeros((3, 4), dtype=int), 5, 2).shape == (3, 4)


@pytest.mark.parametrize("k", [0, 9, -1])
def test_k_outside_the_samples_is_refused(k):
    with pytest.raises(ConfigError, match="allowed is 1 <= k <= 8"):
        pass_at_k(np.array([1]), 8, k)


@pytest.mark.parametrize("counts", [[-1], [9]])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ConfigError, match=r"0\.\.8"):
        pass_at_k(np.array(counts), 8, 2)


def test_ks():
    assert ks_for(1) == [1]
    assert ks_for(8) == [1, 2, 4, 8]
    assert ks_for(12) == [1, 2, 4, 8, 12]


@given(st.lists(st.integers(0, 8), min_size=1, max_size=12), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_intervals_hold_the_estimate_and_stay_in_range(counts, seed):
    values = pass_at_ks(np.array(counts), 8, [1, 8])
    for interval, mean in zip(bootstrap(values, np.random.default_rng(seed), 400), values.mean(0), strict=True):
        assert interval.mean == pytest.approx(mean)
        assert values.min() - 1e-9 <= interval.low <= interval.high <= values.max() + 1e-9


def test_intervals_are_reproducible_and_use_only_the_generator_handed_in():
    values = np.random.default_rng(0).random((30, 2))
    np.random.seed(1)
    first = bootstrap(values, np.random.default_rng(7))
    np.random.seed(2)
    assert first == bootstrap(values, np.random.default_rng(7))
    assert first != bootstrap(values, np.random.default_rng(8))


def test_bootstrap_spread_is_the_standard_error_of_clustered_problems():
    """The bootstrap standard error of a mean of Q values is std / sqrt(Q) with divisor Q; 95% normal width 3.92 of it.

    Every problem is all right or all wrong, so N samples tell no more than one: an interval that took the Q·N samples
    for independent would be sqrt(16) times narrower.
    """
    counts = np.repeat([0, 16], 100)
    interval = mean_at_1(counts, 16, np.random.default_rng(0), 20_000)
    assert interval.mean == 0.5
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(200), rel=0.05)


def test_paired_difference_cancels_what_is_hard_for_both():
    rng = np.random.default_rng(0)
    hardness = rng.random((200, 1))
    gain = paired_difference(hardness, hardness + 0.05, rng)[0]
    assert gain.mean == pytest.approx(0.05)
    assert gain.high - gain.low < 1e-9
    back = paired_difference(hardness + 0.05, hardness, rng)[0]
    assert back.mean == pytest.approx(-0.05)
    with pytest.raises(ConfigError, match="same problems"):
        paired_difference(hardness, hardness[:5], rng)


def test_no_problems_and_bad_level_are_refused():
    with pytest.raises(ConfigError, match="no problems"):
        bootstrap(np.zeros((0, 1)), np.random.default_rng(0))
    with pytest.raises(ConfigError, match="level"):
        bootstrap(np.zeros((3, 1)), np.random.default_rng(0), level=95.0)


def binomial_coverage(num_repeats):
    rng = np.random.default_rng(11)
    truth = 0.3  # mean of Beta(0.6, 1.4)
    hits = 0
    for _ in range(num_repeats):
        counts = rng.binomial(16, rng.beta(0.6, 1.4, size=80))
        interval = mean_at_1(counts, 16, rng, 400)
        hits += interval.low <= truth <= interval.high
    return hits / num_repeats


def test_interval_of_one_evaluation_covers_at_about_its_level():
    """80 problems, 400 repetitions: the standard error of the coverage is about 0.011."""
    assert 0.91 <= binomial_coverage(400) <= 0.985


def seed_table(rng, num_seeds, sd_seed, num_problems=60, sd_problem=0.2, sd_both=0.1):
    """truth 0.5 + seed effect + problem effect + noise of each pair."""
    seeds = rng.normal(0, sd_seed, (num_seeds, 1))
    problems = rng.normal(0, sd_problem, (1, num_problems))
    return 0.5 + seeds + problems + rng.normal(0, sd_both, (num_seeds, num_problems))


def seeds_coverage(num_seeds, sd_seed, num_repeats=400):
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(num_repeats):
        interval = across_seeds(seed_table(rng, num_seeds, sd_seed), rng, 400)
        hits += interval.low <= 0.5 <= interval.high
    return hits / num_repeats


@pytest.mark.parametrize(
    ("num_seeds", "sd_seed", "lowest", "highest"),
    [
        (8, 0.03, 0.90, 0.99),
        (5, 0.03, 0.88, 0.99),
        (5, 0.0, 0.91, 0.99),  # seeds do not matter: the interval of the problems remains
        (3, 0.1, 0.70, 0.95),  # seeds dominate and there are three: too narrow, as the docstring says
    ],
)
def test_interval_across_seeds_covers_at_about_its_level(num_seeds, sd_seed, lowest, highest):
    assert lowest <= seeds_coverage(num_seeds, sd_seed) <= highest


def test_across_seeds_spread_is_the_sum_of_both_variances():
    """Without interaction, Var = s_seed^2 / S + s_problem^2 / Q; s_seed^2 with divisor S - 1 thanks to the stretch.

    Seeds hold most of the variance here, so leaving the stretch of sqrt(8/7) out would be about 6% too narrow.
    """
    table = seed_table(np.random.default_rng(1), 8, 0.1, num_problems=400, sd_both=0.0)
    seed_part = table.mean(axis=1).var(ddof=1) / 8
    problem_part = table.mean(axis=0).var() / 400
    assert problem_part < 0.2 * seed_part
    interval = across_seeds(table, np.random.default_rng(1), 20_000, level=0.6827)
    assert (interval.high - interval.low) / 2 == pytest.approx(math.sqrt(seed_part + problem_part), rel=0.03)
    assert interval.mean == pytest.approx(table.mean())


def test_difference_across_seeds_pairs_seeds_and_problems():
    rng = np.random.default_rng(0)
    table = seed_table(rng, 4, 0.1)
    interval = across_seeds_difference(table, table + 0.02, rng)
    assert interval.mean == pytest.approx(0.02)
    assert interval.high - interval.low < 1e-9
    with pytest.raises(ConfigError, match="same problems"):
        across_seeds_difference(table, table[:3], rng)
    with pytest.raises(ConfigError, match="at least 2 training runs"):
        across_seeds(table[:1], rng)
