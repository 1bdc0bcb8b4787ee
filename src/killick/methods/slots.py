"""The slots of a method and what each may see. An engine fills a view, calls the component, and knows nothing else.

Axes as in `killick.maths`: P prompts, G completions a prompt, B rows, T completion positions, R reference positions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor


def _same(values: Tensor) -> Tensor:
    return values


@dataclass(frozen=True)
class RolloutView:
    """One slice of rollouts as the training step already made sees it; no tensor here costs a forward pass.

    Attributes:
        logp: log-probability of the taken token under the current policy, nats, [B, T]; detached.
        entropy: full-vocabulary entropy of the current policy at that position, nats, [B, T]; detached.
        mask: True where the token counts in the loss, [B, T].
        logp_ref: the same token under the reference policy, nats, [B, T], or None when there is no reference.
        step: optimiser steps finished so far.
        num_steps: optimiser steps of the whole run.
        noise: name ("normal", "uniform") -> [B, T], drawn once a rollout, shuffled and split with its row.
        gather: concatenates a one-dimensional tensor over all processes (identity in one process).
    """

    logp: Float[Tensor, "B T"]
    entropy: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    logp_ref: Float[Tensor, "B T"] | None
    step: int
    num_steps: int
    noise: Mapping[str, Tensor] = field(default_factory=dict)
    gather: Callable[[Tensor], Tensor] = _same


@runtime_checkable
class Guide(Protocol):
    """Where the anchor is widened or narrowed: q(x, y_t) > 0 from intrinsic signals.

    A frozen dataclass whose fields are its settings. `q_min`, `q_max` bound q; clamping, detaching, masking and
    the logarithm are done once, in `killick.methods.sage`. Two class attributes are optional: `reads_token` (True if
    it is not there) and `reads_later` (True), see `killick.methods.guides.base.BoundedGuide`.
    """

    @property
    def needs_noise(self) -> frozenset[str]:
        """Names of the noise the engine must draw once per rollout, of "normal" and "uniform"."""

    @property
    def q_min(self) -> float:
        """Lower bound of q, > 0."""

    @property
    def q_max(self) -> float:
        """Upper bound of q."""

    def __call__(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """Return q before clamping, float32, [B, T]; values at masked positions are ignored."""
        ...


@dataclass(frozen=True)
class GroupOutcome:
    """The verdicts of one prompt's G completions.

    Attributes:
        correct_G: 1.0 right, 0.0 wrong, NaN unscorable (which is not "wrong").
    """

    uid: str
    correct_G: Float[Tensor, " G"]


@runtime_checkable
class RepairRule(Protocol):
    """How strongly each token of the reference solution of a failed group is learnt: L = Σ w·(−logp_base) / tokens.

    A frozen dataclass whose fields are its settings; the weights themselves are in `killick.maths.token_weight`.
    """

    @property
    def needs_plan(self) -> bool:
        """Whether `logp_plan_BR` is read. False saves the engine writing a plan and scoring under it."""

    def __call__(
        self, logp_base_BR: Float[Tensor, "B R"], logp_plan_BR: Float[Tensor, "B R"], mask_BR: Bool[Tensor, "B R"]
    ) -> Float[Tensor, "B R"]:
        """Weigh the reference tokens.

        Args:
            logp_base_BR: under the current policy given the prompt alone, nats; may carry a gradient.
            logp_plan_BR: the same tokens and policy with the plan in the prompt, nats. Rows without a plan (none asked
                for, or none usable) hold `logp_base_BR`.
            mask_BR: True on reference tokens; anything may lie elsewhere.

        Returns:
            weights in [0, ∞), detached, float32 or wider, 0 where masked.
        """
        ...


class GroupEditor(Protocol):
    """Replaces or drops members of a group before advantages are taken (nothing is registered yet)."""

    def __call__(self, outcomes: list[GroupOutcome]) -> list[GroupOutcome]:
        """Return the edited groups."""
        ...


class AdvantageRule(Protocol):
    """Turns rewards of P groups of G into advantages (nothing is registered yet; TRL's `scale_rewards` rules)."""

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        """Return one advantage per completion, 0 where the reward is NaN."""
        ...
