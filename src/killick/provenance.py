"""What made a result: versions, settings and how two sets of them differ; and how JSON is written and read."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from killick.errors import RecordError

_PACKAGES = (
    *("killick", "torch", "trl", "transformers", "accelerate", "datasets", "numpy"),
    *("math-verify", "sympy", "reasoning-gym"),  # verdicts, and problems made by a generator
    *("peft", "vllm", "deepspeed", "liger-kernel"),  # optional: adapters, another sampler, other kernels
)


def versions() -> dict[str, str | None]:
    """Package -> version of everything that can change a number; None when not installed."""
    found: dict[str, str | None] = {"python": sys.version.split()[0], "platform": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def changed_versions(began: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(package, version then, version now) where they differ; a package that was not asked about then is left out."""
    return [change for change in differences(began, versions()) if change[0] in began]


def differences(a: Mapping[str, Any], b: Mapping[str, Any], path: str = "") -> list[tuple[str, Any, Any]]:
    """(dotted key, value in a, value in b) wherever two nested settings differ; a missing key shows as None."""
    found: list[tuple[str, Any, Any]] = []
    for key in sorted(a.keys() | b.keys()):
        where, one, other = f"{path}{key}", a.get(key), b.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found += differences(one, other, f"{where}.")
        elif one != other:
            found.append((where, one, other))
    return found


def listed(found: list[tuple[str, Any, Any]]) -> str:
    """Differences as one line for a message: `a.b: 1 / 2; …`."""
    return "; ".join(f"{key}: {one!r} / {other!r}" for key, one, other in found)


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
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise RecordError(
            f"Cannot write to {path}: {reason}. Choose another folder, or free space and rights there."
        ) from error


def write_json(path: Path, data: Any) -> None:
    """Replace a JSON file in one step, so that a kill leaves the old or the new one.

    Raises:
        RecordError: it cannot be written.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=2, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
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
        raise RecordError(f"Cannot read {path}: {error.strerror}. Is this the right folder?") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}. Restore it, or start in another folder.") from error
    if not isinstance(data, dict):
        raise RecordError(f"{path} holds no JSON object. Restore it, or start in another folder.")
    return data
