"""KL terms that TRL has no slot for (`k2_loss`, `forward_exact`), reduced exactly as TRL reduces its own KL term."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from trl.trainer.utils import use_adapter

from killick.engines.trl import names
from killick.errors import ConfigError
from killick.maths import aggregate, forward_exact, window_tokens
from killick.methods.sage import ShapedAnchor

if TYPE_CHECKING:
    from killick.engines.trl.trainer import KillickTrainer


def per_token_term(
    trainer: "KillickTrainer", model: torch.nn.Module, batch: dict[str, Any], logp: Tensor, shaped: ShapedAnchor
) -> Tensor | None:
    """What this `kl_form` adds outside TRL's loss, nats per token, [B, T], with gradient; None if it adds nothing."""
    if trainer._killick_shaper.kl_form == "forward_exact":
        return _exact_forward_kl(trainer, model, batch)
    return trainer._killick_shaper.extra_per_token(logp, shaped, names.loss_mask(batch))


def _exact_forward_kl(trainer: "KillickTrainer", model: torch.nn.Module, batch: dict[str, Any]) -> Tensor:
    """Σ_v π_ref log(π_ref/π) at each visited state, [B, T]. Costs one more forward of each model, with full logits."""
    if "pixel_values" in batch:
        raise ConfigError("kl_form='forward_exact' reads text only, but the batch holds images. Use another kl_form.")
    with torch.no_grad(), _reference(trainer) as reference:
        logits_ref_BTV = _logits(trainer, reference, batch)
    return forward_exact(_logits(trainer, model, batch), logits_ref_BTV, names.loss_mask(batch))


@contextmanager
def _reference(trainer: "KillickTrainer") -> Iterator[torch.nn.Module]:
    """The reference model; with PEFT, the policy with its adapter off (or with the adapter TRL keeps as reference)."""
    if trainer.ref_model is not None:
        yield trainer.ref_model
        return
    model = trainer.accelerator.unwrap_model(trainer.model)
    with use_adapter(model, adapter_name="ref" if "ref" in model.peft_config else None):
        yield model


def _logits(trainer: "KillickTrainer", model: torch.nn.Module, batch: dict[str, Any]) -> Tensor:
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    length = batch["completion_ids"].size(1)
    with trainer.accelerator.autocast():
        out = model(input_ids=ids, attention_mask=attention, logits_to_keep=length + 1)
    return out.logits[:, -length - 1 : -1] / trainer.temperature


def reduce_term(trainer: "KillickTrainer", batch: dict[str, Any], per_token: Tensor) -> Tensor:
    """A per-token term [B, T] to the scalar that TRL's `loss_type` would make of it in this micro-batch."""
    accumulation = trainer.current_gradient_accumulation_steps
    if trainer.model.training:
        num_items = window_tokens(
            batch[names.NUM_ITEMS].float(),
            trainer.accelerator.num_processes,
            accumulation,
            trainer.args.steps_per_generation,
        )
    else:  # in evaluation the batch is neither split nor accumulated
        accumulation = 1
        num_items = window_tokens(batch[names.NUM_ITEMS].float(), trainer.accelerator.num_processes, 1, 1)
    return aggregate(
        per_token,
        names.loss_mask(batch),
        trainer.loss_type,
        max_completion_length=trainer.max_completion_length,
        num_items=num_items,
        accumulation=accumulation,
    )
