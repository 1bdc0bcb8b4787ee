"""Empirical support: which problems a model can solve at all, against a base, and in how many ways.

A problem is in the empirical support of a model when at least one of its N samples is right. That depends on N, so
everything here compares evaluations of equal N.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from killick.errors import ConfigError
from killick.evaluate.estimators import pass_at_k
from killick.evaluate.paired import SMALLEST, mcnemar, sign_flip
from killick.evaluate.records import RecordTable


@dataclass(frozen=True)
class SupportChange:
    """Problems a model lost and gained against a base, and what chance alone would do.

    Attributes:
        num_problems: Q.
        num_solved_base: problems with a right sample of the base.
        num_solved: of the model.
        num_lost: solved by the base only.
        num_gained: solved by the model only.
        num_by_chance: expected number lost (and likewise gained) if both were the same model; see `chance_of_loss`.
        p_lost: chance of at least `num_lost` losses if both were the same model.
        p_gained: the same of gains.
        p_solved: exact McNemar test of lost against gained.
        p_rates: exact sign-flip test of the success rates.
    """

    num_problems: int
    num_solved_base: int
    num_solved: int
    num_lost: int
    num_gained: int
    num_by_chance: float
    p_lost: float
    p_gained: float
    p_solved: float
    p_rates: float


def support_change(
    num_correct_base_Q: Int[np.ndarray, " Q"], num_correct_Q: Int[np.ndarray, " Q"], num_samples: int
) -> SupportChange:
    """What a model's empirical support lost and gained against a base's, on the same problems with the same N.

    Raises:
        ConfigError: the arrays are not of the same problems, or counts outside 0..N.
    """
    chance_Q = chance_of_loss(num_correct_base_Q, num_correct_Q, num_samples)
    base_Q, solved_Q = num_correct_base_Q > 0, num_correct_Q > 0
    lost, gained = int((base_Q & ~solved_Q).sum()), int((solved_Q & ~base_Q).sum())
    return SupportChange(
        num_problems=len(base_Q),
        num_solved_base=int(base_Q.sum()),
        num_solved=int(solved_Q.sum()),
        num_lost=lost,
        num_gained=gained,
        num_by_chance=float(chance_Q.sum()),
        p_lost=_at_least(lost, chance_Q),
        p_gained=_at_least(gained, chance_Q),
        p_solved=mcnemar(base_Q, solved_Q),
        p_rates=sign_flip(num_correct_base_Q, num_correct_Q),
    )


def chance_of_loss(
    num_correct_base_Q: Int[np.ndarray, " Q"], num_correct_Q: Int[np.ndarray, " Q"], num_samples: int
) -> Float[np.ndarray, " Q"]:
    """Probability, problem by problem, that sampling alone makes the model lose what the base solves.

    If both were the same model, the 2N samples of a problem would be exchangeable: given c right ones among them, each
    way of dealing them to the two is equally likely. The model gets none and the base all c with probability
    C(2N - c, N) / C(2N, N) for c >= 1, and with the same one the base gets none (a gain). No prior is needed, and
    the distribution of the number of losses is exact. It is the cautious reference: right samples the base owes to
    being another model count as chance here, so a true loss of a problem the base solves once adds 1/2.

    Raises:
        ConfigError: the arrays are not of the same problems, or counts outside 0..N.

    Source: [derived]; the factor is 1 - pass@N of 2N samples.
    """
    for counts_Q in (num_correct_base_Q, num_correct_Q):
        pass_at_k(counts_Q, num_samples, 1)  # checks the range
    if num_correct_base_Q.shape != num_correct_Q.shape:
        raise ConfigError(
            f"Losses are counted on the same problems: found {len(num_correct_base_Q)} and {len(num_correct_Q)}."
        )
    pooled_Q = num_correct_base_Q + num_correct_Q
    return np.where(pooled_Q > 0, 1.0 - pass_at_k(pooled_Q, 2 * num_samples, num_samples), 0.0)


def distinct_modes(table: RecordTable) -> Float[np.ndarray, " Q"]:
    """Different mode labels among the right samples of each problem; 0 where none is right. It grows with N."""
    seen_QM = np.zeros((len(table.uids), len(table.modes) + 1), dtype=bool)
    seen_QM[np.arange(len(table.uids))[:, None], table.mode_QN] = True  # -1, no mode, lands in the extra last column
    return seen_QM[:, :-1].sum(axis=1).astype(float)


def _at_least(number: int, chance_Q: Float[np.ndarray, " Q"]) -> float:
    """P(at least `number` of independent events), by adding one event after the other."""
    below = np.zeros(number)
    if number == 0:
        return 1.0
    below[0] = 1.0
    for chance in chance_Q[chance_Q > 0.0]:
        below[1:] = below[1:] * (1.0 - chance) + below[:-1] * chance
        below[0] *= 1.0 - chance
    return max(SMALLEST, 1.0 - float(below.sum()))
