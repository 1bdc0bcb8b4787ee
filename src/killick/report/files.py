"""Reading the JSONL files of a training run, with errors that name the file and the line."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from killick.errors import RecordError

_LARGEST = 2**63


class Line(NamedTuple):
    """One JSON object of a file.

    Attributes:
        number: of the line, from 1.
        start: its first byte in the file.
        row: the object.
    """

    number: int
    start: int
    row: dict[str, Any]


def read_log(path: Path) -> list[dict[str, Any]]:
    """A JSONL log. A last line without its newline is left out: the run is still writing it, or was killed there.

    Raises:
        RecordError: unreadable, or any other line is not a JSON object, or its step or another number is none.
    """
    rows = []
    for number, _, row in objects(path):
        _check_numbers(row, f"{path}, line {number},")
        rows.append(row)
    return rows


def objects(path: Path) -> Iterator[Line]:
    """The objects of a JSONL file, without a torn last line and without empty ones.

    Raises:
        RecordError: unreadable, or a line is not a JSON object.
    """
    start = 0
    try:
        with path.open("rb") as handle:
            for number, raw in enumerate(handle, start=1):
                if not raw.endswith(b"\n"):
                    return
                if raw.strip():
                    yield Line(number, start, _object(raw, f"{path}, line {number},"))
                start += len(raw)
    except OSError as error:
        raise RecordError(
            f"Cannot read {path}: {error}. Repeat the run that writes it, or restore the file."
        ) from error


def object_at(path: Path, start: int) -> dict[str, Any]:
    """The object that `objects` found at a byte.

    Raises:
        RecordError: unreadable, or the file has changed since.
    """
    try:
        with path.open("rb") as handle:
            handle.seek(start)
            return _object(handle.readline(), f"{path}, byte {start},")
    except OSError as error:
        raise RecordError(
            f"Cannot read {path}: {error}. Repeat the run that writes it, or restore the file."
        ) from error


def _object(raw: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where} is not JSON: {error}. Remove the line or run again.") from error
    if not isinstance(row, dict):
        raise RecordError(f"{where} holds a {type(row).__name__}; an object is needed.")
    return row


def _check_numbers(row: dict[str, Any], where: str) -> None:
    """Steps count from 0, and every whole number fits a float; NaN and infinities are ordinary in a log."""
    for key, value in row.items():
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise RecordError(f"{where} logs a {key} beyond all measure. Remove the line or run again.")
    step = row.get("step", 0)
    if not isinstance(step, int | float) or isinstance(step, bool) or not 0 <= step < math.inf:
        raise RecordError(f"{where} has step {step!r}; a number from 0 is needed. Remove the line or run again.")
