"""TRL's keys for one slice of rollouts, and ours."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from killick.methods.slots import RolloutView

ADVANTAGES = "advantages"
LOGP_REF = "ref_per_token_logps"
NUM_ITEMS = "num_items_in_batch"
NOISE_PREFIX = "killick_noise_"


def loss_mask(batch: Mapping[str, Any]) -> Tensor:
    """True on completion tokens that count in the loss, bool, [B, T] (tool outputs are excluded)."""
    mask = batch["completion_mask"]
    if "tool_mask" in batch:
        mask = mask * batch["tool_mask"]
    return mask.bool()


def rollout_view(
    batch: Mapping[str, Any],
    logp: Tensor,
    entropy: Tensor,
    step: int,
    num_steps: int,
    gather: Callable[[Tensor], Tensor],
) -> RolloutView:
    """One slice of TRL's buffered rollouts plus the step's own log-probs and entropies, detached, [B, T]."""
    noise = {key[len(NOISE_PREFIX) :]: value for key, value in batch.items() if key.startswith(NOISE_PREFIX)}
    return RolloutView(
        logp=logp.detach(),
        entropy=entropy.detach(),
        mask=loss_mask(batch),
        logp_ref=batch.get(LOGP_REF),
        step=step,
        num_steps=num_steps,
        noise=noise,
        gather=gather,
    )
