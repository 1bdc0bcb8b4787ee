"""One evaluation as the report sees it: read on first use, texts left on disk until a panel asks for a few."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from killick.evaluate.compare import ALLOWABLE, question
from killick.evaluate.estimators import pass_at_ks
from killick.evaluate.folder import Evaluation as Loaded
from killick.evaluate.folder import EvaluationFolder, load
from killick.evaluate.records import Record, RecordTable, iter_records


@dataclass(frozen=True)
class Evaluation:
    """An evaluation folder, the split under which it is shown, and what may differ from others (`ALLOWABLE`).

    Reading it raises RecordError when it is unfinished, corrupt, or holds records of other settings.
    """

    path: Path
    split: str
    allow: tuple[str, ...] = ()

    @cached_property
    def loaded(self) -> Loaded:
        """Settings, records and versions."""
        return load(self.path)

    @property
    def table(self) -> RecordTable:
        """All verdicts as arrays: axis Q problems, sorted by uid; axis N samples."""
        return self.loaded.table

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked, nested: task, split, sampling, model, performance."""
        return self.loaded.spec.to_dict()

    @property
    def question(self) -> dict[str, Any]:
        """The settings two evaluations must share for their numbers to be comparable, flat."""
        return {key: value for key, value in question(self.loaded).items() if not key.startswith(self._allowed)}

    @property
    def allowed_settings(self) -> dict[str, Any]:
        """The settings that may differ because that was asked for, flat."""
        return {key: value for key, value in question(self.loaded).items() if key.startswith(self._allowed)}

    @property
    def _allowed(self) -> tuple[str, ...]:
        return tuple(ALLOWABLE[name] for name in self.allow)

    @property
    def num_problems(self) -> int:
        """Q."""
        return len(self.table.uids)

    @property
    def num_samples(self) -> int:
        """N."""
        return self.loaded.spec.sampling.num_samples

    def pass_at(self, ks: list[int]) -> np.ndarray:
        """Unbiased pass@k of every problem, [Q, K]."""
        return pass_at_ks(self.table.num_correct_Q, self.num_samples, ks)

    def completions(self, uids: list[str], count: int) -> dict[str, list[Record]]:
        """The first `count` samples of some problems, read from disk."""
        wanted: dict[str, list[Record]] = {uid: [] for uid in uids}
        left = sum(min(count, self.num_samples) for uid in wanted if uid in self.table.uids)
        for record in iter_records(EvaluationFolder(self.path).records_file):
            if record.uid in wanted and record.sample < count:
                wanted[record.uid].append(record)
                left -= 1
            if left == 0:
                break
        return {uid: sorted(found, key=lambda record: record.sample) for uid, found in wanted.items()}
