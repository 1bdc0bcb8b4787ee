"""What all guides share: the bounds of q, the checks of their settings, the noise that travels with a row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from killick.errors import ConfigError, ContractError
from killick.maths.schedule import cosine_cycles


def require(holds: bool, owner: object, rule: str) -> None:
    """Refuse a setting.

    Args:
        holds: whether the rule holds.
        owner: the component, whose class and settings the message shows.
        rule: what is allowed, e.g. "gamma must be >= 0".

    Raises:
        ConfigError: the rule does not hold.
    """
    if not holds:
        raise ConfigError(f"{rule}. Found {owner!r}. Change the setting, or leave it out for the shipped value.")


@dataclass(frozen=True, kw_only=True)
class BoundedGuide:
    """Base of the guides: q is kept within [q_min, q_max].

    Not required by the `Guide` protocol; it only saves repeating the bounds. A guide derived from it calls
    `super().__post_init__()` first, which refuses bounds that cannot work and numbers that are not finite.

    Attributes:
        q_min: lower bound of q, > 0. 0.6 [shipped].
        q_max: upper bound of q, >= q_min. 1.4 [shipped].
    """

    needs_noise: ClassVar[frozenset[str]] = frozenset()
    """Names of the noise ("normal", "uniform") drawn once per rollout for this guide."""
    reads_token: ClassVar[bool] = True
    """Whether q depends on the sampled token and not on the state alone. A guide that does not read the token has no
    expected effect on a reverse-KL gradient taken state by state."""
    reads_later: ClassVar[bool] = True
    """Whether q_t also depends on tokens after t, as weights relative to the row do. `k1_reward_to_go` then credits a
    token with the log q of the whole row and not only of its rest, which is right for every guide; False spares
    noise where it is true."""

    q_min: float = 0.6
    q_max: float = 1.4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float | int):
                require(math.isfinite(value), self, f"{name} must be a finite number")
        require(0.0 < self.q_min <= self.q_max, self, "q_min and q_max must satisfy 0 < q_min <= q_max")


@dataclass(frozen=True, kw_only=True)
class ScheduledGuide(BoundedGuide):
    """Base of the guides whose strength follows the cosine cycles of `killick.maths.schedule`.

    Attributes:
        cycles: equal cycles over the run. 8 [shipped].
        decay: factor on the upper value at each new cycle. 0.9 [shipped].
    """

    cycles: int = 8
    decay: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.cycles >= 1, self, "cycles must be >= 1")
        require(0.0 < self.decay <= 1.0, self, "decay must be in (0, 1]")

    def at(self, step: int, num_steps: int, upper: float, lower: float) -> float:
        """The scheduled value after `step` of `num_steps` optimiser steps."""
        return cosine_cycles(step, num_steps, upper, lower, self.cycles, self.decay)


def drawn(noise: Mapping[str, Tensor], name: str) -> Tensor:
    """The noise of this name, [B, T], float32.

    Raises:
        ContractError: the engine did not draw it although the guide declares it.
    """
    if name not in noise:
        raise ContractError(
            f"The guide needs {name!r} noise, but the view holds {sorted(noise) or 'none'}. The engine must draw every "
            "name in `guide.needs_noise` once per rollout and let it travel with its row."
        )
    return noise[name].float()
