"""What made a result: versions, settings, and how two sets of settings differ. Also the one way files are written."""

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from killick.errors import RecordError

_PACKAGES = ("killick", "torch", "trl", "transformers", "accelerate", "peft", "datasets", "numpy", "math-verify")


def versions() -> dict[str, str | None]:
    """Package -> version of everything that can change a number; None when not installed."""
    found: dict[str, str | None] = {"python": sys.version.split()[0], "platform": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def differences(a: Any, b: Any, path: str = "") -> list[str]:
    """Where two JSON-able values differ, as `a.b: 1 / 2` lines."""
    if isinstance(a, dict) and isinstance(b, dict):
        lines = []
        for key in sorted(set(a) | set(b)):
            where = f"{path}.{key}" if path else str(key)
            lines += differences(a.get(key), b.get(key), where)
        return lines
    return [] if a == b else [f"{path}: {a!r} / {b!r}"]


def make_folder(path: Path) -> None:
    """Create a folder and prove that it can be written to.

    Raises:
        RecordError: it cannot.
    """
    probe = path / f".write-{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise RecordError(
            f"Cannot write to {path}: {error.strerror or error}. Choose another folder, or free space and rights there."
        ) from error


def write_json(path: Path, data: Any) -> None:
    """Replace a JSON file in one move, so that a kill leaves the old one or the new one.

    Raises:
        RecordError: the disk refuses.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n")
        os.replace(temporary, path)
    except OSError as error:
        raise RecordError(f"Cannot write {path}: {error.strerror or error}. Free some space and run again.") from error
