"""One training run from a recipe: check everything cheap first, then load, train, save. Resumes by itself.

A run folder holds `resolved.json`, `versions.json`, `train_log.jsonl`, `checkpoint-N/` and, once finished, `model/`.
"""

import logging
import os
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from rich.console import Console
from transformers import PrinterCallback

from killick import provenance
from killick.config import Recipe, identity
from killick.engines.trl.callbacks import ProgressBar, SaveOnInterrupt, TrainLog
from killick.engines.trl.checkpoint import STATE
from killick.engines.trl.reward import VerifierReward
from killick.engines.trl.settings import KillickConfig, check_trl_keys
from killick.engines.trl.trainer import KillickTrainer
from killick.errors import ConfigError, DataError, RecordError
from killick.models import load_for_training
from killick.tasks import TASKS
from killick.tasks.types import Row, Task

logger = logging.getLogger(__name__)
_OURS = (
    "output_dir", "seed", "kl_form", "guide", "guide_settings", "resume_from_checkpoint", "save_strategy", "save_steps"
)  # fmt: skip


def build_args(recipe: Recipe, run_dir: Path) -> KillickConfig:
    """`[trl]`, `[run]` and `[method.anchor]` as one `KillickConfig`.

    Raises:
        ConfigError: unknown `[trl]` key, one that another section owns, or settings that contradict each other.
    """
    settings = dict(recipe.trl)
    for key in _OURS:
        if key in settings:
            raise ConfigError(f"[trl] {key} is set by another section of the recipe ([run] or [method.anchor]).")
    check_trl_keys(settings)
    defaults: dict[str, Any] = {
        "report_to": "none",
        "logging_steps": 1,
        "disable_tqdm": True,
        "save_strategy": "steps" if recipe.run.save_every else "no",
        "save_steps": recipe.run.save_every or 500,
        "save_total_limit": 2,
    }
    try:
        return KillickConfig(
            **{**defaults, **settings},
            output_dir=str(run_dir),
            seed=recipe.run.seed,
            kl_form=recipe.anchor.kl_form,
            guide=recipe.anchor.name,
            guide_settings=recipe.anchor.settings or None,
        )
    except ConfigError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"[trl] is rejected by TRL: {error}") from error


def prepare_folder(recipe: Recipe, run_dir: Path) -> None:
    """Create the run folder, or check that it belongs to this recipe.

    Raises:
        RecordError: the folder holds another recipe (the differing settings are named), or cannot be written.
    """
    resolved, versions = run_dir / "resolved.json", run_dir / "versions.json"
    if resolved.exists():
        found = provenance.differences(identity(provenance.read_json(resolved)), identity(recipe.to_dict()))
        if found:
            raise RecordError(
                f"{run_dir} holds a run of another recipe (there / asked: {provenance.listed(found)}). "
                "Give another --run-dir, or remove the folder to start again."
            )
    provenance.make_folder(run_dir)
    provenance.write_json(resolved, recipe.to_dict())
    if not versions.exists():
        provenance.write_json(versions, provenance.versions())
        return
    changed = provenance.differences(provenance.read_json(versions), provenance.versions())
    if changed:
        logger.warning("%s was begun with other versions: %s", run_dir, provenance.listed(changed))


def last_checkpoint(run_dir: Path) -> Path | None:
    """The newest whole checkpoint: the host writes `trainer_state.json` last, so a torn one lacks it."""
    found = []
    for path in run_dir.glob("checkpoint-*"):
        number = path.name.rpartition("-")[2]
        if number.isdigit() and (path / "trainer_state.json").exists() and (path / STATE).exists():
            found.append((int(number), path))
    return max(found)[1] if found else None


def load_rows(recipe: Recipe, tokenizer: Any) -> tuple[Task, Dataset]:
    """The task and its training rows as a data set with columns prompt, answer, solution, uid.

    Raises:
        ConfigError: unknown task, split or setting.
        DataError: no rows, or every prompt is longer than `[model] max_prompt_tokens`.
    """
    task = TASKS.build(recipe.task.name, **recipe.task.settings)
    rows: list[Row] = task.rows(recipe.task.split, recipe.task.limit)
    if not rows:
        raise DataError(f"Task {recipe.task.name!r} has no rows in split {recipe.task.split!r}.")
    limit = recipe.model.max_prompt_tokens
    if limit is not None:
        lengths = [
            len(tokenizer.apply_chat_template(row.prompt, add_generation_prompt=True, tokenize=True, return_dict=False))
            for row in rows
        ]
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
    columns = {
        "prompt": [row.prompt for row in rows],
        "answer": [row.answer for row in rows],
        "solution": [row.solution or "" for row in rows],
        "uid": [row.uid for row in rows],
    }
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
    args = build_args(recipe, run_dir)
    rank_zero = int(os.environ.get("RANK", "0")) == 0
    if rank_zero:
        prepare_folder(recipe, run_dir)
    model_dir = run_dir / "model"
    if (model_dir / "done.json").exists():
        console.print(f"Already trained: {model_dir}")
        return model_dir
    model, tokenizer = load_for_training(recipe.model.name_or_path, recipe.model.dtype, run_dir)
    task, dataset = load_rows(recipe, tokenizer)
    trainer = KillickTrainer(
        model=model,
        reward_funcs=VerifierReward(task.verifier),
        args=args,
        train_dataset=dataset,
        processing_class=tokenizer,
        peft_config=_lora(recipe),
    )
    trainer.remove_callback(PrinterCallback)  # the bar and train_log.jsonl say it better
    bar, interrupt = ProgressBar(console), SaveOnInterrupt(console)
    for callback in (TrainLog(run_dir / "train_log.jsonl"), bar, interrupt):
        trainer.add_callback(callback)
    checkpoint = last_checkpoint(run_dir)
    if checkpoint is not None:
        console.print(f"Resuming from {checkpoint}")
    try:
        with interrupt:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    finally:
        bar.close()
    if interrupt.interrupted and trainer.state.global_step < trainer.state.max_steps:
        console.print(f"Interrupted at step {trainer.state.global_step}; run the same command again to go on.")
        raise KeyboardInterrupt
    trainer.save_model(str(model_dir))
    if rank_zero:
        tokenizer.save_pretrained(model_dir)
        provenance.write_json(model_dir / "done.json", {"step": trainer.state.global_step, "recipe": recipe.hash()})
    return model_dir


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
