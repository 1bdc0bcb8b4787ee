"""Log-probabilities of given texts under the policy, through the host's own forward pass."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from trl.trainer.utils import pad, selective_log_softmax

from killick.engines.trl.references import Reference

if TYPE_CHECKING:
    from killick.engines.trl.trainer import KillickTrainer


def reference_logp(
    trainer: "KillickTrainer", model: torch.nn.Module, prompts: list[Any], references: list[Reference]
) -> Tensor:
    """Log-probabilities of the reference tokens after these prompts, at temperature 1, nats, [B, R].

    Prompts are padded to the left and references to the right, as rollouts are; padded positions hold anything. More
    rows than a training slice has (`per_device_train_batch_size`) go through the model slice by slice, and a backward
    pass makes each slice's activations again, so that no more than one slice of them is ever held.
    """
    prompt_ids, _, _ = trainer._tokenize_prompts(prompts)
    left = [torch.tensor(ids) for ids in prompt_ids]
    right = [torch.tensor(reference.token_ids) for reference in references]
    targets_BR = _padded(trainer, right, "right", trainer._tokenizer.pad_token_id)
    ids = torch.cat([_padded(trainer, left, "left", trainer._tokenizer.pad_token_id), targets_BR], dim=1)
    attention = torch.cat(
        [
            _padded(trainer, [torch.ones_like(row) for row in side], place, 0)
            for side, place in ((left, "left"), (right, "right"))
        ],
        dim=1,
    )
    rows = trainer.args.per_device_train_batch_size
    if ids.size(0) <= rows:
        return _logp(trainer, model, ids, attention, targets_BR.size(1))
    # DDP's own forward prepares a backward pass, so it must not run within one. Its module has the same parameters, and
    # the hooks that average gradients hang on those.
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    slices = zip(ids.split(rows), attention.split(rows), strict=True)
    parts = [checkpoint(_logp, trainer, inner, *part, targets_BR.size(1), use_reentrant=False) for part in slices]
    return torch.cat(parts)


def _padded(trainer: "KillickTrainer", rows: list[Tensor], side: str, value: int) -> Tensor:
    padded: Tensor = pad(rows, padding_value=value, padding_side=side, pad_to_multiple_of=trainer.pad_to_multiple_of)
    return padded.to(trainer.accelerator.device)


def _logp(
    trainer: "KillickTrainer", model: torch.nn.Module, ids: Tensor, attention: Tensor, num_targets: int
) -> Tensor:
    """Log-probabilities of the last `num_targets` tokens, at temperature 1, nats.

    TRL's own forward pass divides by the sampling temperature; a reference was not sampled, so at another temperature
    the logits are taken as they are.
    """
    if trainer.temperature == 1.0:
        logp, _, _ = trainer._get_per_token_logps_and_entropies(model, ids, attention, num_targets)
        return logp
    with trainer.accelerator.autocast():
        logits = model(input_ids=ids, attention_mask=attention, logits_to_keep=num_targets + 1).logits
    return selective_log_softmax(logits[:, -num_targets - 1 : -1].float(), ids[:, -num_targets:])
