"""Where a model comes from: the built-in nano base, a local folder, one of our run folders, an adapter, or the hub.

Everything is an ordinary Hugging Face causal language model in safetensors with a chat template. A local folder is
always turned into an absolute path, because TRL loads the reference policy a second time from the path in the config.
"""

import json
import logging
import re
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from killick.errors import ConfigError, DataError, RecordError

if TYPE_CHECKING:  # torch and transformers are imported when a model is loaded, not when a recipe is read
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)
DTYPES = ("auto", "float64", "float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda", "mps")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_PAD_CANDIDATES = ("<|finetune_right_pad_id|>", "<|pad|>", "<pad>", "[PAD]", "<|endoftext|>")
_ALLOWED = 'Give "nano", a model folder, a run folder, or a hub name such as "HuggingFaceTB/SmolLM2-135M-Instruct".'
_MERGED = "merged_base"
_PICKLED = ("pytorch_model*.bin", "adapter_model.bin", "*.pt", "*.pth")


@dataclass(frozen=True)
class Source:
    """A model name, resolved.

    Attributes:
        kind: "folder" (weights on disk), "adapter" (a PEFT adapter on disk), or "hub".
        name: absolute path, or the hub name.
        base: what the adapter sits on; None for the other kinds.
    """

    kind: Literal["folder", "adapter", "hub"]
    name: str
    base: "Source | None" = None


def resolve(name_or_path: str) -> Source:
    """Find out what a model name means, without loading anything.

    Args:
        name_or_path: "nano", a folder (model, adapter, or a run of ours: its final model is taken), or a hub name.

    Raises:
        DataError: the folder is missing, holds no model, or holds only pickled or GGUF weights.
    """
    if name_or_path == "nano":
        from killick.nano import base_path

        return _resolve_folder(Path(base_path()).resolve())
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return _resolve_folder(folder.resolve())
    if folder.exists():
        raise DataError(
            f"The model {name_or_path!r} is a file. Give the folder that holds config.json and the weights."
        )
    if not _HUB_NAME.fullmatch(name_or_path):
        looked = "" if folder.is_absolute() else f" (looked for {folder.absolute()})"
        raise DataError(f"There is no model folder {name_or_path!r}{looked}, nor is it a hub name. {_ALLOWED}")
    return Source("hub", name_or_path)


def _resolve_folder(folder: Path) -> Source:
    if (folder / "resolved.json").is_file():
        folder = _final_model(folder)
    if (folder / "adapter_config.json").is_file():
        _require_safetensors(folder, "adapter_model.safetensors")
        base = resolve(_adapter_base(folder))
        if base.kind == "adapter":
            raise DataError(
                f"The adapter {folder} sits on another adapter, {base.name}. Merge that one and save it first."
            )
        return Source("adapter", str(folder), base)
    if not (folder / "config.json").is_file():
        inside = ", ".join(sorted(entry.name for entry in folder.iterdir())[:12]) or "nothing"
        gguf = " For a GGUF file see tools/make_smollm2.py." if list(folder.glob("*.gguf")) else ""
        raise DataError(f"{folder} is no model folder: config.json is missing; found {inside}.{gguf}")
    _require_safetensors(folder, "model*.safetensors")
    return Source("folder", str(folder))


def _final_model(run: Path) -> Path:
    """The model a run of ours ended with: `model/`, else its newest checkpoint."""
    if (run / "model").is_dir():
        return run / "model"
    numbered = [
        (int(match[1]), entry) for entry in run.iterdir() if (match := re.fullmatch(r"checkpoint-(\d+)", entry.name))
    ]
    if not numbered:
        raise DataError(f"The run folder {run} holds neither model/ nor a checkpoint-N/. Has it been trained?")
    return max(numbered)[1]


def _adapter_base(folder: Path) -> str:
    try:
        base = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"The adapter {folder} does not name its base model in adapter_config.json: {error!r}."
        ) from error
    if not isinstance(base, str) or not base:
        raise DataError(f"The adapter {folder} names no base model: base_model_name_or_path is {base!r}. Fill it in.")
    return base


def _require_safetensors(folder: Path, pattern: str) -> None:
    if any(folder.glob(pattern)):
        return
    pickled = sorted(file.name for kind in _PICKLED for file in folder.glob(kind))
    if pickled:
        raise DataError(
            f"{folder} holds only pickled weights ({', '.join(pickled)}), and loading a pickle can run any code. "
            "If you trust its source, convert it once: load it with transformers' use_safetensors=False and call "
            "save_pretrained on a new folder, which writes safetensors."
        )
    raise DataError(f"{folder} holds no weights: no file matches {pattern}. Is the download or copy complete?")


