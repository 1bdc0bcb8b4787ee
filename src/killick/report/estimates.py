"""Numbers of an arm from the records of its seeds, all by `killick.evaluate.estimators`.

One evaluation: problems are resampled. Several training seeds: seeds and problems are. The generator is seeded alike
for every number, so a page is reproducible and arms share their resamples.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from killick.errors import RecordError
from killick.evaluate.estimators import (
    LEVEL,
    NUM_RESAMPLES,
    Interval,
    across_seeds,
    across_seeds_difference,
    bootstrap,
    ks_for,
    paired_difference,
)
from killick.provenance import differences
from killick.report.evaluation import Evaluation

if TYPE_CHECKING:
    from killick.report.study import Arm

GENERATOR_SEED = 0
_METHOD = f"{LEVEL:.0%} percentile bootstrap over problems"
_COUNT = f"({NUM_RESAMPLES:,} resamples)"
ONE_RUN = f"{_METHOD} {_COUNT}"
SEVERAL_RUNS = f"{_METHOD} and training seeds {_COUNT}"
SOME_SEVERAL = f"{_METHOD}, and training seeds where a model has several {_COUNT}"


@dataclass(frozen=True)
class Coverage:
    """pass@k of one arm on one split.

    Attributes:
        at: k -> mean with interval, ascending in k.
        how: the interval method, for captions.
        num_runs: training runs it averages over.
    """

    at: dict[int, Interval]
    how: str
    num_runs: int


@dataclass(frozen=True)
class Difference:
    """pass@k of one arm minus that of another, on the same problems.

    Attributes:
        at: k -> mean difference with interval.
        how: the interval method.
        num_pairs: runs compared; runs are paired by their seed, an untrained base is paired with each.
    """

    at: dict[int, Interval]
    how: str
    num_pairs: int


def generator() -> np.random.Generator:
    """The generator of every interval of a report."""
    return np.random.default_rng(GENERATOR_SEED)


def mean_over(values: list[np.ndarray]) -> Interval:
    """Mean of a number per problem, one array [Q] a training run."""
    if len(values) == 1:
        return bootstrap(values[0][:, None], generator())[0]
    return across_seeds(np.stack(values), generator())


def coverage(arm: "Arm", split: str) -> Coverage | None:
    """pass@k for every k all runs of the arm can estimate; None when the split was not evaluated.

    Raises:
        RecordError: the seeds of the arm were asked different questions (problems, sampling), so they have no mean.
    """
    found = arm.evaluations(split)
    if not found:
        return None
    for other in found[1:]:
        unlike = differences(found[0].question, other.question)
        if unlike:
            listed = "; ".join(f"{key}: {one!r} against {two!r}" for key, one, two in unlike)
            raise RecordError(
                f"The runs of arm {arm.name!r} were evaluated differently on {split!r} ({listed}). "
                "Evaluate every seed with the same settings."
            )
    ks = ks_for(found[0].num_samples)
    if len(found) == 1:
        intervals = bootstrap(found[0].pass_at(ks), generator())
        return Coverage(dict(zip(ks, intervals, strict=True)), ONE_RUN, 1)
    values_SQK = np.stack([evaluation.pass_at(ks) for evaluation in found])
    at = {k: mean_over(list(values_SQK[:, :, i])) for i, k in enumerate(ks)}
    return Coverage(at, SEVERAL_RUNS, len(found))


def difference(arm: "Arm", other: "Arm", split: str, ks: list[int] | None = None) -> Difference | None:
    """pass@k of `arm` minus that of `other`; None when they share no seed or were not asked the same question.

    Args:
        arm: the model of interest.
        other: what it is compared with.
        split: of both evaluations.
        ks: which k, or every power of two up to the number of samples.
    """
    pairs = _pairs(arm, other, split)
    if not pairs or any(a.question != b.question for a, b in pairs):
        return None
    available = ks_for(pairs[0][0].num_samples)
    ks = available if ks is None else [k for k in ks if k in available]
    if len(pairs) == 1:
        a, b = pairs[0]
        intervals = paired_difference(b.pass_at(ks), a.pass_at(ks), generator())
        return Difference(dict(zip(ks, intervals, strict=True)), ONE_RUN, 1)
    first_SQK = np.stack([b.pass_at(ks) for _, b in pairs])
    second_SQK = np.stack([a.pass_at(ks) for a, _ in pairs])
    at = {k: across_seeds_difference(first_SQK[:, :, i], second_SQK[:, :, i], generator()) for i, k in enumerate(ks)}
    return Difference(at, SEVERAL_RUNS, len(pairs))


def _pairs(arm: "Arm", other: "Arm", split: str) -> list[tuple[Evaluation, Evaluation]]:
    """Evaluations to compare: an untrained model stands beside every run, trained ones beside their own seed."""
    if other.is_base:
        return [(mine, theirs) for mine in arm.evaluations(split) for theirs in other.evaluations(split)[:1]]
    by_seed = {run.seed: run.evaluations[split] for run in other.runs if split in run.evaluations}
    mine = [(run.seed, run.evaluations[split]) for run in arm.runs if split in run.evaluations]
    return [(evaluation, by_seed[seed]) for seed, evaluation in mine if seed in by_seed]


def mean_tokens(arm: "Arm", split: str) -> Interval:
    """Mean completion length in tokens."""
    return mean_over([evaluation.table.tokens_QN.mean(axis=1) for evaluation in arm.evaluations(split)])


def failed_group_frac(arm: "Arm", last: int | None = None) -> float | None:
    """Share of training groups without a right completion: mean over steps, then over seeds; None if never logged.

    Args:
        arm: its training logs are read.
        last: only that many logged steps at the end, or all of them.
    """
    logs = [np.array(run.series("group/all_wrong_frac")[1]) for run in arm.runs]
    logs = [values[np.isfinite(values)] for values in logs]
    means = [float(values[-(last or values.size) :].mean()) for values in logs if values.size]
    return sum(means) / len(means) if means else None


def wall_s(arm: "Arm") -> float | None:
    """Seconds of training of one run, mean over seeds; None if never logged."""
    times = [seconds for run in arm.runs if (seconds := run.wall_s) is not None]
    return sum(times) / len(times) if times else None
