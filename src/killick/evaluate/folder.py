"""An evaluation on disk: `spec.json` (what was asked), `records.jsonl` (what came back), `summary.json` (numbers)."""

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killick.errors import RecordError
from killick.evaluate.records import RecordTable, read_records
from killick.evaluate.settings import EvaluationSpec
from killick.evaluate.writer import RecordWriter
from killick.provenance import changed_versions, differences, listed, read_json, versions, write_json

logger = logging.getLogger(__name__)

FORMAT = 1
_DEPTH = 3


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation read back.

    Attributes:
        folder: where it lies.
        spec: what was asked.
        table: all records as arrays.
        wall_s: seconds spent sampling and verifying, over all starts.
        versions: package -> version of what began it.
    """

    folder: Path
    spec: EvaluationSpec
    table: RecordTable
    wall_s: float
    versions: dict[str, str | None]


@dataclass(frozen=True)
class EvaluationFolder:
    """Paths and the settings file of one evaluation."""

    path: Path

    @property
    def spec_file(self) -> Path:
        """Settings, versions, seconds."""
        return self.path / "spec.json"

    @property
    def records_file(self) -> Path:
        """One line per sample."""
        return self.path / "records.jsonl"

    @property
    def summary_file(self) -> Path:
        """Estimates."""
        return self.path / "summary.json"

    def claim(self, spec: EvaluationSpec, resume: bool) -> float:
        """Take the folder for this spec, or accept it as the same evaluation; returns the seconds already spent.

        A folder without a record is free, whatever its settings file says: what was asked there never began.

        Raises:
            RecordError: it holds another evaluation (the differing settings are listed), records without settings,
                or, when `resume` is off, any records; another process writes there; or it cannot be written.
        """
        if not self._has_record():
            self._begin(spec)
            return 0.0
        if not self.spec_file.exists():
            raise RecordError(
                f"{self.records_file} has no spec.json beside it. Move it away, or choose another folder."
            )
        stored, extra = self.read_spec()
        if stored.hash() != spec.hash():
            found = listed(differences(stored.defining(), spec.defining()))
            raise RecordError(
                f"{self.path} holds another evaluation (there / asked: {found}). Choose another folder with --out, ask "
                "for the same settings, or remove that folder."
            )
        if not resume:
            raise RecordError(f"{self.path} already holds records of this evaluation. Resume it, or remove them.")
        return float(extra["wall_s"])

    def _has_record(self) -> bool:
        try:
            with self.records_file.open("rb") as file:
                return file.readline().endswith(b"\n")
        except OSError:  # no file, or one that the writer will not be able to open either, and say why
            return False

    def _begin(self, spec: EvaluationSpec) -> None:
        """Write the settings, under the lock of the records: another process may be about to write its first one."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with RecordWriter(self.records_file, spec.hash()):
                if self.spec_file.exists():
                    self.summary_file.unlink(missing_ok=True)
                    self.spec_file.unlink()
                self.write_spec(spec, 0.0)
        except OSError as error:
            raise RecordError(f"Cannot create {self.path}: {error.strerror}. Choose a writable folder.") from error

    def write_spec(self, spec: EvaluationSpec, wall_s: float) -> None:
        """Write all settings, with the versions that began the evaluation; others that go on are warned about."""
        began = read_json(self.spec_file).get("versions") if self.spec_file.exists() else versions()
        changed = changed_versions(began or {})
        if changed:
            logger.warning("%s goes on with other versions: %s", self.path, listed(changed))
        stored = {"format": FORMAT, "hash": spec.hash(), **spec.to_dict(), "versions": began, "wall_s": wall_s}
        write_json(self.spec_file, stored)

    def read_spec(self) -> tuple[EvaluationSpec, dict[str, Any]]:
        """The settings, and the rest of the file: format, hash, versions, wall_s.

        Raises:
            RecordError: missing or unreadable file, another format, a hash that does not fit the settings, or no
                seconds.
        """
        data = read_json(self.spec_file)
        extra = {key: data.pop(key, None) for key in ("format", "hash", "versions", "wall_s")}
        if extra["format"] != FORMAT:
            raise RecordError(f"{self.spec_file} has format {extra['format']!r}; this version reads {FORMAT}.")
        spec = EvaluationSpec.from_dict(data)
        if spec.hash() != extra["hash"]:
            raise RecordError(
                f"{self.spec_file} was edited: its settings hash to {spec.hash()}, the file says {extra['hash']}. "
                "Restore it, or evaluate into another folder."
            )
        wall_s, began = extra["wall_s"], extra["versions"]
        if not isinstance(wall_s, int | float) or isinstance(wall_s, bool) or not 0 <= wall_s < math.inf:
            raise RecordError(f"{self.spec_file}: wall_s = {wall_s!r} is no number of seconds. Restore it, or put 0.0.")
        if began is not None and not isinstance(began, dict):
            raise RecordError(f"{self.spec_file}: versions = {began!r} is no table of versions. Restore it.")
        return spec, extra


def is_evaluation(folder: Path) -> bool:
    """Whether a folder holds one evaluation."""
    return (folder / "spec.json").is_file() and (folder / "records.jsonl").is_file()


def is_finished(folder: Path) -> bool:
    """An evaluation writes its summary last; without it, records may still be coming."""
    return is_evaluation(folder) and (folder / "summary.json").is_file()


def evaluations_below(folder: Path) -> dict[str, Path]:
    """The evaluations below a folder (three levels deep), by their path in it, e.g. `aime24/test`; finished or not."""
    found = {}
    for depth in range(1, _DEPTH + 1):
        for place in sorted(folder.glob("/".join("*" * depth))):
            if is_evaluation(place):
                found[place.relative_to(folder).as_posix()] = place
    return found


def load(path: Path) -> Evaluation:
    """Read a finished evaluation.

    Raises:
        RecordError: not an evaluation, not finished, corrupt, or records of other settings.
    """
    folder = EvaluationFolder(Path(path))
    spec, extra = folder.read_spec()
    table = read_records(folder.records_file, spec.sampling.num_samples, spec.hash())
    if len(table.uids) != spec.num_problems:
        raise RecordError(
            f"{folder.records_file} has records of {len(table.uids)} of {spec.num_problems} problems. "
            "The evaluation is not finished: run the same command again to resume it."
        )
    return Evaluation(folder.path, spec, table, float(extra["wall_s"]), extra["versions"] or {})
