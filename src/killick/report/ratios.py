"""Intervals of ratios such as "weight per token", where what repeats is the prompt and not the token.

Axes: S training runs, K blocks of prompts.
"""

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from killick.evaluate.estimators import LEVEL, NUM_RESAMPLES, Interval
from killick.report.estimates import mean_over

MAX_BLOCKS = 256
HOW = f"intervals: {LEVEL:.0%} percentile bootstrap over prompts, and training seeds where an arm has several"
HOW += f" ({NUM_RESAMPLES:,} resamples)"


class Ratio(NamedTuple):
    """Numerators and denominators of one run, entry by entry; entries of one uid are one unit of chance."""

    uids: tuple[str, ...]
    num: np.ndarray
    den: np.ndarray


def ratio_interval(runs: Sequence[Ratio]) -> Interval | None:
    """Mean over runs of (sum of numerators / sum of denominators), prompts and runs being the sample.

    Within run s, z_k = r_s + (num_k - r_s den_k) / mean_k(den_k) has the mean r_s, and its mean over resampled k
    differs from the resampled ratio by a second-order term only. So the bootstrap of a mean serves. k is a prompt; of
    more than `MAX_BLOCKS` prompts, a block of prompts drawn by checksum, the same in every run, which bounds the cost
    and leaves what is independent independent.

    Returns:
        None when no run has a denominator above 0; runs without one are left out.

    Source: linearisation of a ratio (delta method); [derived].
    """
    runs = [run for run in runs if np.sum(run.den) > 0]
    if not runs:
        return None
    blocks = _blocks(tuple(run.uids for run in runs))
    size = max(int(block.max()) for block in blocks) + 1
    return mean_over([_linearised(run, block, size) for run, block in zip(runs, blocks, strict=True)])


def mean_ratio(runs: Sequence[Ratio]) -> float | None:
    """The same mean without an interval."""
    found = [float(np.sum(run.num) / np.sum(run.den)) for run in runs if np.sum(run.den) > 0]
    return sum(found) / len(found) if found else None


@lru_cache(maxsize=4)  # an arm asks for a dozen ratios of the same prompts
def _blocks(uids: tuple[tuple[str, ...], ...]) -> list[np.ndarray]:
    """The block of every entry, run by run."""
    prompts = sorted(set().union(*uids))
    few = len(prompts) <= MAX_BLOCKS
    block = {u: i if few else zlib.crc32(u.encode("utf-8", "replace")) % MAX_BLOCKS for i, u in enumerate(prompts)}
    return [np.array([block[uid] for uid in run]) for run in uids]


def _linearised(run: Ratio, block: np.ndarray, size: int) -> np.ndarray:
    num_K = np.bincount(block, weights=run.num, minlength=size)
    den_K = np.bincount(block, weights=run.den, minlength=size)
    ratio = num_K.sum() / den_K.sum()
    linearised: np.ndarray = ratio + (num_K - ratio * den_K) / den_K.mean()
    return linearised