def pick_device(device: str = "auto") -> str:
    """The device to use: "auto" takes CUDA, then MPS, then the CPU.

    Raises:
        ConfigError: unknown device, or one this machine does not have.
    """
    import torch

    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise ConfigError(f"Unknown device {device!r}. Allowed: {', '.join(DEVICES)} (cuda may carry an index).")
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if kind == "auto":
        return next(name for name, available in present.items() if available)
    if not present[kind]:
        raise ConfigError(f'The device {device!r} is asked for, but this machine has none. Use device = "auto".')
    return device


def _dtype(name: str) -> "torch.dtype | str":
    import torch

    if name not in DTYPES:
        raise ConfigError(f"Unknown dtype {name!r}. Allowed: {', '.join(DTYPES)}.")
    return name if name == "auto" else getattr(torch, name)


def load_tokenizer(name_or_path: str) -> "PreTrainedTokenizerBase":
    """The tokenizer, padding on the left (for generation), with a pad token and a chat template.

    Raises:
        DataError: it cannot be read, or has no chat template.
    """
    return _tokenizer(resolve(name_or_path))


def _tokenizer(source: Source) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    if source.base and not (Path(source.name) / "tokenizer_config.json").is_file():
        return _tokenizer(source.base)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.name, padding_side="left", trust_remote_code=False)
    except Exception as error:  # the host raises a different class for each way a file can be damaged
        raise _unreadable(f"The tokenizer of {source.name}", source, error) from error
    if not tokenizer.chat_template:
        raise DataError(
            f"The tokenizer of {source.name} has no chat template, so prompts cannot be rendered. Take the instruction-"
            "tuned version of the model, or put a chat_template.jinja into a local copy of its folder."
        )
    _ensure_pad(tokenizer, source.name)
    return tokenizer


def _ensure_pad(tokenizer: "PreTrainedTokenizerBase", name: str) -> None:
    if tokenizer.pad_token is not None:
        return
    vocabulary = tokenizer.get_vocab()
    pad = next((token for token in _PAD_CANDIDATES if token in vocabulary), tokenizer.eos_token)
    if pad is None:
        raise DataError(f"The tokenizer of {name} has neither a pad nor an end token. Add one to a local copy of it.")
    tokenizer.pad_token = pad
    _log.warning("The tokenizer of %s has no pad token; %r is used for padding.", name, pad)


