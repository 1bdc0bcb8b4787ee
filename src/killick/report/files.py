"""Reading training logs, with errors that name the file and the line."""

import json
from pathlib import Path
from typing import Any

from killick.errors import RecordError


def read_log(path: Path) -> list[dict[str, Any]]:
    """A JSONL log. A last line without its newline is left out: the run is still writing it, or was killed there.

    Raises:
        RecordError: unreadable, or any other line is not a JSON object.
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
        except ValueError as error:
            raise RecordError(f"{path}, line {number}, is not JSON: {error}. Remove the line or run again.") from error
        if not isinstance(row, dict):
            raise RecordError(f"{path}, line {number}, holds a {type(row).__name__}; an object is needed.")
        rows.append(row)
    return rows
