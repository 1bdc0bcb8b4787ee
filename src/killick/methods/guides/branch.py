"""`branch`: widen the anchor where the policy is undecided."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from killick.maths.reduce import masked_quantile
from killick.methods.guides.base import BoundedGuide, require
from killick.methods.slots import RolloutView

TAU = 1.2


@dataclass(frozen=True, kw_only=True)
class BranchGuide(BoundedGuide):
    """q_t = 1 + γ·max(H_t − τ, 0), H_t the current policy's full-vocabulary entropy.

    q depends on the state and not on the token taken there. Hence it does not shift the anchor of a state; it scales
    the forward-KL pull under `k3_loss`, is a bonus β·Σ log q for reaching undecided states under `k1_reward_to_go`, and
    cancels in expectation under `k2_loss` and `k3_ratio`.

    Attributes:
        gamma: growth of q per nat of entropy above the threshold, >= 0. 0.3 [shipped].
        tau: threshold, nats, >= 0; 1.2 [shipped], taken when `tau_quantile` is not given either.
        tau_quantile: instead of `tau`: the threshold is this quantile, in [0, 1], of the unmasked entropies of the
            slice over all processes. Entropies of small and large vocabularies are not comparable, quantiles are.

    Raises:
        ConfigError: a setting out of range, or both thresholds given.

    Source: SAGE, branch-level guide [paper]; the quantile is ours.
    """

    reads_token: ClassVar[bool] = False
    reads_later: ClassVar[bool] = False

    gamma: float = 0.3
    tau: float | None = None
    tau_quantile: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.gamma >= 0.0, self, "gamma must be >= 0 (0 gives q = 1 everywhere)")
        require(
            self.tau is None or self.tau_quantile is None,
            self,
            "tau (nats) and tau_quantile (share of the batch) are two ways to set one threshold; give one of them",
        )
        if self.tau is None and self.tau_quantile is None:
            object.__setattr__(self, "tau", TAU)  # so that repr and saved recipes show the value in force
        require(self.tau is None or self.tau >= 0.0, self, "tau must be >= 0 nats")
        require(self.tau_quantile is None or 0.0 <= self.tau_quantile <= 1.0, self, "tau_quantile must be in [0, 1]")

    def __call__(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """Return q before clamping, float32; reads `entropy`, and `gather` with `tau_quantile`."""
        entropy = view.entropy.float()
        return 1.0 + self.gamma * (entropy - self._threshold(view)).clamp(min=0.0)

    def _threshold(self, view: RolloutView) -> Tensor | float:
        if self.tau_quantile is None:
            assert self.tau is not None, "__post_init__ leaves exactly one threshold"
            return self.tau
        # NaN marks what does not count, so the length sent is that of the slice and no size has to be read back. A
        # gather that pads ragged slices with NaN is right too.
        sent = torch.where(view.mask, view.entropy.float(), torch.nan).flatten()
        pool_1N = view.gather(sent).unsqueeze(0)
        return masked_quantile(pool_1N, ~pool_1N.isnan(), self.tau_quantile)