def load_model(
    name_or_path: str, dtype: str = "auto", device: str = "auto"
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Load a causal language model and its tokenizer, ready for evaluation (`eval()` mode).

    An adapter is merged into its base, in float32, then cast. `model.config._name_or_path` is the absolute folder.

    Args:
        name_or_path: as in `resolve`.
        dtype: "auto" keeps the stored type.
        device: "auto" takes the best one present.

    Raises:
        ConfigError: unknown dtype or device.
        DataError: nothing usable there, an unreadable or incomplete checkpoint, no chat template.
    """
    source = resolve(name_or_path)
    if source.kind == "hub":
        load_config(source)  # one small file first: a wrong name fails once, not once for every file of a tokenizer
    weight_type, place = _dtype(dtype), pick_device(device)
    if dtype == "float64" and place == "mps":
        raise ConfigError('The device "mps" has no float64. Use dtype = "float32", or device = "cpu".')
    tokenizer = _tokenizer(source)
    model = _load_adapter(source, weight_type) if source.base else _load_weights(source, weight_type)
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise DataError(
            f"{source.name}: the tokenizer has {len(tokenizer)} tokens, the model only {rows}. They do not match."
        )
    if model.generation_config is not None and model.generation_config.pad_token_id is None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model.to(place).eval(), tokenizer  # type: ignore[arg-type]


def load_for_training(
    name_or_path: str, dtype: str, run_dir: Path
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """As `load_model`, from a folder (or hub name) that can be loaded once more: TRL does so for its reference policy.

    An adapter's folder holds no whole model, so the adapter is merged into its base once and kept in
    `run_dir/merged_base`. A later call takes that folder as it is: a resumed run keeps its reference, even when the
    adapter has been trained further since.

    Args:
        name_or_path: as in `resolve`.
        dtype: as in `load_model`.
        run_dir: folder of the run, one per recipe; created if needed.

    Returns:
        The model, with the place of its weights in `config._name_or_path`, and its tokenizer.

    Raises:
        ConfigError, DataError: as `load_model`.
        RecordError: the merged model cannot be written.
    """
    if resolve(name_or_path).kind != "adapter":
        return load_model(name_or_path, dtype)
    merged = Path(run_dir).resolve() / _MERGED
    if not merged.is_dir():
        _save_merged(name_or_path, dtype, merged)
    return load_model(str(merged), dtype)


def _save_merged(name_or_path: str, dtype: str, folder: Path) -> None:
    """Write beside `folder`, then rename: it exists only as a whole, and of several processes the first one wins."""
    model, tokenizer = load_model(name_or_path, dtype, device="cpu")
    draft = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.tmp")
    try:
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        draft.rename(folder)
    except Exception as error:  # safetensors has an error class of its own for a full disk
        if not folder.is_dir():  # else another process was first, with the same content
            raise RecordError(
                f"Cannot write the model merged from {name_or_path} to {folder}: {_cause(error)}. "
                "Free space and rights there, or choose another run folder."
            ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _load_weights(source: Source, dtype: Any) -> "PreTrainedModel":
    from transformers import AutoModelForCausalLM

    try:
        # The dtype is given here rather than by model.to(): that would also round the rotary frequencies.
        model, report = AutoModelForCausalLM.from_pretrained(
            source.name, dtype=dtype, use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:  # as above
        raise _unreadable(f"The model {source.name}", source, error) from error
    if report["missing_keys"]:
        # transformers only warns and fills these with random numbers.
        missing = sorted(report["missing_keys"])
        raise DataError(
            f"The checkpoint {source.name} lacks {len(missing)} weights, e.g. {missing[0]}. Is it complete?"
        )
    if report["unexpected_keys"]:
        _log.warning("%s holds weights the model does not use: %s.", source.name, sorted(report["unexpected_keys"])[:3])
    return model


def _load_adapter(source: Source, dtype: Any) -> "PreTrainedModel":
    import torch

    try:
        from peft import PeftModel
    except ImportError as error:
        raise DataError(
            f"{source.name} is a LoRA adapter; loading it needs PEFT: pip install 'killick[peft]'."
        ) from error
    assert source.base is not None, "an adapter source has a base"
    stored = stored_dtype(source.base) if dtype == "auto" else dtype
    model = _load_weights(source.base, torch.float32)
    try:
        merged = PeftModel.from_pretrained(model, source.name, use_safetensors=True).merge_and_unload()
    except Exception as error:  # as above
        raise DataError(f"The adapter {source.name} cannot be put on {source.base.name}: {_cause(error)}") from error
    for parameter in merged.parameters():
        parameter.data = parameter.data.to(stored)
    merged.config.dtype = stored
    merged.config._name_or_path = source.name
    return merged


def stored_dtype(source: Source) -> "torch.dtype":
    """The type in which a model's weights are stored, as its configuration says; float32 where it says nothing.

    Raises:
        DataError: the configuration cannot be read.
    """
    import torch

    return load_config(source).dtype or torch.float32


def load_config(source: Source) -> Any:
    """The configuration (config.json) of a model; of an adapter, that of its base.

    Raises:
        DataError: it cannot be read, or the hub has no such model or cannot be reached.
    """
    from transformers import AutoConfig

    whole = source.base or source
    try:
        return AutoConfig.from_pretrained(whole.name, trust_remote_code=False)
    except Exception as error:  # as above
        raise _unreadable(f"The config of {whole.name}", whole, error) from error


def _cause(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _unreadable(what: str, source: Source, error: Exception) -> DataError:
    """What to say of files that cannot be read; transformers reports a hub that has or gives nothing as OSError."""
    if source.kind == "hub" and isinstance(error, OSError):
        return no_such_model(source.name, error)
    return DataError(f"{what} cannot be read: {_cause(error)} Copy, download or save it again.")


def no_such_model(name: str, error: Exception) -> DataError:
    """The error of a name that is no folder here, and of which the hub gave nothing."""
    parent, inside = Path(name).parent, ""
    if len(Path(name).parts) == 2 and parent.is_dir():  # mistyped, more often than not
        inside = f" {parent} holds {', '.join(sorted(entry.name for entry in parent.iterdir() if entry.is_dir())[:8])}."
    return DataError(
        f"There is no folder {name}, and the hub has no such model or cannot be reached ({_cause(error)}).{inside} "
        f"{_ALLOWED} Offline, only cached models load."
    )
