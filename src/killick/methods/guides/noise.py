"""`random`: unguided perturbation of the anchor, the control for "does the signal matter?"."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from killick.methods.guides.base import ScheduledGuide, drawn, require
from killick.methods.slots import RolloutView


@dataclass(frozen=True, kw_only=True)
class NoiseGuide(ScheduledGuide):
    """With probability e: q_t = 1 + σ·ε, ε ~ N(0, 1); else q_t = 1. Both e and σ are scheduled.

    Attributes:
        e_upper: share of perturbed tokens at the start, in [0, 1]. 0.1 [shipped].
        e_lower: share at the end of a cycle. 0 [shipped].
        sigma_upper: size of the perturbation at the start, >= 0. 0.15 [shipped].
        sigma_lower: size at the end of a cycle. 0.05 [shipped].

    Raises:
        ConfigError: a setting out of range.

    Source: SAGE, random guide [paper].
    """

    needs_noise: ClassVar[frozenset[str]] = frozenset({"normal", "uniform"})
    reads_token: ClassVar[bool] = False
    reads_later: ClassVar[bool] = False

    e_upper: float = 0.1
    e_lower: float = 0.0
    sigma_upper: float = 0.15
    sigma_lower: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0.0 <= self.e_lower <= self.e_upper <= 1.0, self, "e must satisfy 0 <= e_lower <= e_upper <= 1")
        require(0.0 <= self.sigma_lower <= self.sigma_upper, self, "sigma must satisfy 0 <= sigma_lower <= sigma_upper")

    def __call__(self, view: RolloutView) -> Float[Tensor, "B T"]:
        """Return q before clamping, float32; reads both noises and the step."""
        e = self.at(view.step, view.num_steps, self.e_upper, self.e_lower)
        sigma = self.at(view.step, view.num_steps, self.sigma_upper, self.sigma_lower)
        perturbed = 1.0 + sigma * drawn(view.noise, "normal")
        return torch.where(drawn(view.noise, "uniform") < e, perturbed, 1.0)
