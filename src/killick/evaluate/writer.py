"""Appending records so that nothing is lost: whole batches, synced; a line torn by `kill -9` is dropped on resume.

The dropped sample is drawn again and comes out the same, because its random stream depends on nothing but its name.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from killick.errors import RecordError
from killick.evaluate.records import Record, Scan

try:
    import fcntl
except ImportError:  # Windows: no advisory locks; two writers are then found as duplicate records
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


class RecordWriter:
    """Appends whole batches to one file, after checking what is already there. Use as a context manager.

    Attributes:
        done: (uid, sample) of every record in the file.

    Raises:
        RecordError: on entry, when the file is locked by another process, corrupt, or of another run; on `append`,
            when a record is already there or cannot be written (the file then ends with the last whole batch).
    """

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        self.run = run
        self.done: set[tuple[str, int]] = set()
        self._fd = -1

    def __enter__(self) -> "RecordWriter":
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise RecordError(f"Cannot write {self.path}: {error.strerror}. Choose a writable folder.") from error
        try:
            self._lock()
            self._recover()
        except BaseException:
            os.close(self._fd)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)  # also gives up the lock

    def append(self, records: Sequence[Record]) -> None:
        """Write one batch and sync it to disk."""
        keys = [(record.uid, record.sample) for record in records]
        self._refuse_strangers(records)
        start = os.lseek(self._fd, 0, os.SEEK_END)
        data = memoryview(b"".join(record.line() for record in records))
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, start)  # a half-written batch would be a torn line in the middle later
            raise RecordError(
                f"Cannot write to {self.path}: {error.strerror}. The {len(self.done)} records before this batch are "
                "safe; make room and run the same command again to resume."
            ) from error
        self.done.update(keys)

    def _refuse_strangers(self, records: Sequence[Record]) -> None:
        fresh: set[tuple[str, int]] = set()
        for record in records:
            key = (record.uid, record.sample)
            if record.run != self.run:
                raise RecordError(f"{self.path} belongs to run {self.run}; a record of run {record.run} was refused.")
            if key in self.done or key in fresh:
                raise RecordError(
                    f"{self.path}: sample {record.sample} of problem {record.uid!r} is already there; the batch "
                    "holding it again was refused. Are the uids of the task unique?"
                )
            fresh.add(key)

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RecordError(
                f"{self.path} is being written by another process. Wait for it, or choose another folder."
            ) from error
        except OSError as error:  # some network file systems have no locks; duplicates are still found on reading
            logger.warning("%s cannot be locked (%s): run one evaluation at a time here", self.path, error.strerror)

    def _recover(self) -> None:
        scan = Scan(self.path, self.run)
        self.done = {(record.uid, record.sample) for record in scan}
        if scan.torn_bytes:
            logger.warning("%s: dropped a torn last line of %d bytes", self.path, scan.torn_bytes)
            os.ftruncate(self._fd, scan.good_bytes)
            os.fsync(self._fd)
