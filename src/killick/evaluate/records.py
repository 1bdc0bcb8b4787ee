"""The records of an evaluation: one JSON line per (problem, sample), appended batch by batch, never rewritten.

This is the schema and its reader; `writer` appends. No tensor library is needed here, so a report can read records
without one.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
from jaxtyping import Bool, Int

from killick.errors import RecordError
from killick.verifiers.types import Reason

logger = logging.getLogger(__name__)

_MOST_TOKENS = 2**63 - 1  # what the table's integers hold

REASONS: tuple[str, ...] = get_args(Reason)


@dataclass(frozen=True)
class Record:
    """One line.

    Attributes:
        run: hash of the evaluation's settings.
        uid: problem.
        sample: number among the problem's samples, from 0.
        seed: of the sampler.
        text: completion.
        correct: verdict.
        reason: of the verdict.
        tokens: sampled tokens, end-of-sequence included.
        truncated: no end within the token limit.
        mode: label of the way a right completion solves its problem; None if wrong or unknown.
    """

    run: str
    uid: str
    sample: int
    seed: int
    text: str
    correct: bool
    reason: str
    tokens: int
    truncated: bool
    mode: str | None

    def line(self) -> bytes:
        """Its JSON line; pure ASCII, so neither odd line separators nor lone surrogates can break the file."""
        return json.dumps(self.__dict__, separators=(",", ":")).encode("ascii") + b"\n"


_TYPES: dict[str, Any] = {f.name: f.type for f in fields(Record)}


@dataclass(frozen=True)
class RecordTable:
    """All records of one evaluation as arrays: axis Q problems (sorted by uid), axis N samples.

    Attributes:
        run: hash of the settings.
        uids: problem names, Q of them.
        correct_QN: verdicts.
        tokens_QN: sampled tokens.
        truncated_QN: no end within the token limit.
        reason_QN: index into REASONS.
        mode_QN: index into `modes`, or -1.
        modes: mode labels, sorted.
    """

    run: str
    uids: tuple[str, ...]
    correct_QN: Bool[np.ndarray, "Q N"]
    tokens_QN: Int[np.ndarray, "Q N"]
    truncated_QN: Bool[np.ndarray, "Q N"]
    reason_QN: Int[np.ndarray, "Q N"]
    mode_QN: Int[np.ndarray, "Q N"]
    modes: tuple[str, ...]

    @property
    def num_correct_Q(self) -> Int[np.ndarray, " Q"]:  # noqa: N802
        """Right samples per problem."""
        return np.asarray(self.correct_QN.sum(axis=1))


def iter_records(path: Path, run: str | None = None) -> Iterator[Record]:
    """The records of a file in file order; a torn last line is left out with a warning.

    Raises:
        RecordError: unreadable file, corrupt line, duplicate, or a record of other settings than `run`.
    """
    scan = Scan(path, run)
    yield from scan
    if scan.torn_bytes:
        logger.warning("%s: the last line is torn (%d bytes, writer killed?) and is left out", path, scan.torn_bytes)


def read_records(path: Path, num_samples: int, run: str | None = None) -> RecordTable:
    """All records as arrays.

    Args:
        path: the JSONL file.
        num_samples: expected samples per problem, N.
        run: expected hash of the settings; None accepts the first line's.

    Raises:
        RecordError: as `iter_records`, or a problem has fewer or more than N samples.
    """
    records = sorted(iter_records(path, run), key=lambda record: (record.uid, record.sample))
    if not records:
        raise RecordError(f"{path} holds no records. Run the evaluation (again).")
    counts: dict[str, int] = {}
    for record in records:
        counts[record.uid] = counts.get(record.uid, 0) + 1
        if record.sample >= num_samples:
            raise RecordError(
                f"{path}: problem {record.uid!r} has sample {record.sample}, but {num_samples} are asked."
            )
    for uid, count in counts.items():
        if count != num_samples:
            raise RecordError(
                f"{path}: problem {uid!r} has {count} of {num_samples} samples. "
                "The evaluation is not finished: run the same command again to resume it."
            )
    shape = (len(counts), num_samples)
    modes = sorted({record.mode for record in records if record.mode is not None})
    mode_code: dict[str | None, int] = {None: -1, **{mode: code for code, mode in enumerate(modes)}}
    reason_code = {reason: code for code, reason in enumerate(REASONS)}
    return RecordTable(
        run=records[0].run,
        uids=tuple(counts),
        correct_QN=np.array([r.correct for r in records], dtype=bool).reshape(shape),
        tokens_QN=np.array([r.tokens for r in records], dtype=np.int64).reshape(shape),
        truncated_QN=np.array([r.truncated for r in records], dtype=bool).reshape(shape),
        reason_QN=np.array([reason_code[r.reason] for r in records], dtype=np.int64).reshape(shape),
        mode_QN=np.array([mode_code[r.mode] for r in records], dtype=np.int64).reshape(shape),
        modes=tuple(modes),
    )


@dataclass
class Scan:
    """One checked pass over a file, yielding its records in file order.

    Attributes:
        path: the JSONL file.
        run: expected hash of the settings; None takes the first record's.
        good_bytes: length of the whole lines; final once the pass is exhausted.
        torn_bytes: length of a last line without its newline, which a killed writer leaves; likewise.

    Raises:
        RecordError: unreadable file, corrupt line, duplicate, or a record of other settings than `run`.
    """

    path: Path
    run: str | None
    good_bytes: int = 0
    torn_bytes: int = 0
    _lines: dict[tuple[str, int], int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Record]:
        try:
            with self.path.open("rb") as handle:
                for number, line in enumerate(handle, start=1):
                    if not line.endswith(b"\n"):
                        self.torn_bytes = len(line)
                        return
                    self.good_bytes += len(line)
                    yield self._check(_parse(line, self.path, number), number)
        except OSError as error:
            raise RecordError(f"Cannot read {self.path}: {error.strerror}. Has the evaluation been run?") from error

    def _check(self, record: Record, number: int) -> Record:
        if self.run is None:
            self.run = record.run
        if record.run != self.run:
            raise RecordError(
                f"{self.path}, line {number}: a record of run {record.run}, expected {self.run}. Records of different "
                "settings cannot share a file: evaluate into another folder."
            )
        first = self._lines.setdefault((record.uid, record.sample), number)
        if first != number:
            raise RecordError(
                f"{self.path}, line {number}: sample {record.sample} of problem {record.uid!r} is already in line "
                f"{first}. Delete one of the two lines (did two processes write here?)."
            )
        return record


def _parse(line: bytes, path: Path, number: int) -> Record:
    try:
        values = json.loads(line)
        if not isinstance(values, dict) or values.keys() != _TYPES.keys():
            raise ValueError(f"keys must be {', '.join(_TYPES)}")
        for name, kind in _TYPES.items():
            if not isinstance(values[name], kind) or (kind is int and isinstance(values[name], bool)):
                raise ValueError(f"{name} = {values[name]!r} is not {getattr(kind, '__name__', kind)}")
        if values["sample"] < 0 or not 0 <= values["tokens"] <= _MOST_TOKENS:
            raise ValueError("sample and tokens are counted from 0, and tokens are fewer than 2**63")
        if values["reason"] not in REASONS or values["correct"] != (values["reason"] == "right"):
            raise ValueError(f"correct = {values['correct']} does not go with reason {values['reason']!r}")
    except (ValueError, RecursionError) as error:  # json and unicode errors are ValueErrors
        raise RecordError(
            f"{path}, line {number} is corrupt: {error}. Delete that line and run the evaluation again: it redraws "
            "the missing sample, with the same result."
        ) from error
    return Record(**values)
