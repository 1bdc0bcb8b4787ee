"""One training run from a recipe: check everything cheap first, then load, train, save. Resumes by itself.

A run folder holds `resolved.json`, `versions.json`, `train_log.jsonl`, `groups.jsonl`, `repairs.jsonl` when something
is repaired, `checkpoint-N/` and, once finished, `model/`.
"""

import logging
import os
import shutil
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from datasets import Dataset
from rich.console import Console
from safetensors import SafetensorError
from transformers import PrinterCallback

from killick import provenance
from killick.config import Recipe, identity
from killick.engines.trl.args import REJECTIONS, build_args
from killick.engines.trl.callbacks import ProgressBar, SaveOnInterrupt, TrainLog
from killick.engines.trl.checkpoint import last_checkpoint
from killick.engines.trl.reward import VerifierReward
from killick.engines.trl.trainer import KillickTrainer
from killick.errors import ConfigError, DataError, KillickError, RecordError
from killick.models import load_for_training
from killick.prompts import render_prompts
from killick.tasks import TASKS
from killick.tasks.overlap import warn_of_overlap
from killick.tasks.types import Row, Task

logger = logging.getLogger(__name__)
_LITTLE_ROOM = 1 << 20  # bytes


def check_folder(recipe: Recipe, run_dir: Path) -> None:
    """Refuse a run folder that holds another recipe; a folder in which nothing was trained yet is free.

    Raises:
        RecordError: another recipe (the differing settings are named), or an unreadable `resolved.json`.
    """
    resolved = run_dir / "resolved.json"
    try:
        begun = resolved.exists() and (any(run_dir.glob("checkpoint-*")) or (run_dir / "train_log.jsonl").exists())
        stored = identity(provenance.read_json(resolved)) if begun else None
    except (AttributeError, KeyError, TypeError) as error:
        raise RecordError(
            f"{resolved} is no resolved recipe ({error!r}). Restore it, or give another --run-dir."
        ) from error
    except OSError as error:
        raise RecordError(f"Cannot use {run_dir}: {error.strerror}. Give another --run-dir.") from error
    found = provenance.differences(stored, identity(recipe.to_dict())) if stored is not None else []
    if found:
        raise RecordError(
            f"{run_dir} holds a run of another recipe (there / asked: {provenance.listed(found)}). "
            "Give another --run-dir, or remove the folder to start again."
        )


def claim_folder(recipe: Recipe, run_dir: Path) -> None:
    """Write the resolved recipe and the versions that began the run; later, warn when versions have changed."""
    versions = run_dir / "versions.json"
    provenance.write_json(run_dir / "resolved.json", recipe.to_dict())
    if not versions.exists():
        provenance.write_json(versions, provenance.versions())
        return
    changed = provenance.changed_versions(provenance.read_json(versions))
    if changed:
        logger.warning("%s was begun with other versions: %s", run_dir, provenance.listed(changed))


def is_trained(model_dir: Path) -> bool:
    """Whether the final model is whole: weights, and the mark that is written last."""
    weights = [*model_dir.glob("model*.safetensors"), *model_dir.glob("adapter_model.safetensors")]
    return (model_dir / "done.json").exists() and bool(weights)


def load_rows(recipe: Recipe, tokenizer: Any) -> tuple[Task, Dataset]:
    """The task and its training rows as a data set with columns prompt, answer, uid and, if any, solution and plan.

    Raises:
        ConfigError: unknown task, split or setting.
        DataError: no rows, or every prompt is longer than `[model] max_prompt_tokens`.
    """
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    rows: list[Row] = task.rows(recipe.task.split, recipe.task.limit)
    if not rows:
        raise DataError(f"Task {recipe.task.name!r} has no rows in split {recipe.task.split!r}.")
    limit = recipe.model.max_prompt_tokens
    prompts = render_prompts(tokenizer, rows)  # also the check that the chat template takes these messages
    if limit is not None:
        lengths = [len(prompt) for prompt in prompts]
        kept = [row for row, length in zip(rows, lengths, strict=True) if length <= limit]
        if not kept:
            raise DataError(
                f"All {len(rows)} prompts are longer than [model] max_prompt_tokens = {limit} "
                f"(shortest: {min(lengths)} tokens). Raise the limit or choose other data."
            )
        if len(kept) < len(rows):
            logger.warning(
                "%d of %d prompts are longer than %d tokens: left out", len(rows) - len(kept), len(rows), limit
            )
        rows = kept
    warn_of_overlap(task, rows, recipe.evaluate.splits, recipe.evaluate.num_problems)
    columns: dict[str, list[Any]] = {
        "prompt": [row.prompt for row in rows],
        "answer": [row.answer for row in rows],
        "uid": [row.uid for row in rows],
    }
    # A column that no row fills is left out, so that who needs it can say that it is missing.
    if any(row.solution for row in rows):
        columns["solution"] = [row.solution or "" for row in rows]
    if any(row.meta.get("plan") for row in rows):
        columns["plan"] = [row.meta.get("plan") or "" for row in rows]
    return task, Dataset.from_dict(columns)


