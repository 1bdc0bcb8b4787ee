"""Exact tests against enumeration of every outcome."""

import itertools

import numpy as np
import pytest

from killick.errors import ConfigError
from killick.evaluate.paired import SMALLEST, holm, mcnemar, sign_flip


def solved(only_first, only_second, both=3, neither=2):
    first = [1] * only_first + [0] * only_second + [1] * both + [0] * neither
    second = [0] * only_first + [1] * only_second + [1] * both + [0] * neither
    return np.array(first, bool), np.array(second, bool)


@pytest.mark.parametrize(
    ("only_first", "only_second", "expected"),
    [
        (1, 5, 2 * (1 + 6) / 2**6),  # 1 or fewer heads of 6 coins, or as few tails
        (5, 1, 2 * (1 + 6) / 2**6),
        (0, 5, 2 / 2**5),
        (3, 3, 1.0),
        (0, 0, 1.0),
        (6, 16, 2 * (1 + 22 + 231 + 1540 + 7315 + 26334 + 74613) / 2**22),
    ],
)
def test_mcnemar_is_the_binomial_tail(only_first, only_second, expected):
    assert mcnemar(*solved(only_first, only_second)) == pytest.approx(expected)


def test_mcnemar_of_many_problems_is_finite():
    assert mcnemar(*solved(0, 20_000)) == SMALLEST
    assert mcnemar(*solved(10_000, 10_100)) == pytest.approx(0.4850, abs=1e-3)  # z = (100 - 1) / sqrt(20100)


@pytest.mark.parametrize("seed", range(12))
def test_sign_flip_counts_every_choice_of_signs(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 9, (2, int(rng.integers(1, 11))))
    gaps = second - first
    sums = [abs(np.dot(signs, gaps)) for signs in itertools.product((-1, 1), repeat=len(gaps))]
    expected = np.mean([total >= abs(gaps.sum()) for total in sums])
    assert sign_flip(first, second) == pytest.approx(expected)
    assert sign_flip(second, first) == pytest.approx(expected)


def test_sign_flip_at_its_ends():
    ones = np.ones(20, int)
    assert sign_flip(ones, ones) == 1.0
    assert sign_flip(0 * ones, ones) == pytest.approx(2 / 2**20)
    assert sign_flip(np.zeros(1000, int), np.ones(1000, int)) == SMALLEST
    assert sign_flip(np.array([0, 1]), np.array([1, 0])) == 1.0


def test_holm_multiplies_the_smallest_by_all_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_other_problems_are_refused():
    for test in (mcnemar, sign_flip):
        with pytest.raises(ConfigError, match="found 2 and 3"):
            test(np.zeros(2, bool), np.zeros(3, bool))
