"""One evaluation folder: Q problems, N samples a problem. Read on first use; texts stay on disk until asked for."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from killick.errors import RecordError
from killick.evaluate.estimators import pass_at_ks
from killick.evaluate.records import Record, RecordTable, iter_records, read_records
from killick.report.files import read_json


@dataclass(frozen=True)
class Evaluation:
    """An evaluation folder and the split it belongs to."""

    path: Path
    split: str

    @cached_property
    def spec(self) -> dict[str, Any]:
        """What was asked: task, split, sampling, model."""
        return read_json(self.path / "spec.json")

    @cached_property
    def table(self) -> RecordTable:
        """All verdicts as arrays.

        Raises:
            RecordError: unreadable or unfinished records, or a spec that does not say how many samples it asked for.
        """
        sampling = self.spec.get("sampling")
        num_samples = sampling.get("num_samples") if isinstance(sampling, dict) else None
        if not isinstance(num_samples, int):
            raise RecordError(
                f"{self.path / 'spec.json'} has no sampling.num_samples (found {num_samples!r}). Repeat the evaluation."
            )
        return read_records(self.path / "records.jsonl", num_samples)

    @property
    def num_problems(self) -> int:
        """Q."""
        return len(self.table.uids)

    @property
    def num_samples(self) -> int:
        """N."""
        return int(self.table.correct_QN.shape[1])

    def pass_at(self, ks: list[int]) -> np.ndarray:
        """Unbiased pass@k of every problem, [Q, K]."""
        return pass_at_ks(self.table.num_correct_Q, self.num_samples, ks)

    def completions(self, uids: list[str], count: int) -> dict[str, list[Record]]:
        """The first `count` samples of some problems, read from disk."""
        wanted: dict[str, list[Record]] = {uid: [] for uid in uids}
        for record in iter_records(self.path / "records.jsonl"):
            if record.uid in wanted and record.sample < count:
                wanted[record.uid].append(record)
        return {uid: sorted(found, key=lambda record: record.sample) for uid, found in wanted.items()}
