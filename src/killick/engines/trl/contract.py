"""What killick relies on in TRL, as checks that need no model. Run by the contract tests and by `killick doctor`."""

import inspect
from collections.abc import Callable

import trl
from trl import GRPOConfig, GRPOTrainer

_LOSS = "_compute_loss"
_SEAM = "_get_per_token_logps_and_entropies"

OVERRIDES = frozenset({
    _LOSS, _SEAM, "_generate_and_score_completions", "_calculate_rewards", "_prepare_inputs", "_save_checkpoint",
    "_load_optimizer_and_scheduler", "log", "_tag_names",
})  # fmt: skip
"""Names of the host that `KillickTrainer` replaces on purpose. Whatever else is ours starts with `_killick_`."""


def _source(name: str) -> str:
    return inspect.getsource(inspect.unwrap(getattr(GRPOTrainer, name)))


CALLS = frozenset({"_tokenize_prompts", "_generate_single_turn"})
"""Names of the host that a repair calls: its own way to render prompts and to sample."""


def _has_methods() -> str | None:
    missing = [name for name in sorted(OVERRIDES | CALLS) if not hasattr(GRPOTrainer, name)]
    return f"GRPOTrainer lacks {', '.join(missing)}" if missing else None


def _has_settings() -> str | None:
    wanted = ("beta", "use_bias_correction_kl", "loss_type", "num_iterations", "steps_per_generation", "scale_rewards")
    missing = [name for name in wanted if name not in GRPOConfig.__dataclass_fields__]
    return f"GRPOConfig lacks {', '.join(missing)}" if missing else None


def _seam_before_reads() -> str | None:
    source = _source(_LOSS)
    if source.count(f"self.{_SEAM}(") != 1:
        return f"{_LOSS} no longer calls {_SEAM} exactly once"
    seam = source.index(f"self.{_SEAM}(")
    early = [k for k in ('inputs["advantages"]', 'inputs["ref_per_token_logps"]') if source.find(k) < seam]
    return f"{_LOSS} reads {', '.join(early)} before the seam, or not at all" if early else None


def _three_values() -> str | None:
    return None if "return logps, entropies, aux_loss" in _source(_SEAM) else f"{_SEAM} no longer returns three values"


def _reads_beta_from_self() -> str | None:
    return None if "self.beta != 0.0" in _source(_LOSS) else f"{_LOSS} no longer reads self.beta at call time"


def _buffers_rollouts() -> str | None:
    source = _source("_prepare_inputs")
    wanted = ("self._buffered_inputs", "self._step % generate_every")
    missing = [w for w in wanted if w not in source]
    return f"_prepare_inputs no longer uses {', '.join(missing)}" if missing else None


def _generates_from_token_ids() -> str | None:
    names = list(inspect.signature(inspect.unwrap(GRPOTrainer._generate_single_turn)).parameters)[1:5]
    if names != ["prompt_ids", "images", "multimodal_fields", "num_generations"]:
        return f"_generate_single_turn takes {', '.join(names)}"
    source = _source("_generate_single_turn")
    wanted = ("return completion_ids, logprobs", "generation_config=self.generation_config", "self.vllm_generation.")
    missing = [w for w in wanted if w not in source]
    return f"_generate_single_turn no longer holds {', '.join(missing)}" if missing else None


def _vllm_reads_settings_at_call_time() -> str | None:
    from trl.generation.vllm_generation import VLLMGeneration

    source = inspect.getsource(VLLMGeneration.generate)
    own = ("temperature", "top_p", "top_k", "min_p", "structured_outputs_regex", "max_completion_length")
    missing = [name for name in own if f"self.{name}" not in source]
    return f"VLLMGeneration.generate no longer reads {', '.join(missing)}" if missing else None


def _does_not_scale_the_loss() -> str | None:
    # The term of a repair is added once an optimiser step, so nothing may divide it by the accumulated slices.
    scaled = getattr(GRPOTrainer, "loss_is_scaled_for_ga", None)
    return None if scaled is True else f"loss_is_scaled_for_ga is {scaled}: the host divides what _compute_loss returns"


def _no_shadowing() -> str | None:
    from killick.engines.trl.trainer import KillickTrainer

    plain = {name for name in vars(KillickTrainer) if not name.startswith(("__", "_killick_"))} - OVERRIDES
    shadowing = sorted(plain & set(dir(GRPOTrainer)))
    if shadowing:
        return f"KillickTrainer replaces {', '.join(shadowing)} of the host without listing it in contract.OVERRIDES"
    # Not the host's today; the next TRL may use the name, as an attribute that only its instances have it may already.
    return f"names of KillickTrainer without the prefix _killick_: {', '.join(sorted(plain))}" if plain else None


CHECKS: dict[str, Callable[[], str | None]] = {
    "what the trainer overrides or calls": _has_methods,
    "settings that kl_form depends on": _has_settings,
    "the loss reads advantages and reference after the seam": _seam_before_reads,
    "the seam returns log-probs, entropies, auxiliary loss": _three_values,
    "beta is read from the trainer at call time": _reads_beta_from_self,
    "rollouts are buffered by micro-step": _buffers_rollouts,
    "generation starts from token ids and reads its settings at call time": _generates_from_token_ids,
    "vLLM's temperature and length are read at call time": _vllm_reads_settings_at_call_time,
    "the loss is taken as it is returned": _does_not_scale_the_loss,
    "no name of ours shadows the host's by accident": _no_shadowing,
}


def check_contract() -> dict[str, str | None]:
    """Check name -> None when it holds, else what changed in the installed TRL."""
    results: dict[str, str | None] = {}
    for name, check in CHECKS.items():
        try:
            results[name] = check()
        except Exception as error:  # a moved method must become a finding, not a crash of the doctor
            results[name] = f"cannot be checked on trl {trl.__version__}: {error!r}"
    return results
