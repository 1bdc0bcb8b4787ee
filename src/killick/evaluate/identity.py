"""A content fingerprint of a model folder, so that records of one checkpoint are never continued with another."""

import hashlib
import json
from pathlib import Path

from killick.errors import DataError
from killick.evaluate.settings import ModelIdentity
from killick.models import no_such_model

# Small files that move the numbers: architecture, end-of-sequence ids, tokeniser and chat template.
_TEXT_FILES = (
    "config.json",
    "adapter_config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "tokenizer.model",
)
_WEIGHT_PATTERNS = ("*.safetensors", "*.bin")
_HUB_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json", "adapter_model.safetensors")
_WHOLE_BYTES = 50_000_000
_BLOCK_BYTES = 65_536
_NUM_BLOCKS = 128


def model_identity(name_or_path: str) -> ModelIdentity:
    """The identity of a model folder, or of a hub model, whose files are fetched unless they are in the local cache.

    Weight files under 50 MB are hashed whole. Of a larger one, its size and 128 blocks of 64 KiB spread evenly from
    its first byte (the safetensors header) to its last are hashed: two checkpoints of one training run have equal
    headers and sizes, and differ in nearly every block. An adapter folder includes the fingerprint of its base.

    Raises:
        DataError: no such folder, no readable weights in it, an adapter without its base, or the hub cannot be
            reached or has no such model.
    """
    return ModelIdentity(name_or_path, _fingerprint(name_or_path, ()))


def _fingerprint(name_or_path: str, adapters: tuple[Path, ...]) -> str:
    """16 hex digits over a model's files; `adapters` are the folders that led here as their base."""
    folder = _folder(name_or_path)
    if folder.resolve() in adapters:
        raise DataError(f"The adapter {folder} names itself as its base. Correct its adapter_config.json.")
    weights = sorted({path for pattern in _WEIGHT_PATTERNS for path in folder.glob(pattern)})
    if not weights:
        found = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        raise DataError(f"{folder} holds no model weights (*.safetensors or *.bin); found: {found}.")
    total = hashlib.sha256()
    for path in [folder / name for name in _TEXT_FILES if (folder / name).is_file()] + weights:
        if not path.is_file():
            raise DataError(f"{path} is no file, but weights are expected there. Give the folder of a saved model.")
        try:
            total.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
            _hash_file(path, total)
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror}. Check the file and its rights.") from error
    base = _adapter_base(folder)
    if base is not None:
        total.update(_fingerprint(base, (*adapters, folder.resolve())).encode())
    return total.hexdigest()[:16]


def _folder(name_or_path: str) -> Path:
    try:
        folder = Path(name_or_path).expanduser()
        if folder.is_dir():
            return folder
    except (OSError, RuntimeError) as error:  # too long, or the home of nobody
        raise DataError(f"Model {name_or_path[:80]!r} is neither a folder nor a hub name: {error}.") from error
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        # Exactly the files hashed here and loaded later; sub-folders hold other formats. Offline, the cache must do.
        patterns = [*_TEXT_FILES, *_HUB_WEIGHTS]
        return Path(snapshot_download(name_or_path, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except HFValidationError as error:
        raise DataError(f"Model {name_or_path!r} is neither a folder nor a hub name. Check the path.") from error
    except Exception as error:  # a class of its own for every way the network, the hub or the cache can fail
        raise no_such_model(name_or_path, error) from error


def _hash_file(path: Path, total: "hashlib._Hash") -> None:
    size = path.stat().st_size
    with path.open("rb") as handle:
        if size <= _WHOLE_BYTES:
            while chunk := handle.read(1 << 20):
                total.update(chunk)
            return
        for block in range(_NUM_BLOCKS):
            handle.seek(block * (size - _BLOCK_BYTES) // (_NUM_BLOCKS - 1))
            total.update(handle.read(_BLOCK_BYTES))


def _adapter_base(folder: Path) -> str | None:
    config = folder / "adapter_config.json"
    if not config.is_file():
        return None
    try:
        base = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"{config} is no JSON object that can be read: {error}. Save the adapter again.") from error
    return str(base) if base else None
