import numpy as np
import pytest

from killick.evaluate.estimators import bootstrap
from killick.report.estimates import generator, mean_over
from killick.report.ratios import MAX_BLOCKS, Ratio, mean_ratio, ratio_interval


def test_equal_denominators_are_the_ordinary_bootstrap():
    rng = np.random.default_rng(0)
    uids = tuple(f"{i:03d}" for i in range(40))
    first, second = rng.random(40), rng.random(40)
    ones = np.ones(40)
    # With den = 1 the linearised value is the value itself.
    expected = bootstrap(first[:, None], generator())[0]
    assert vars(ratio_interval([Ratio(uids, first, ones)])) == pytest.approx(vars(expected))
    both = ratio_interval([Ratio(uids, first, ones), Ratio(uids, second, ones)])
    assert vars(both) == pytest.approx(vars(mean_over([first, second])))


def test_the_mean_is_the_ratio_of_sums_averaged_over_runs():
    runs = [
        Ratio(("a", "b"), np.array([1.0, 2.0]), np.array([1.0, 5.0])),
        Ratio(("c",), np.array([3.0]), np.array([4.0])),
    ]
    # (3 / 6 + 3 / 4) / 2
    assert ratio_interval(runs).mean == pytest.approx(0.625)
    assert mean_ratio(runs) == pytest.approx(0.625)


def test_a_run_without_denominator_is_left_out():
    none = Ratio(("a",), np.zeros(1), np.zeros(1))
    some = Ratio(("a",), np.ones(1), np.full(1, 2.0))
    assert ratio_interval([none]) is None
    assert mean_ratio([none]) is None
    assert ratio_interval([none, some]).mean == mean_ratio([none, some]) == 0.5


def test_entries_of_one_prompt_are_one_unit():
    # Ten copies of every entry are no new evidence: the interval stays, where it would shrink by sqrt(10).
    rng = np.random.default_rng(1)
    uids, num = tuple(str(i) for i in range(50)), rng.random(50)
    once = ratio_interval([Ratio(uids, num, np.ones(50))])
    tenfold = ratio_interval([Ratio(uids * 10, np.tile(num, 10), np.ones(500))])
    assert vars(tenfold) == pytest.approx(vars(once))


@pytest.mark.parametrize("num_prompts", [100, 20 * MAX_BLOCKS])
def test_width_is_that_of_the_resampled_ratio(num_prompts):
    """Against a bootstrap of the ratio itself over single prompts, without linearising and without blocks."""
    rng = np.random.default_rng(2)
    den = rng.integers(1, 6, num_prompts).astype(float)
    num = den * rng.beta(1 + den, 3)  # the share depends on the size, so numerator and denominator are correlated
    found = ratio_interval([Ratio(tuple(f"p{i}" for i in range(num_prompts)), num, den)])
    drawn = rng.integers(0, num_prompts, (2000, num_prompts))
    exact = num[drawn].sum(axis=1) / den[drawn].sum(axis=1)
    low, high = np.quantile(exact, [0.025, 0.975])
    # A standard deviation from 256 blocks is known to 1 / sqrt(2 * 255) = 4.4%; its double, and 2% for each bootstrap.
    assert found.high - found.low == pytest.approx(high - low, rel=0.12)
    assert found.mean == pytest.approx(num.sum() / den.sum())
