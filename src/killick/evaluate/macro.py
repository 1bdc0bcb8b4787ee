"""Runs over several benchmarks: every benchmark compared on its own, and their macro average."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from killick.errors import RecordError
from killick.evaluate.compare import Comparison, Estimate, Read, compare_read, read_all
from killick.evaluate.estimators import macro_bootstrap
from killick.evaluate.folder import evaluations_below
from killick.evaluate.texts import PatternRequest


@dataclass(frozen=True)
class MacroRun:
    """Macro averages of one run: the mean over benchmarks of each benchmark's mean.

    Attributes:
        folder: as given.
        pass_at: per k.
        maj_at: per k; None unless every benchmark has it.
    """

    folder: str
    pass_at: Estimate
    maj_at: Estimate | None


@dataclass(frozen=True)
class SuiteComparison:
    """Runs over the same benchmarks.

    Attributes:
        benchmarks: name -> the runs compared on it.
        ks: columns of the macro averages: the k that every benchmark has enough samples for.
        macro: one entry a run; none of a single benchmark, which is no average.
    """

    benchmarks: dict[str, Comparison]
    ks: tuple[int, ...]
    macro: tuple[MacroRun, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def _benchmarks(folder: Path) -> dict[str, Path]:
    found = evaluations_below(folder)
    if not found:
        raise RecordError(
            f"{folder} is no evaluation (spec.json and records.jsonl) and holds none. Point at the folder of an "
            "evaluation, or at one whose subfolders are evaluations."
        )
    return found


def compare_suites(
    folders: Sequence[Path],
    rng: np.random.Generator | None = None,
    patterns: PatternRequest | None = None,
    allow: Collection[str] = (),
) -> SuiteComparison:
    """Compare runs benchmark by benchmark, and on average.

    Args:
        folders: two or more folders with evaluations of the same benchmarks below them; the first is the baseline.
        rng: for the bootstrap; a generator seeded with 0 by default.
        patterns: look for reasoning patterns as well.
        allow: names from `compare.ALLOWABLE`: what may differ as well.

    Raises:
        ConfigError: fewer than two folders, or an unknown name in `allow`.
        RecordError: a folder holds no evaluation, a benchmark is missing in one of them (no average is taken over
            different benchmarks), or the evaluations of one cannot be compared.
    """
    rng = rng or np.random.default_rng(0)
    found = [_benchmarks(Path(folder)) for folder in folders]
    names = sorted(found[0])
    for folder, own in zip(folders, found, strict=True):
        unlike = sorted(set(names) ^ set(own))
        if unlike:
            raise RecordError(
                f"{folders[0]} and {folder} hold evaluations of different benchmarks: only one of them has "
                f"{', '.join(unlike)}. Evaluate both on the same ones, or compare the evaluation folders one by one."
            )
    reads = {name: read_all([own[name] for own in found], rng, patterns, allow) for name in names}
    benchmarks = {name: compare_read(reads[name], rng, patterns) for name in names}
    ks = sorted(set.intersection(*(set(reads[name][0].ks) for name in names)))
    averaged = enumerate(folders) if len(names) > 1 else ()
    macro = tuple(_macro_run(str(folder), i, list(reads.values()), ks, rng) for i, folder in averaged)
    return SuiteComparison(benchmarks, tuple(ks), macro)


def _macro_run(
    folder: str, place: int, reads: Sequence[Sequence[Read]], ks: Sequence[int], rng: np.random.Generator
) -> MacroRun:
    columns = [[read[0].ks.index(k) for k in ks] for read in reads]

    def estimate(kind: str) -> Estimate | None:
        tables = [[getattr(read[i], kind) for read in reads] for i in (0, place)]
        if any(table is None for run in tables for table in run):
            return None
        first, own = ([table[:, c] for table, c in zip(run, columns, strict=True)] for run in tables)
        gaps = [mine - base for base, mine in zip(first, own, strict=True)]
        difference = tuple(macro_bootstrap(gaps, rng)) if place else ()
        return Estimate(tuple(macro_bootstrap(own, rng)), difference)

    passed = estimate("pass_QK")
    assert passed is not None, "every evaluation has pass@k"
    return MacroRun(folder, passed, estimate("maj_QK"))
