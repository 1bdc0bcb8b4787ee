"""Plans for reference solutions: written by the current policy through the host's own generation path, or given."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from killick.engines.trl.references import Reference
from killick.engines.trl.turns import TurnEncoder
from killick.methods.plan import PlanWording
from killick.methods.sort import RepairSettings

if TYPE_CHECKING:
    from killick.engines.trl.trainer import KillickTrainer


@dataclass(frozen=True)
class Plan:
    """A plan and, if it is not used, why: "empty", "control_tokens", "truncated" (not ended in time), "too_long"."""

    text: str | None
    num_tokens: int = 0
    fallback: str | None = None

    @property
    def usable(self) -> bool:
        """Whether the reference is scored with it."""
        return self.text is not None and self.fallback is None


def plans_for(
    trainer: "KillickTrainer",
    settings: RepairSettings,
    wording: PlanWording,
    encoder: TurnEncoder,
    references: list[Reference],
) -> list[Plan]:
    """One plan a reference, all generated together; every process must call this with equally many."""
    if settings.plan_source == "none":
        return [Plan(None)] * len(references)
    if settings.plan_source == "column":
        ids = trainer._tokenizer([r.plan or "" for r in references], add_special_tokens=False)["input_ids"]
        return [
            _given(r.plan, len(tokens), settings.max_plan_tokens) for r, tokens in zip(references, ids, strict=True)
        ]
    asked = [wording.ask(reference.prompt, reference.text) for reference in references]
    prompt_ids, _, _ = trainer._tokenize_prompts(asked)
    with _plan_sampling(trainer, settings):
        answers, _ = trainer._generate_single_turn(prompt_ids, None, {}, 1)
    return [_written(encoder, ids) for ids in answers]


def _given(text: str | None, num_tokens: int, limit: int) -> Plan:
    if text is None or not text.strip():
        return Plan(None, 0, "empty")
    return Plan(text, num_tokens, "too_long" if num_tokens > limit else None)


def _written(encoder: TurnEncoder, ids: list[int]) -> Plan:
    text = encoder.tokenizer.decode(ids, skip_special_tokens=True).strip()
    if not text:
        return Plan(None, len(ids), "empty")
    if encoder.control_token(text) is not None:  # spelled out in ordinary tokens, it would forge a turn in the prompt
        return Plan(text, len(ids), "control_tokens")
    ended = bool(ids) and ids[-1] in encoder.eos_ids
    return Plan(text, len(ids), None if ended else "truncated")


@contextmanager
def _plan_sampling(trainer: "KillickTrainer", settings: RepairSettings) -> Iterator[None]:
    """The trainer's generation path with the length and temperature of a plan, and no truncated sampling."""
    if trainer.use_vllm:
        holder: Any = trainer.vllm_generation
        wanted: dict[str, Any] = {
            "temperature": settings.plan_temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "structured_outputs_regex": None,  # the form of an answer is not that of a plan
            "max_completion_length": settings.max_plan_tokens,
        }
    else:
        holder, wanted = trainer, {"generation_config": _generation_config(trainer, settings)}
    before = {key: getattr(holder, key) for key in wanted}
    try:
        for key, value in wanted.items():
            setattr(holder, key, value)
        yield
    finally:
        for key, value in before.items():
            setattr(holder, key, value)


def _generation_config(trainer: "KillickTrainer", settings: RepairSettings) -> Any:
    config = deepcopy(trainer.generation_config)
    config.max_new_tokens = settings.max_plan_tokens
    config.do_sample = settings.plan_temperature > 0.0
    config.temperature = settings.plan_temperature or 1.0
    # When sampling, None would mean what the model's own generation_config.json says (or 50), not "off".
    off: tuple[int | None, float | None] = (0, 0.0) if config.do_sample else (None, None)
    config.top_p, (config.top_k, config.min_p) = 1.0, off
    return config
