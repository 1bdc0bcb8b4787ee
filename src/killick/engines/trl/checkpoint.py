"""What of ours, and of TRL's rollout buffer, a resumed run needs to equal an uninterrupted one to the bit.

TRL keeps neither its micro-step counter nor the rollouts it is still re-using (`num_iterations` > 1, or generation
spread over several optimiser steps); both are stored beside the host's files, as JSON and safetensors.
"""

import json
import logging
import math
import re
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from killick.errors import RecordError
from killick.methods.sort import NO_REPAIR
from killick.provenance import differences, listed, read_json, write_json

if TYPE_CHECKING:
    from killick.engines.trl.trainer import KillickTrainer

logger = logging.getLogger(__name__)
STATE = "killick_state.json"
_FORMAT = 2


def last_checkpoint(run_dir: Path) -> Path | None:
    """The newest whole checkpoint. The host writes `trainer_state.json` last, so a torn one lacks it.

    A checkpoint with parts missing or empty is passed over with a warning: resuming without an optimiser state, say,
    would go on silently as another run.
    """
    numbered = [
        (int(m[1]), path)
        for path in run_dir.glob("checkpoint-*")
        if (m := re.fullmatch(r"checkpoint-([0-9]+)", path.name))
    ]
    for number, path in sorted(numbered, reverse=True):
        missing = _missing_parts(path, number)
        if not missing:
            return path
        logger.warning("%s is not whole (%s): passed over", path, ", ".join(missing))
    return None


def _missing_parts(folder: Path, step: int) -> list[str]:
    wanted = ("*model*.safetensors", "optimizer.pt", "scheduler.pt", "rng_state*.pth", STATE, "trainer_state.json")
    missing = [name for name in wanted if not any(f.is_file() and f.stat().st_size for f in folder.glob(name))]
    if not missing:
        try:
            if read_json(folder / "trainer_state.json").get("global_step") != step:
                missing.append("trainer_state.json of this step")
        except RecordError:
            missing.append("a readable trainer_state.json")
    return missing


def description(trainer: "KillickTrainer") -> dict[str, Any]:
    """What must not change between the two halves of a run."""
    shaper = trainer._killick_shaper
    guide = shaper.guide
    return {
        "kl_form": shaper.kl_form,
        "beta": shaper.beta,
        "guide": None if guide is None else type(guide).__name__,
        "guide_settings": _settings_of(guide),
        "num_steps": trainer.args.max_steps if hasattr(guide, "cycles") else None,  # what a schedule is a function of
        "loss_type": trainer.loss_type,
        "temperature": trainer.temperature,
        "max_completion_length": trainer.max_completion_length,
        "per_device_train_batch_size": trainer.args.per_device_train_batch_size,
        "gradient_accumulation_steps": trainer.args.gradient_accumulation_steps,
        "num_generations": trainer.num_generations,
        "num_iterations": trainer.num_iterations,
        "steps_per_generation": trainer.args.steps_per_generation,
        "num_processes": trainer.accelerator.num_processes,
        "seed": trainer.args.seed,
        **_repair_description(trainer),
    }


def _repair_description(trainer: "KillickTrainer") -> dict[str, Any]:
    repairer = trainer._killick_repairer
    if repairer is None:
        return {"repair": NO_REPAIR}
    rule, wording = repairer.rule, repairer.wording
    found = {"repair": type(rule).__name__, **asdict(repairer.settings)}
    if own := _settings_of(rule):
        found["rule_settings"] = own
    if repairer.settings.plan_source != "none":
        found["plan_wording"] = {"name": type(wording).__name__, **_settings_of(wording)}
    return found


def _settings_of(component: Any) -> dict[str, Any]:
    return asdict(component) if is_dataclass(component) and not isinstance(component, type) else {}


def _buffer_path(folder: Path, rank: int) -> Path:
    return folder / f"killick_rollouts_{rank}.safetensors"


