"""Schedules as functions of the optimiser step: no state, so resuming, re-using and evaluating cannot shift them."""

import math

from killick.errors import ConfigError


def cosine_cycles(step: int, total: int, upper: float, lower: float, cycles: int = 8, decay: float = 0.9) -> float:
    """Equal cosine cycles from an upper value that decays with each cycle down to a lower value.

    The run is cut into `cycles` equal parts. Part c (from 0) starts at max(upper·decay**c, lower) and follows half a
    cosine down to `lower`, which it approaches at its end; the next part jumps up again. Once upper·decay**c falls
    below `lower`, the remaining parts are constant at `lower`; so is everything when upper == lower.

    Args:
        step: optimiser steps finished so far, ≥ 0. From `total` on the value is `lower`.
        total: optimiser steps of the run, ≥ 1.
        upper: value at step 0, ≥ lower.
        lower: value at the end of each cycle.
        cycles: number of parts, ≥ 1.
        decay: factor on `upper` at each new cycle, in (0, 1].

    Returns:
        A value in [lower, upper] up to rounding; exactly max(upper·decay**c, lower) at the start of part c.

    Raises:
        ConfigError: an argument outside its range.

    Source: SAGE's stochastic guides, 8 cycles and 0.9 [shipped].
    """
    if total < 1 or step < 0:
        raise ConfigError(f"A schedule needs total >= 1 and step >= 0, found step {step} of {total}.")
    if cycles < 1 or not 0.0 < decay <= 1.0 or not upper >= lower:
        raise ConfigError(
            f"A schedule needs cycles >= 1, decay in (0, 1] and upper >= lower, found cycles {cycles}, decay {decay}, "
            f"upper {upper}, lower {lower}."
        )
    if step >= total:
        return lower
    # Integers: a step that falls on the start of a cycle is its start, not the last instant of the cycle before.
    cycle, position = divmod(step * cycles, total)
    start = max(upper * decay**cycle, lower)
    return start - (start - lower) * 0.5 * (1.0 - math.cos(math.pi * position / total))