def train(recipe: Recipe, run_dir: Path, console: Console | None = None) -> Path:
    """Run (or finish, or resume) one recipe; returns the folder of the trained model.

    Raises:
        ConfigError, DataError, RecordError: as the parts say; raised before anything long starts.
        KeyboardInterrupt: after Ctrl-C, once the checkpoint is written.
    """
    console = console or Console(stderr=True)
    if recipe.run.threads:
        torch.set_num_threads(recipe.run.threads)
    args, peft_config = build_args(recipe, run_dir), _lora(recipe)
    rank_zero = int(os.environ.get("RANK", "0")) == 0
    model_dir = run_dir / "model"
    check_folder(recipe, run_dir)
    if is_trained(model_dir):
        console.print(f"Already trained: {model_dir}")
        return model_dir
    provenance.make_folder(run_dir)
    if model_dir.exists() and not model_dir.is_dir():
        raise RecordError(f"{model_dir} is a file where the trained model must go. Remove it or use another --run-dir.")
    model, tokenizer = load_for_training(recipe.model.name_or_path, recipe.model.dtype, run_dir)
    task, dataset = load_rows(recipe, tokenizer)
    try:
        trainer = KillickTrainer(
            model=model,
            reward_funcs=VerifierReward(task.verifier),
            args=args,
            train_dataset=dataset,
            processing_class=tokenizer,
            peft_config=peft_config,
            plan_wording=getattr(task, "plan_wording", None),  # a task from another package need not have one
            journal=run_dir,
        )
    except REJECTIONS as error:
        if isinstance(error, KillickError):
            raise
        raise ConfigError(f"TRL cannot build a trainer from this recipe: {error}") from error
    trainer.remove_callback(PrinterCallback)  # the bar and train_log.jsonl say it better
    if rank_zero:
        claim_folder(recipe, run_dir)
    _run(trainer, run_dir, console)
    trainer.save_model(str(model_dir))
    if rank_zero:
        tokenizer.save_pretrained(model_dir)
        provenance.write_json(model_dir / "done.json", {"step": trainer.state.global_step, "recipe": recipe.hash()})
    return model_dir


def _run(trainer: KillickTrainer, run_dir: Path, console: Console) -> None:
    """The host's loop between our callbacks, from the newest whole checkpoint; its failures become errors of ours."""
    log, bar, interrupt = TrainLog(run_dir / "train_log.jsonl"), ProgressBar(console), SaveOnInterrupt(console)
    for callback in (log, bar, interrupt):
        trainer.add_callback(callback)
    checkpoint = last_checkpoint(run_dir)
    if checkpoint is not None:
        console.print(f"Resuming from {checkpoint}")
    try:
        with interrupt:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except (
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        KeyError,
        EOFError,
        SafetensorError,
        UnpicklingError,
    ) as error:
        if isinstance(error, KillickError):
            raise
        if shutil.disk_usage(run_dir).free < _LITTLE_ROOM:
            raise RecordError(
                f"The disk of {run_dir} is full: {error}. Free some space and run the same command; it goes on from "
                f"{checkpoint or 'the newest whole checkpoint'}."
            ) from error
        if checkpoint is not None and not log.begun:
            raise RecordError(
                f"Cannot resume from {checkpoint}: {error!r}. Remove that folder to resume from the one before."
            ) from error
        raise
    finally:
        bar.close()
    if interrupt.interrupted and trainer.state.global_step < trainer.state.max_steps:
        console.print(f"Interrupted at step {trainer.state.global_step}; run the same command again to go on.")
        raise KeyboardInterrupt


def _lora(recipe: Recipe) -> Any:
    if recipe.model.lora is None:
        return None
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise ConfigError("[model.lora] needs the package peft: pip install 'killick[peft]'.") from error
    try:
        return LoraConfig(**{"task_type": "CAUSAL_LM", **recipe.model.lora})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"[model.lora] is rejected by peft.LoraConfig: {error}") from error