def save(trainer: "KillickTrainer", trial: Any) -> None:
    """Write our part of the checkpoint of the current optimiser step, on every process; returns when all are done."""
    folder = Path(trainer._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{trainer.state.global_step}"
    folder.mkdir(parents=True, exist_ok=True)
    cycle = trainer.args.steps_per_generation * trainer.num_iterations
    if trainer._step % cycle != 0 and trainer._buffered_inputs is not None:
        _save_rollouts(trainer._buffered_inputs, _buffer_path(folder, trainer.accelerator.process_index))
    if trainer.args.should_save:
        # Only the place in the cycle of generations and in the cycle of accumulation is ever read.
        step = trainer._step % math.lcm(cycle, trainer.args.gradient_accumulation_steps)
        state = {"format": _FORMAT, "micro_step": step, "method": description(trainer)}
        if trainer._killick_repairer is not None:
            state["repair"] = trainer._killick_repairer.state_dict()
        write_json(folder / STATE, state)
    trainer.accelerator.wait_for_everyone()


def _save_rollouts(batches: list[dict[str, Any]], path: Path) -> None:
    tensors, others = {}, {}
    for index, batch in enumerate(batches):
        for key, value in batch.items():
            if isinstance(value, Tensor):
                tensors[f"{index}/{key}"] = value.contiguous().clone()  # slices share storage, which the format refuses
            else:
                others[f"{index}/{key}"] = value
    save_file(tensors, path, metadata={"others": json.dumps(others)})


def load(trainer: "KillickTrainer", checkpoint: str) -> None:
    """Restore our part.

    Raises:
        RecordError: the file is missing or unreadable, or the checkpoint belongs to another recipe.
    """
    folder = Path(checkpoint)
    state = _read_state(folder)
    found = differences(state["method"], json.loads(json.dumps(description(trainer))))
    if found:
        raise RecordError(
            f"Cannot resume from {folder}: it belongs to another recipe (checkpoint / now: {listed(found)}). "
            "Use the recipe it was made with, or start in a new folder."
        )
    if trainer._killick_repairer is not None:
        trainer._killick_repairer.load_state_dict(state.get("repair", {}))
    trainer._step = state["micro_step"]
    if trainer._step % (trainer.args.steps_per_generation * trainer.num_iterations):
        trainer._buffered_inputs = _load_rollouts(trainer, folder)


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state = read_json(folder / STATE)
        wanted = {"format": int, "micro_step": int, "method": dict}
        wrong = [key for key, kind in wanted.items() if not isinstance(state.get(key), kind)]
        if wrong or state["format"] != _FORMAT:
            raise RecordError(f"{STATE} lacks or misplaces {', '.join(wrong) or 'its format'}.")
    except RecordError as error:
        raise RecordError(
            f"Cannot resume from {folder}: {error} The checkpoint was not written by this version of KillickTrainer or "
            "is incomplete; resume from an earlier one."
        ) from error
    return state


def _load_rollouts(trainer: "KillickTrainer", folder: Path) -> list[dict[str, Any]]:
    path = _buffer_path(folder, trainer.accelerator.process_index)
    try:
        with safe_open(path, framework="pt") as file:  # on the CPU: it refuses names such as cpu:0
            device = trainer.accelerator.device
            values = {key: file.get_tensor(key).to(device) for key in file.keys()}  # noqa: SIM118 (not a dict)
            values |= json.loads(file.metadata()["others"])
        batches: list[dict[str, Any]] = [{} for _ in range(trainer.args.steps_per_generation)]
        for key, value in values.items():
            index, _, name = key.partition("/")
            batches[int(index)][name] = value
        lengths = {len(batch) for batch in batches}
        if len(lengths) != 1 or "completion_ids" not in batches[0]:
            raise ValueError("the slices do not hold the same tensors")
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, IndexError) as error:
        raise RecordError(
            f"Cannot resume from {folder}: the rollouts still in use ({path.name}) are unreadable ({error}). "
            "Resume from an earlier checkpoint."
        ) from error
    return batches
