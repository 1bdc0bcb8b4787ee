"""The repair slot in TRL: who failed, whose turn it is, the plans, the two scorings, the added term.

All processes hold the same buffer (uids and steps only, gathered when a group fails), so they take the same decisions
and meet in the same collectives; each repairs its share of a batch, and one without a share goes through the same
passes with rows of weight 0. The term needs nothing but extra rows and a divisor.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl.trainer.utils import is_async_callable

from killick.engines.trl.plans import Plan, plans_for
from killick.engines.trl.references import Accepts, Reference, References
from killick.engines.trl.score import reference_logp
from killick.engines.trl.turns import TurnEncoder, check_template
from killick.errors import ConfigError, RecordError
from killick.maths.reduce import Stat
from killick.methods.failures import Failure, FailureBuffer
from killick.methods.plan import PlanWording, problem_of
from killick.methods.slots import RepairRule
from killick.methods.sort import Repair, RepairSettings, repair, repair_metrics

if TYPE_CHECKING:
    from killick.engines.trl.trainer import KillickTrainer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """The share of one process in a repair batch, ready for the training forward pass.

    Attributes:
        failures, references, plans: one a row.
        live_B: False for rows that only keep this process in step with the others.
        logp_plan_BR: with the plan in the prompt, nats, no graph; None when no plan is asked for.
        num_tokens: reference tokens of the whole batch, over all processes: the divisor.
        num_repaired: prompts of the whole batch.
    """

    failures: list[Failure]
    references: list[Reference]
    plans: list[Plan]
    live_B: Tensor
    logp_plan_BR: Tensor | None
    num_tokens: int
    num_repaired: int


class Repairer:
    """Collects failed groups of a trainer and gives the term that repairs them.

    Args:
        trainer: its tokenizer, generation path, forward pass, metrics and journal are used.
        rule: token weights.
        settings: what all rules share.
        wording: how a plan is asked for and shown.

    Raises:
        DataError: no usable reference in the training set, or a whole column is missing.
        ConfigError: the policy sees more than the text of a prompt, or rows lose their uid; the chat template cannot
            give the same reference tokens in both contexts; the batch is larger than the number of usable references,
            so that it could never be full.
    """

    def __init__(
        self, trainer: "KillickTrainer", rule: RepairRule, settings: RepairSettings, wording: PlanWording
    ) -> None:
        _check_host(trainer)
        self._trainer = trainer
        self.rule, self.settings, self.wording = rule, settings, wording
        self.buffer = FailureBuffer(settings.capacity)
        self.num_repaired = 0
        self._batch: Batch | None = None
        self._prepared_at: int | None = None  # optimiser step; a step has several micro-steps
        self._without_reference = 0
        self._encoder = TurnEncoder(
            trainer._tokenizer, tuple(trainer.eos_token_ids), trainer.chat_template, trainer.chat_template_kwargs
        )
        self.references = References.build(
            trainer.train_dataset,
            self._encoder,
            plan_column="plan" if settings.plan_source == "column" else None,
            max_tokens=settings.max_reference_tokens,
            accepts=_judge(trainer),
            guided=wording.guided if settings.plan_source != "none" else None,
        )
        if settings.plan_source != "none":
            example = self.references.example()
            check_template(self._encoder, example.prompt, wording.guided(example.prompt, "1"), example.text)
        if settings.batch_size > len(self.references):
            raise ConfigError(
                f"[method.repair] batch_size = {settings.batch_size}, but only {len(self.references)} prompts have a "
                f"usable reference ({self.references.counts}): the batch could never be full. Lower batch_size."
            )
        trainer.add_callback(_Watch(self))

    # ---- who failed -----------------------------------------------------------------------------------------------

    def collect(self, uids: list[str], failed: list[bool]) -> None:
        """Groups of one generation, in global order, the same on every process; those without reference are counted."""
        for uid, has_failed in zip(uids, failed, strict=True):
            if not has_failed:
                continue
            if self.references.get(uid) is None:
                self._without_reference += 1
            else:
                self.buffer.push(uid, self._trainer.state.global_step)

    # ---- once an optimiser step, before its first forward pass ----------------------------------------------------

    def prepare(self) -> None:
        """If enough prompts wait: take them, get their plans, score the references with the plans."""
        trainer, step = self._trainer, self._trainer.state.global_step
        if self._prepared_at == step:
            return
        self._prepared_at = step
        due = len(self.buffer) >= self.settings.batch_size
        self._batch = self._take() if due else None
        add = trainer._killick_sink.add_scalar
        add("sort/repaired_num", float(self._batch.num_repaired if self._batch else 0), True)
        add("sort/buffer_num", float(len(self.buffer)), True)
        add("sort/dropped_num", float(self.buffer.num_dropped), True)
        add("sort/no_reference_num", float(self._without_reference), True)

    def _take(self) -> Batch:
        failures = self.buffer.take(self.settings.batch_size)
        references = [self._reference(failure) for failure in failures]
        num_tokens = sum(len(reference.token_ids) for reference in references)
        processes, rank = self._trainer.accelerator.num_processes, self._trainer.accelerator.process_index
        each = -(-len(failures) // processes)
        mine = list(range(rank * each, min((rank + 1) * each, len(failures))))
        rows = mine + [0] * (each - len(mine))  # the oldest stands in where this process has fewer rows than others
        live_B = torch.arange(each, device=self._trainer.accelerator.device) < len(mine)
        started = time.perf_counter()
        own = [references[row] for row in rows]
        plans = plans_for(self._trainer, self.settings, self.wording, self._encoder, own)
        logp_plan_BR = self._score_with(own, plans) if self.settings.plan_source != "none" else None
        self._record_plans(plans, live_B, time.perf_counter() - started)
        return Batch([failures[row] for row in rows], own, plans, live_B, logp_plan_BR, num_tokens, len(failures))

    def _reference(self, failure: Failure) -> Reference:
        reference = self.references.get(failure.uid)
        assert reference is not None, "what enters the buffer, from a group or a checkpoint, has a reference"
        return reference

    def _score_with(self, references: list[Reference], plans: list[Plan]) -> Tensor:
        prompts = [
            self.wording.guided(reference.prompt, plan.text or "") if plan.usable else reference.prompt
            for reference, plan in zip(references, plans, strict=True)
        ]
        with torch.no_grad():
            return reference_logp(self._trainer, self._trainer.model, prompts, references)

    # ---- in the loss of the first slice ---------------------------------------------------------------------------

    def term(self, model: torch.nn.Module) -> Tensor | None:
        """λ · Σ ω·(−logp_base) / N, scaled for the mean that processes take of gradients; None when nothing is due."""
        batch, self._batch = self._batch, None
        if batch is None:
            return None
        started = time.perf_counter()
        logp_base_BR = reference_logp(self._trainer, model, [r.prompt for r in batch.references], batch.references)
        mask_BR = self._mask(batch, logp_base_BR.size(1))
        planned_B = torch.tensor([plan.usable for plan in batch.plans], device=mask_BR.device)
        done = repair(self.rule, logp_base_BR, batch.logp_plan_BR, planned_B, mask_BR, float(batch.num_tokens))
        self.num_repaired += batch.num_repaired
        self._trainer._killick_sink.add(repair_metrics(done, mask_BR), True)
        self._record_repairs(batch, done)
        self._trainer._killick_sink.add_scalar("time/repair_s", time.perf_counter() - started, True)
        return self.settings.coefficient * self._trainer.accelerator.num_processes * done.loss

    def _mask(self, batch: Batch, width: int) -> Tensor:
        lengths_B = torch.tensor([len(r.token_ids) for r in batch.references], device=batch.live_B.device)
        position = torch.arange(width, device=batch.live_B.device)
        return (position < lengths_B[:, None]) & batch.live_B[:, None]

    # ---- numbers and records --------------------------------------------------------------------------------------

    def _record_plans(self, plans: list[Plan], live_B: Tensor, seconds: float) -> None:
        sink = self._trainer._killick_sink
        sink.add_scalar("time/plan_s", seconds, True)
        if self.settings.plan_source == "none":
            return
        tokens = torch.tensor([float(plan.num_tokens) for plan in plans], device=live_B.device)
        unused = torch.tensor([float(not plan.usable) for plan in plans], device=live_B.device)
        live_1B = live_B[None]
        sink.add(
            {
                "sort/plan_tokens_mean": Stat.of(tokens[None], live_1B),
                "sort/plan_fallback_frac": Stat.of(unused[None], live_1B),
            },
            True,
        )

    def _record_repairs(self, batch: Batch, done: Repair) -> None:
        journal = self._trainer._killick_journal
        if journal is None:
            return
        p_base, p_plan = done.logp_base_BR.exp().tolist(), done.logp_plan_BR.exp().tolist()
        weight, live = done.weight_BR.tolist(), batch.live_B.tolist()
        decode = self._trainer._tokenizer.batch_decode
        records = []
        for row, reference in enumerate(batch.references):
            if not live[row]:
                continue
            num, plan = len(reference.token_ids), batch.plans[row]
            records.append({
                "step": self._trainer.state.global_step,
                "uid": reference.uid,
                "failed_at": batch.failures[row].step,
                "problem": problem_of(reference.prompt),
                "plan": plan.text,
                "fallback": plan.fallback,
                "tokens": decode([[token] for token in reference.token_ids]),
                **{
                    name: [float(f"{value:.4g}") for value in values[row][:num]]
                    for name, values in (("p_base", p_base), ("p_plan", p_plan), ("weight", weight))
                },
            })  # fmt: skip
        journal.add_repairs(gather_object(records))

    # ---- state ----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """JSON-able; between two optimiser steps no batch is under way."""
        return {
            "buffer": self.buffer.state_dict(),
            "num_repaired": self.num_repaired,
            "without_reference": self._without_reference,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore.

        Raises:
            RecordError: the state is damaged, or made with other data.
        """
        try:
            self.buffer.load_state_dict(state["buffer"])
            self.num_repaired, self._without_reference = int(state["num_repaired"]), int(state["without_reference"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"The state of the repair slot is damaged ({error!r}).") from error
        strange = [uid for uid, _ in self.buffer.state_dict()["entries"] if self.references.get(uid) is None]
        if strange:
            raise RecordError(
                f"{len(strange)} failed prompts of the checkpoint ({strange[0]!r}, …) have no usable reference in the "
                "training set: it belongs to other data. Use the data it was made with, or start in a new folder."
            )

    def forget_step(self) -> None:
        """A new call of `train` counts its steps anew; a batch that an error left behind belongs to none of them."""
        self._prepared_at, self._batch = None, None


class _Watch(TrainerCallback):
    """Begins with no step under way, and says at the end when nothing was ever repaired, and why."""

    def __init__(self, repairer: Repairer) -> None:
        self._repairer = repairer

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Forget the step of an earlier call."""
        self._repairer.forget_step()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Warn."""
        repairer = self._repairer
        if repairer.num_repaired == 0 and state.is_world_process_zero:
            logger.warning(
                "Nothing was repaired in %d steps: %d failed prompts wait, a batch takes %d; %d failed groups had no "
                "usable reference. Lower [method.repair] batch_size, train longer, or check the reference column.",
                state.global_step, len(repairer.buffer), repairer.settings.batch_size, repairer._without_reference,
            )  # fmt: skip


def _check_host(trainer: "KillickTrainer") -> None:
    """Refuse what would score references in another context than the policy sees, or lose the uids."""
    columns = getattr(trainer.train_dataset, "column_names", None) or []
    images = [name for name in ("image", "images") if name in columns]
    if images:
        raise ConfigError(
            f"A repair reads text only, but the training data has the column {images[0]!r}: references would be scored "
            "without the picture. Remove the column, or set repair='none'."
        )
    if trainer.environment_factories is not None:
        raise ConfigError(
            "A repair scores references after the prompt of the data set, but an environment writes its own. Train "
            "without environment_factory, or set repair='none'."
        )
    if trainer.args.remove_unused_columns:
        raise ConfigError(
            "A repair finds the reference by the row's uid, which remove_unused_columns=True takes out of the batch. "
            "Leave it at False."
        )


def _judge(trainer: "KillickTrainer") -> Accepts | None:
    """Which references the correctness reward accepts; None when it cannot be asked about them.

    The first process asks and tells the others: a verifier is slow, and with verdicts of their own (one may run out of
    time) they would repair different prompts.
    """
    function = trainer.reward_funcs[trainer._killick_correctness]
    if isinstance(function, torch.nn.Module) or is_async_callable(function):
        return None
    refused = False

    def accepts(rows: list[dict[str, Any]]) -> list[bool]:
        nonlocal refused
        asks = trainer.accelerator.is_main_process and not refused
        verdicts = broadcast_object_list([_asked(function, rows) if asks else None])[0]
        refused = verdicts is None
        return [True] * len(rows) if verdicts is None else verdicts

    return accepts


def _asked(function: Callable[..., Any], rows: list[dict[str, Any]]) -> list[bool] | None:
    """Whether a reward function gives each row's reference more than 0; None where it cannot be asked."""
    completions = [
        row["solution"] if isinstance(row["prompt"], str) else [{"role": "assistant", "content": row["solution"]}]
        for row in rows
    ]
    columns = {f"{key}s" if key == "prompt" else key: [row[key] for row in rows] for key in rows[0]}
    try:
        rewards = function(completions=completions, completion_ids=[[] for _ in rows], **columns)
        return [reward is not None and reward > 0 for reward, _ in zip(rewards, rows, strict=True)]
    except Exception as error:  # a user's function may need what only a training step has
        logger.warning("The reward cannot be asked about references (%r): they are taken as they are.", error)
        return None
