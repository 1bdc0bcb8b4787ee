"""What of ours, and of TRL's rollout buffer, a resumed run needs to equal an uninterrupted one to the bit.

TRL keeps neither its micro-step counter nor the rollouts it is still re-using (`num_iterations` > 1, or generation
spread over several optimiser steps); both are stored beside the host's files, as JSON and safetensors.
"""

import json
import logging
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from killick.errors import RecordError

if TYPE_CHECKING:
    from killick.engines.trl.trainer import KillickTrainer

logger = logging.getLogger(__name__)
STATE = "killick_state.json"
_FORMAT = 1


def anchor_description(trainer: "KillickTrainer") -> dict[str, Any]:
    """What must not change between the two halves of a run."""
    shaper = trainer._killick_shaper
    guide = shaper.guide
    return {
        "kl_form": shaper.kl_form,
        "beta": shaper.beta,
        "guide": None if guide is None else type(guide).__name__,
        "guide_settings": asdict(guide) if is_dataclass(guide) and not isinstance(guide, type) else {},
        "num_generations": trainer.num_generations,
        "num_iterations": trainer.num_iterations,
        "steps_per_generation": trainer.args.steps_per_generation,
        "num_processes": trainer.accelerator.num_processes,
        "seed": trainer.args.seed,
    }


def _buffer_path(folder: Path, rank: int) -> Path:
    return folder / f"killick_rollouts_{rank}.safetensors"


def save(trainer: "KillickTrainer", trial: Any) -> None:
    """Write our part of the checkpoint of the current optimiser step."""
    folder = Path(trainer._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{trainer.state.global_step}"
    folder.mkdir(parents=True, exist_ok=True)
    cycle = trainer.args.steps_per_generation * trainer.num_iterations
    if trainer._step % cycle != 0 and trainer._buffered_inputs is not None:
        flat = {
            f"{index}/{key}": value.contiguous()
            for index, batch in enumerate(trainer._buffered_inputs)
            for key, value in batch.items()
            if isinstance(value, Tensor)
        }
        # `clone`: slices of one tensor share storage, which safetensors refuses
        save_file({k: v.clone() for k, v in flat.items()}, _buffer_path(folder, trainer.accelerator.process_index))
    if trainer.args.should_save:
        state = {"format": _FORMAT, "step_in_cycle": trainer._step % cycle, "anchor": anchor_description(trainer)}
        (folder / STATE).write_text(json.dumps(state, indent=2, sort_keys=True))


def load(trainer: "KillickTrainer", checkpoint: str) -> None:
    """Restore our part.

    Raises:
        RecordError: the file is missing or unreadable, or the checkpoint belongs to another recipe.
    """
    folder = Path(checkpoint)
    path = folder / STATE
    try:
        state = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RecordError(
            f"Cannot resume from {folder}: {STATE} is missing or unreadable ({error}). The checkpoint was not written "
            "by KillickTrainer or is incomplete; resume from an earlier one."
        ) from error
    mine = json.loads(json.dumps(anchor_description(trainer)))
    differing = [
        f"{key}: checkpoint {state['anchor'].get(key)!r}, now {mine[key]!r}"
        for key in mine
        if state.get("anchor", {}).get(key) != mine[key]
    ]
    if differing:
        raise RecordError(
            f"Cannot resume from {folder}: it belongs to another recipe ({'; '.join(differing)}). "
            "Use the recipe it was made with, or start in a new folder."
        )
    trainer._step = state["step_in_cycle"]
    if trainer._step:
        trainer._buffered_inputs = _load_rollouts(trainer, folder)


def _load_rollouts(trainer: "KillickTrainer", folder: Path) -> list[dict[str, Tensor]]:
    path = _buffer_path(folder, trainer.accelerator.process_index)
    try:
        flat = load_file(path, device=str(trainer.accelerator.device))
    except (OSError, SafetensorError) as error:
        raise RecordError(
            f"Cannot resume from {folder}: the rollouts still in use ({path.name}) are unreadable ({error}). "
            "Resume from an earlier checkpoint."
        ) from error
    batches: list[dict[str, Tensor]] = [{} for _ in range(trainer.args.steps_per_generation)]
    for key, value in flat.items():
        index, _, name = key.partition("/")
        batches[int(index)][name] = value
    return batches
