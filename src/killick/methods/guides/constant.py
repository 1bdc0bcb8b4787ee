"""`constant`: the control. With c = 1 a run must equal its host exactly."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from killick.methods.guides.base import BoundedGuide, require
from killick.methods.slots import RolloutView


@dataclass(frozen=True, kw_only=True)
class ConstantGuide(BoundedGuide):
    """q_t = c.

    With c ≠ 1 it scales the forward-KL pull by c under `k3_loss`, and under `k1_reward_to_go` it pays β·log c for
    every token, that is for length.

    Attributes:
        c: the factor, in [q_min, q_max].

    Raises:
        ConfigError: c outside the bounds, where it would be clamped to another value.
    """

    reads_token: ClassVar[bool] = False
    reads_later: ClassVar[bool] = False

    c: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.q_min <= self.c <= self.q_max, self, "c must be in [q_min, q_max]")

    def __call__(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """q, float32; reads nothing but the shape."""
        return torch.full(view.mask.shape, self.c, dtype=torch.float32, device=view.mask.device)
