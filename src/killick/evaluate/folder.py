"""An evaluation on disk: `spec.json` (what was asked), `records.jsonl` (what came back), `summary.json` (numbers)."""

import json
import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from killick import __version__
from killick.errors import RecordError
from killick.evaluate.records import RecordTable, read_records
from killick.evaluate.settings import EvaluationSpec, differences

FORMAT = 1


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation read back.

    Attributes:
        folder: where it lies.
        spec: what was asked.
        table: all records as arrays.
        wall_s: seconds spent sampling and verifying, over all starts.
        versions: of killick, torch and transformers.
    """

    folder: Path
    spec: EvaluationSpec
    table: RecordTable
    wall_s: float
    versions: dict[str, str]


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
        """Create the folder for this spec, or accept it as the same evaluation; returns the seconds already spent.

        Raises:
            RecordError: it holds another evaluation (the differing settings are listed), records without settings,
                or, when `resume` is off, any records; or it cannot be written.
        """
        if self.spec_file.exists():
            stored, extra = self.read_spec()
            if stored.hash() != spec.hash():
                listed = "; ".join(
                    f"{key}: there {old!r}, asked {new!r}"
                    for key, old, new in differences(stored.defining(), spec.defining())
                )
                raise RecordError(
                    f"{self.path} holds another evaluation ({listed}). Choose another folder, or ask for the same."
                )
            if not resume and self.records_file.exists():
                raise RecordError(f"{self.path} already holds records of this evaluation. Resume it, or remove them.")
            return float(extra["wall_s"])
        if self.records_file.exists():
            raise RecordError(
                f"{self.records_file} has no spec.json beside it. Move it away, or choose another folder."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"Cannot create {self.path}: {error.strerror}. Choose a writable folder.") from error
        self.write_spec(spec, 0.0)
        return 0.0

    def write_spec(self, spec: EvaluationSpec, wall_s: float) -> None:
        """Write all settings, with the versions of what runs."""
        versions = {"killick": __version__, **{name: metadata.version(name) for name in ("torch", "transformers")}}
        stored = {"format": FORMAT, "hash": spec.hash(), **spec.to_dict(), "versions": versions, "wall_s": wall_s}
        write_json(self.spec_file, stored)

    def read_spec(self) -> tuple[EvaluationSpec, dict[str, Any]]:
        """The settings, and the rest of the file: format, hash, versions, wall_s.

        Raises:
            RecordError: missing or unreadable file, another format, or a hash that does not fit the settings.
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
        return spec, extra


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
    return Evaluation(folder.path, spec, table, float(extra["wall_s"]), extra["versions"])


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Replace a JSON file in one step, so that a kill leaves the old or the new one.

    Raises:
        RecordError: it cannot be written.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("w", encoding="utf-8") as handle:
            json.dump(data, handle, indent=2, allow_nan=False)
            handle.write("\n")
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise RecordError(f"Cannot write {path}: {error.strerror}. Choose a writable folder with room.") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        RecordError: missing, unreadable, or not a JSON object.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(f"Cannot read {path}: {error.strerror}. Is this the folder of an evaluation?") from error
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}. Restore it, or evaluate into another folder.") from error
    if not isinstance(data, dict):
        raise RecordError(f"{path} holds no JSON object. Restore it, or evaluate into another folder.")
    return data
