import itertools
from fractions import Fraction

import numpy as np
import pytest

from killick.errors import ConfigError
from killick.evaluate.paired import SMALLEST
from killick.evaluate.support import chance_of_loss, support_change


@pytest.mark.parametrize("num_samples", [1, 2, 3])
def test_chance_is_the_share_of_ways_to_deal_the_right_samples(num_samples):
    """Of all ways to give the model N of the 2N samples: those that give it no right one, while there is one."""
    for pooled in range(2 * num_samples + 1):
        cards = [1] * pooled + [0] * (2 * num_samples - pooled)
        hands = list(itertools.combinations(range(2 * num_samples), num_samples))
        lost = sum(pooled > 0 and not any(cards[i] for i in hand) for hand in hands)
        base = min(pooled, num_samples)
        found = chance_of_loss(np.array([base]), np.array([pooled - base]), num_samples)
        assert found[0] == pytest.approx(float(Fraction(lost, len(hands))))


def test_counts_chance_and_tail():
    """N = 2. Pooled right ones 1, 1, 0, 4: chances 1/2, 1/2, 0, 0."""
    change = support_change(np.array([1, 0, 0, 2]), np.array([0, 1, 0, 2]), 2)
    assert (change.num_solved_base, change.num_solved, change.num_lost, change.num_gained) == (2, 2, 1, 1)
    assert change.num_by_chance == pytest.approx(1.0)
    assert change.p_lost == pytest.approx(0.75)  # 1 - (1/2)^2
    assert change.p_solved == 1.0
    both = support_change(np.array([1, 1]), np.array([0, 0]), 2)
    assert both.p_lost == pytest.approx(0.25)
    assert both.p_gained == 1.0


def test_a_loss_no_chance_explains():
    change = support_change(np.full(10, 128), np.zeros(10, int), 256)
    assert change.num_lost == 10
    assert change.num_by_chance < 1e-30
    assert change.p_lost == SMALLEST


def test_the_reference_is_right_on_average_when_both_are_one_model():
    """400 problems of small success rates, 200 pairs of draws: mean losses within 4 standard errors."""
    rng = np.random.default_rng(0)
    rate_Q = rng.beta(0.3, 8.0, 400)
    gaps, p_values = [], []
    for _ in range(200):
        first, second = rng.binomial(16, rate_Q), rng.binomial(16, rate_Q)
        change = support_change(first, second, 16)
        gaps.append(change.num_lost - change.num_by_chance)
        p_values.append(change.p_lost)
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(200)
    assert np.std(gaps) > 1  # there is something to average
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


def test_wrong_input_is_refused():
    with pytest.raises(ConfigError, match=r"0\.\.2"):
        chance_of_loss(np.array([3]), np.array([0]), 2)
    with pytest.raises(ConfigError, match="found 1 and 2"):
        chance_of_loss(np.array([1]), np.array([0, 0]), 2)
