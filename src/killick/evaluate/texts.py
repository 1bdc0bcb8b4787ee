"""What only the texts of an evaluation tell, collected in one pass over the records without keeping the texts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from killick.errors import ConfigError
from killick.evaluate.folder import Evaluation, EvaluationFolder
from killick.evaluate.records import Record, iter_records

Visitor = Callable[[int, int, Record], None]


def visit(evaluation: Evaluation, visitors: Sequence[Visitor]) -> None:
    """Show every record to every visitor, with the places of its problem and its sample in the table.

    Raises:
        RecordError: the file has changed since the evaluation was read.
    """
    if not visitors:
        return
    place = {uid: q for q, uid in enumerate(evaluation.table.uids)}
    for record in iter_records(EvaluationFolder(evaluation.folder).records_file, evaluation.table.run):
        for visitor in visitors:
            visitor(place[record.uid], record.sample, record)


@dataclass(frozen=True)
class PatternRequest:
    """Which patterns to look for, and how.

    Attributes:
        names: the patterns, in the order shown.
        classify: a text -> those it shows.
        num_samples: the first samples of each problem that are read; None reads all.
        source: what classifies, for captions.
    """

    names: tuple[str, ...]
    classify: Callable[[str], Iterable[str]]
    num_samples: int | None = None
    source: str = "rules"

    def __post_init__(self) -> None:
        if self.num_samples is not None and self.num_samples < 1:
            raise ConfigError(f"Patterns of {self.num_samples} samples a problem: give at least 1, or none for all.")


class PatternCoder:
    """Collects the patterns of the samples of one evaluation (a visitor of `visit`)."""

    def __init__(self, evaluation: Evaluation, request: PatternRequest) -> None:
        num_problems, num_samples = evaluation.table.correct_QN.shape
        self._request = request
        self._column = {name: p for p, name in enumerate(request.names)}
        self._read = min(num_samples, request.num_samples or num_samples)
        self.shown_QNP: Bool[np.ndarray, "Q N P"] = np.zeros((num_problems, self._read, len(request.names)), dtype=bool)

    def __call__(self, q: int, n: int, record: Record) -> None:
        """Classify one record."""
        if n < self._read:
            for name in self._request.classify(record.text):
                self.shown_QNP[q, n, self._column[name]] = True

    @property
    def frac_QP(self) -> Float[np.ndarray, "Q P"]:  # noqa: N802
        """Share of the samples of each problem that show each pattern."""
        return np.asarray(self.shown_QNP.mean(axis=1))
