"""Paired tests of two models on the same problems: exact, without a random number.

Each answers one question. Of several asked at once (runs, k, benchmarks) some come out small by chance: `holm` adjusts
for the number of runs compared.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from killick.errors import ConfigError

SMALLEST = 1e-12  # below, floating point says no more than "at most this"


def mcnemar(first_Q: Bool[np.ndarray, " Q"], second_Q: Bool[np.ndarray, " Q"]) -> float:
    """Two-sided exact p-value for "both models are equally likely to solve a problem the other does not".

    Only problems solved by exactly one of the two count. Under the hypothesis each is a fair coin, so with n of them,
    m on the rarer side, p = min(1, 2 P(Bin(n, 1/2) <= m)).

    Raises:
        ConfigError: the arrays are not of the same problems.

    Source: McNemar 1947 in its exact (binomial) form.
    """
    _same(first_Q, second_Q)
    only_first, only_second = int((first_Q & ~second_Q).sum()), int((second_Q & ~first_Q).sum())
    num, few = only_first + only_second, min(only_first, only_second)
    logs = [math.lgamma(num + 1) - math.lgamma(i + 1) - math.lgamma(num - i + 1) for i in range(few + 1)]
    tail = math.fsum(math.exp(log - num * math.log(2.0)) for log in logs)
    return max(SMALLEST, min(1.0, 2.0 * tail))


def sign_flip(first_Q: Int[np.ndarray, " Q"], second_Q: Int[np.ndarray, " Q"]) -> float:
    """Two-sided exact p-value for "exchanging the models on any problem changes nothing" from right samples a problem.

    The statistic is the sum of the differences d_q, i.e. the difference of the mean success rates. Under the
    hypothesis every d_q keeps its size and has a random sign. The distribution of the sum of ±d_q follows from its
    characteristic function, prod_q cos(t d_q), by one Fourier transform over the integers -T..T, T = sum |d_q|; no
    flips are drawn.

    Args:
        first_Q: right samples of each problem, of N.
        second_Q: the same of the other model, with the same N.

    Raises:
        ConfigError: the arrays are not of the same problems.

    Source: the permutation test of Fisher and Pitman; the transform is [derived].
    """
    _same(first_Q, second_Q)
    difference_Q = np.asarray(second_Q, dtype=np.int64) - np.asarray(first_Q, dtype=np.int64)
    observed, total = abs(int(difference_Q.sum())), int(np.abs(difference_Q).sum())
    if observed == 0:
        return 1.0
    size = 1 << (2 * total).bit_length()  # more than the 2T + 1 values of the sum, which must not wrap round
    angle = 2.0 * np.pi / size * np.arange(size // 2 + 1)
    transform = np.ones(size // 2 + 1)
    for value, count in zip(*np.unique(np.abs(difference_Q[difference_Q != 0]), return_counts=True), strict=True):
        transform *= np.cos(angle * value) ** count
    chance = np.fft.irfft(transform, size)  # of the sums 0, 1, …, and the negative ones from the other end
    return max(SMALLEST, min(1.0, 2.0 * float(chance[observed : total + 1].sum())))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number: all those below a level together err with at most that probability.

    Source: Holm 1979: the i-th smallest of m is multiplied by m - i + 1, and none may fall below a smaller one's.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def _same(first_Q: np.ndarray, second_Q: np.ndarray) -> None:
    if first_Q.shape != second_Q.shape:
        raise ConfigError(
            f"A paired test needs the same problems in both: found {first_Q.shape[0]} and {second_Q.shape[0]}."
        )
