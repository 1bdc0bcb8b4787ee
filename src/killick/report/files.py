"""Reading training logs, with errors that name the file and the line."""

import json
import math
from pathlib import Path
from typing import Any

from killick.errors import RecordError

_LARGEST = 2**63


def read_log(path: Path) -> list[dict[str, Any]]:
    """A JSONL log. A last line without its newline is left out: the run is still writing it, or was killed there.

    Raises:
        RecordError: unreadable, or any other line is not a JSON object, or its step or another number is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, ValueError) as error:
        raise RecordError(
            f"Cannot read {path}: {error}. Repeat the run that writes it, or restore the file."
        ) from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{path}, line {number}, is not JSON: {error}. Remove the line or run again.") from error
        if not isinstance(row, dict):
            raise RecordError(f"{path}, line {number}, holds a {type(row).__name__}; an object is needed.")
        _check_numbers(row, f"{path}, line {number},")
        rows.append(row)
    return rows


def _check_numbers(row: dict[str, Any], where: str) -> None:
    """Steps count from 0, and every whole number fits a float; NaN and infinities are ordinary in a log."""
    for key, value in row.items():
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise RecordError(f"{where} logs a {key} beyond all measure. Remove the line or run again.")
    step = row.get("step", 0)
    if not isinstance(step, int | float) or isinstance(step, bool) or not 0 <= step < math.inf:
        raise RecordError(f"{where} has step {step!r}; a number from 0 is needed. Remove the line or run again.")
