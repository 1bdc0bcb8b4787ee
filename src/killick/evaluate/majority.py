"""maj@k: how often the most frequent answer among k samples is the right one.

Axes: Q problems, N samples per problem, K values of k, R draws.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from killick.errors import ConfigError

NO_ANSWER = -1
RIGHT_ANSWER = 0
_DRAWS_IN_ALL = 60_000
_FEWEST_DRAWS = 128


def maj_at_ks(
    answer_QN: Int[np.ndarray, "Q N"], ks: Sequence[int], rng: np.random.Generator, num_draws: int | None = None
) -> Float[np.ndarray, "Q K"]:
    """Expected success of a vote among k of the N samples, problem by problem.

    A vote goes to the most frequent answer. Samples without an answer do not vote. Among answers with equally many
    votes one is drawn, so a right answer tied with t others counts 1 / (t + 1). Without any vote the problem is not
    solved.

    k = 1 (one vote: the share of right samples) and k = N (one possible vote) are exact. Between them the mean over all
    C(N, k) subsets is estimated by R random ones, nested over k, with ties counted by their expected value. With the
    default R = max(128, 60000 / Q) the standard error this adds to the mean over problems is at most
    0.5 / sqrt(60000) = 0.002, a small part of the interval over problems.

    Args:
        answer_QN: 0 for the right answer, equal positive numbers for equal wrong answers of a problem, -1 for none.
        ks: 1 <= k <= N each.
        rng: draws the subsets.
        num_draws: R.

    Raises:
        ConfigError: k outside 1..N.
    """
    num_problems, num_samples = answer_QN.shape
    for k in ks:
        if not 1 <= k <= num_samples:
            raise ConfigError(
                f"maj@{k} from {num_samples} samples per problem: allowed is 1 <= k <= {num_samples}. "
                f"Evaluate with sampling.num_samples >= {k}, or ask for a smaller k."
            )
    draws = num_draws or max(_FEWEST_DRAWS, -(-_DRAWS_IN_ALL // max(1, num_problems)))
    result_QK = np.zeros((num_problems, len(ks)))
    between = any(1 < k < num_samples for k in ks)
    for q in np.flatnonzero((answer_QN == RIGHT_ANSWER).any(axis=1)):  # elsewhere the right answer never wins
        answer_N = _numbered(answer_QN[q])
        num_answers = max(2, int(answer_N.max()) + 1)
        shuffled_RN = rng.permuted(np.tile(answer_N, (draws if between else 1, 1)), axis=1)
        for i, k in enumerate(ks):
            if k == 1:
                result_QK[q, i] = (answer_N == 1).mean()
            else:
                result_QK[q, i] = _won(answer_N[None] if k == num_samples else shuffled_RN[:, :k], num_answers)
    return result_QK


def _numbered(answer_N: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """The same answers numbered without gaps: none 0, right 1, wrong 2, 3, …, so that they can be counted."""
    both = np.concatenate([[NO_ANSWER, RIGHT_ANSWER], answer_N])
    numbered: np.ndarray = np.unique(both, return_inverse=True)[1].reshape(-1)[2:]
    return numbered


def _won(answer_Rk: Int[np.ndarray, "R k"], num_answers: int) -> float:
    """Mean over rows of the right answer's share in winning the vote; answers as `_numbered` numbers them."""
    rows = len(answer_Rk)
    flat = (np.arange(rows)[:, None] * num_answers + answer_Rk).ravel()
    votes_RA = np.bincount(flat, minlength=rows * num_answers).reshape(rows, num_answers)[:, 1:]
    most_R = votes_RA.max(axis=1)
    winners_R = (votes_RA == most_R[:, None]).sum(axis=1)
    return float(np.where((votes_RA[:, 0] == most_R) & (most_R > 0), 1.0 / winners_R, 0.0).mean())
