"""`KillickTrainer`: stock `GRPOTrainer` with an anchor slot and a repair slot.

The seam: TRL's `_compute_loss` calls `_get_per_token_logps_and_entropies` once and only afterwards reads advantages and
reference log-probs from the slice it was given. So a copy of the slice is handed in, and shaped right after that call.
No loss code is copied. A repair adds its own term to what the host returns, so one backward pass serves both.
Attributes of ours start with `_killick_`: a plain name could shadow one of the host's.
"""

import hashlib
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from trl import GRPOTrainer

from killick.engines.trl import checkpoint, names, terms
from killick.engines.trl.journal import Journal
from killick.engines.trl.metrics import MetricSink
from killick.engines.trl.references import uid_of
from killick.engines.trl.repair import Repairer
from killick.engines.trl.settings import KillickConfig
from killick.errors import ConfigError
from killick.methods.plan import PlanWording, TextWording
from killick.methods.sage import AnchorShaper
from killick.methods.slots import Guide


class KillickTrainer(GRPOTrainer):
    """`GRPOTrainer` with two slots: an anchor shaped to q·π_ref, and repairs of prompts whose whole group failed.

    Args:
        model, reward_funcs, args, ...: as for `trl.GRPOTrainer`; `args` must be a `KillickConfig`.
        guide: a guide object to use instead of the one named in `args` (e.g. one not registered anywhere).
        plan_wording: how a plan is asked for and shown; English text by default.
        journal: folder for `groups.jsonl` and `repairs.jsonl`, the records that reports are made of; None writes none.

    With `args.repair` the training set needs the column `solution` (and should have `uid`).

    Raises:
        ConfigError: `args` is not a `KillickConfig`, or its slots cannot work as set.
        DataError: a repair rule is set, but the training set holds no usable reference solution.
    """

    _tag_names = ["trl", "grpo", "killick"]
    beta: float

    def __init__(
        self,
        *args: Any,
        guide: Guide | None = None,
        plan_wording: PlanWording | None = None,
        journal: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        config = kwargs.get("args", args[2] if len(args) > 2 else None)
        if not isinstance(config, KillickConfig):
            raise ConfigError(
                f"KillickTrainer needs args=KillickConfig(...), got {type(config).__name__}. Replace GRPOConfig by "
                "KillickConfig and say kl_form (for example kl_form='k3_loss')."
            )
        if guide is not None and config.guide is not None:
            raise ConfigError(
                f"Two guides: the object {type(guide).__name__} and args.guide={config.guide!r}. Give one of them."
            )
        self._killick_shaper = AnchorShaper(
            guide=guide if guide is not None else config.build_guide(), kl_form=str(config.kl_form), beta=config.beta
        )
        self._killick_form = self._killick_shaper.form
        self._killick_slice: dict[str, Any] | None = None
        self._killick_term: Tensor | None = None
        self._killick_draws = (-1, 0)  # evaluation: optimiser step, batches drawn at it
        super().__init__(*args, **kwargs)
        self._killick_sink = MetricSink(self._metrics, self.accelerator)
        self._killick_correctness = self._killick_correctness_index()
        self._killick_correct: Tensor | None = None  # [P, G], of the last generation
        self._killick_journal = None if journal is None else Journal(Path(journal))
        if self._killick_journal is not None:
            self.add_callback(self._killick_journal)
        repair = config.build_repair()
        self._killick_repairer = None if repair is None else Repairer(self, *repair, plan_wording or TextWording())

    # ---- rollouts -------------------------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        output.update(self._killick_noise(output["completion_ids"]))
        if self.model.training and (self._killick_repairer is not None or self._killick_journal is not None):
            self._killick_note_groups(inputs)
        return output

    def _killick_note_groups(self, inputs: list[dict[str, Any]]) -> None:
        """What became of each group: failed ones to the repair slot, all of them to the journal."""
        correct_PG = self._killick_correct
        assert correct_PG is not None, "the host scores before it returns"
        # A group may straddle processes; the one that holds its first row names it.
        group, first = correct_PG.size(1), self.accelerator.process_index * len(inputs)
        uids = gather_object([uid_of(row) for place, row in enumerate(inputs, start=first) if place % group == 0])
        if self._killick_repairer is not None:
            self._killick_repairer.collect(uids, (correct_PG <= 0).all(dim=1).tolist())  # NaN is not "wrong"
        if self._killick_journal is not None:
            num_right, scored = (correct_PG > 0).sum(dim=1).tolist(), (~correct_PG.isnan()).all(dim=1).tolist()
            self._killick_journal.add_groups(
                {"step": self.state.global_step, "uid": uid, "num_right": right, "num_rows": group}
                for uid, right, whole in zip(uids, num_right, scored, strict=True)
                if whole
            )

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        inputs = super()._prepare_inputs(generation_batch)
        if self._killick_repairer is not None and self.model.training:
            self._killick_repairer.prepare()
        return inputs

    def _killick_noise(self, completion_ids: Tensor) -> dict[str, Tensor]:
        """Noise [B, T] a guide asks for, drawn once a rollout; a function of (seed, which generation, global row)."""
        guide = self._killick_shaper.guide
        if guide is None or not guide.needs_noise:
            return {}
        rows, length = completion_ids.shape
        first = self.accelerator.process_index * rows
        width = max(length, self.max_completion_length or 0)  # fixed, so that a row's noise ignores the padding
        total = self.accelerator.num_processes * rows
        generation = self._killick_generation()
        noise = {}
        for index, (kind, draw) in enumerate((("normal", torch.randn), ("uniform", torch.rand))):
            if kind in guide.needs_noise:
                key = f"{self.args.seed} {generation} {index}".encode()
                generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1)
                values = draw((total, width), generator=generator)[first : first + rows, :length]
                noise[names.NOISE_PREFIX + kind] = values.to(completion_ids.device)
        return noise

    def _killick_generation(self) -> str:
        """Names a generation: several may fall into one optimiser step, and into one evaluation."""
        step = self.state.global_step
        if self.model.training:
            return f"train {step} {self._step % self.current_gradient_accumulation_steps}"
        count = self._killick_draws[1] + 1 if self._killick_draws[0] == step else 0
        self._killick_draws = (step, count)
        return f"eval {step} {count}"

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids_list: list[Any]
    ) -> Tensor:
        rewards_BF = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        train = self.model.training
        correct_PG = rewards_BF[:, self._killick_correctness].view(
            -1, self.num_generations if train else self.num_generations_eval
        )
        self._killick_correct = correct_PG
        # NaN compares false both ways: a group with an unscorable row is neither all wrong nor all right.
        self._killick_sink.add_scalar("group/all_wrong_frac", (correct_PG <= 0).all(dim=1).float().mean(), train)
        self._killick_sink.add_scalar("group/all_right_frac", (correct_PG >= 1).all(dim=1).float().mean(), train)
        return rewards_BF

    def _killick_correctness_index(self) -> int:
        name = self.args.correctness_reward
        if name is None:
            return 0
        if name not in self.reward_func_names:
            raise ConfigError(
                f"correctness_reward={name!r} is not a reward function. Found: {', '.join(self.reward_func_names)}."
            )
        return self.reward_func_names.index(name)

    # ---- the seam -------------------------------------------------------------------------------------------------

    def _compute_loss(self, model: torch.nn.Module, inputs: dict[str, Any]) -> Tensor:
        self._killick_slice = work = dict(inputs)  # a copy: TRL uses the buffered slice again when num_iterations > 1
        self._killick_term = None
        beta, train = self.beta, self.model.training
        if not self._killick_form.host_kl:
            self.beta = 0.0  # the anchor acts through the advantages or a term of ours; TRL must not add its own
        try:
            loss = super()._compute_loss(model, work)
        finally:
            self._killick_slice = None
            self.beta = beta
        if self._killick_term is not None:
            term, self._killick_term = self._killick_term, None
            loss = loss + beta * term
        repair = self._killick_repairer.term(model) if self._killick_repairer is not None and train else None
        return loss if repair is None else loss + repair

    def _get_per_token_logps_and_entropies(self, model: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        out = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        if self._killick_slice is not None:  # None while sampling and reference log-probs are computed
            self._killick_shape(model, logp=out[0], entropy=out[1])
        return out

    def _killick_shape(self, model: torch.nn.Module, logp: Tensor, entropy: Tensor) -> None:
        """Write the shaped anchor into the working slice, by `kl_form`."""
        work = self._killick_slice
        if work is None or not self._killick_form.needs_reference:
            return
        view = names.rollout_view(
            work, logp, entropy, self.state.global_step, self._killick_num_steps(), self._killick_gather
        )
        shaped = self._killick_shaper.shape(view)
        if self._killick_form.host_kl:
            work[names.LOGP_REF] = shaped.logp_ref
        if shaped.penalty_to_go is not None:
            advantages = work[names.ADVANTAGES]
            advantages = advantages.unsqueeze(1) if advantages.dim() == 1 else advantages
            work[names.ADVANTAGES] = advantages - shaped.penalty_to_go
        per_token = terms.per_token_term(self, model, work, logp, shaped)
        if per_token is not None:
            self._killick_term = terms.reduce_term(self, work, per_token)
        self._killick_sink.add(self._killick_shaper.metrics(view, shaped), self.model.training)

    def _killick_num_steps(self) -> int:
        """Optimiser steps of the run; before `train` (an evaluation of the start) what the settings say, at least 1."""
        return max(self.state.max_steps, self.args.max_steps, 1)

    def _killick_gather(self, values: Tensor) -> Tensor:
        """One-dimensional values of all processes; lengths may differ, NaN fills up (and means masked anyway)."""
        return self.accelerator.gather(self.accelerator.pad_across_processes(values, pad_index=float("nan")))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """As the host's; first the numbers of ours since the last call, over all slices and processes."""
        train = self.model.training
        for name, number in self._killick_sink.flush(train).items():
            self._metrics["train" if train else "eval"][name].append(number)
        super().log(logs, start_time)

    # ---- state ----------------------------------------------------------------------------------------------------

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:
        checkpoint.save(
            self, trial
        )  # all ranks first: the host writes trainer_state.json last, which marks a whole checkpoint
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, checkpoint_dir: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint_dir)
        if checkpoint_dir is not None:
            checkpoint.load(self, checkpoint_dir)
