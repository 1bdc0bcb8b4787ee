import itertools
import time
from collections import Counter

import numpy as np
import pytest

from killick.errors import ConfigError
from killick.evaluate.majority import maj_at_ks


def by_enumeration(answers, k):
    """Mean over all subsets of k samples; a tie counts by its expected value."""
    won = []
    for subset in itertools.combinations(answers, k):
        votes = Counter(answer for answer in subset if answer != -1)
        most = max(votes.values(), default=0)
        winners = [answer for answer, count in votes.items() if count == most]
        won.append((0 in winners) / len(winners) if winners else 0.0)
    return np.mean(won)


@pytest.mark.parametrize(
    ("answers", "k", "expected"),
    [
        ([0, 0, 1, -1], 4, 1.0),  # two votes against one
        ([0, 1, 1, -1], 4, 0.0),
        ([0, 1], 2, 0.5),  # a tie
        ([0, 1, 2], 3, 1 / 3),
        ([0, -1, -1], 3, 1.0),  # samples without an answer do not vote
        ([-1, -1], 2, 0.0),
        ([1, 1], 2, 0.0),
        ([0, 0, 7, -1], 1, 0.5),
    ],
)
def test_ends_are_exact(answers, k, expected):
    assert maj_at_ks(np.array([answers]), [k], np.random.default_rng(0))[0, 0] == expected
    assert by_enumeration(answers, k) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(8))
def test_draws_approach_the_mean_over_all_subsets(seed):
    """20,000 draws of something in [0, 1]: a standard error of at most 0.5 / sqrt(20000) = 0.0035; four of them."""
    rng = np.random.default_rng(seed)
    answers = rng.choice([-1, 0, 0, 1, 2, 9], size=9)
    found = maj_at_ks(answers[None], [1, 2, 4, 7, 9], np.random.default_rng(1), num_draws=20_000)[0]
    expected = [by_enumeration(answers, k) for k in (1, 2, 4, 7, 9)]
    assert found == pytest.approx(expected, abs=0.0142)
    assert found[[0, -1]] == pytest.approx(np.array(expected)[[0, -1]])


def test_same_generator_same_numbers():
    answers = np.random.default_rng(0).integers(-1, 4, (5, 12))
    first = maj_at_ks(answers, [3], np.random.default_rng(2))
    assert np.array_equal(first, maj_at_ks(answers, [3], np.random.default_rng(2)))


def test_more_votes_than_samples_are_refused():
    with pytest.raises(ConfigError, match=r"maj@5 from 4 samples.*num_samples >= 5"):
        maj_at_ks(np.zeros((2, 4), int), [1, 5], np.random.default_rng(0))


def test_a_hundred_thousand_records_take_seconds():
    answers = np.random.default_rng(0).integers(-1, 30, (400, 256))
    start = time.process_time()
    maj_at_ks(answers, [1, 2, 4, 8, 16, 32, 64, 128, 256], np.random.default_rng(0))
    assert time.process_time() - start < 20
