"""Training curves: what each arm did step by step, as small multiples with one legend."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from killick.report.multiples import NO_CURVE, Bins, Curve, Multiple, multiples
from killick.report.study import Arm, Study
from killick.report.types import Panel

# Logged name -> heading with unit. TRL's names stay as they are; ours are <owner>/<quantity>.
CURVES = {
    "reward": "reward",
    "kl": "KL to the anchor (nats/token)",
    "sage/kl": "KL to the shaped anchor (nats/token)",
    "entropy": "entropy (nats/token)",
    "sage/q_mean": "guide factor q, mean",
    "sage/q_active_frac": "share of tokens with q ≠ 1",
    "group/all_wrong_frac": "groups with no right completion",
    "group/all_right_frac": "groups with no wrong completion",
    "sort/buffer_num": "failed prompts waiting for repair",
    "sort/loss": "loss of repairs, without λ (nats/token)",
    "sort/weight_mean": "weight ω of reference tokens, mean",
    "sort/lift_mean": "lift ω / p_base, mean",
    "sort/salience_mean": "salience of reference tokens, mean (nats)",
    "sort/plan_fallback_frac": "plans not used",
    "completions/mean_length": "completion length (tokens)",
    "step_time": "time per step (s)",
}


@dataclass(frozen=True)
class TrainingPanel:
    """Mean over seeds with the range of the seeds as a band.

    Attributes:
        window: logged steps in the centred running mean; 1 shows the raw log.
    """

    title: str = "Training"
    order: int = 40
    window: int = 5

    def __call__(self, study: Study) -> Panel | None:
        """One figure of small multiples; None when nothing was logged."""
        keys = [key for key in CURVES if any(run.series(key)[0] for arm in study.arms for run in arm.runs)]
        if not keys:
            return None
        plots = [Multiple(CURVES[key], partial(over_seeds, key=key, window=self.window)) for key in keys]
        figure = multiples(study, "Logged numbers", plots)
        seeds = len(study.seeds)
        smoothing = f"a centred running mean over {self.window} logged steps" if self.window > 1 else "the raw log"
        note = (
            f"Curves are {smoothing}, averaged over the seeds of an arm"
            + (f" ({seeds} seeds; bands run from the lowest to the highest seed)." if seeds > 1 else " (one seed).")
            + " What seeds logged at different steps is averaged in equal bins of steps instead."
            + " Rewards are of the training problems under the sampling settings of training, so they are not pass@1."
        )
        return Panel(self.title, [figure], note)


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Centred running mean over `window` values, over fewer at both ends; window 1 changes nothing."""
    half = window // 2
    total = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(values.size)
    low, high = np.maximum(places - half, 0), np.minimum(places + half + 1, values.size)
    return (total[high] - total[low]) / (high - low)


def over_seeds(arm: Arm, key: str, window: int) -> Curve:
    """The smoothed values of each seed, at the steps every seed has logged.

    Repairs fall on other steps in every seed. Where most steps are not shared, each seed is averaged in bins instead.
    """
    logs = [dict(zip(*run.series(key), strict=True)) for run in arm.runs]
    logs = [{step: value for step, value in log.items() if np.isfinite(value)} for log in logs]
    logs = [log for log in logs if log]
    if not logs:
        return NO_CURVE
    steps = sorted(set.intersection(*(set(log) for log in logs)))
    if len(steps) < min(map(len, logs)) / 2:
        bins = Bins.over([np.array(list(log)) for log in logs])
        columns = [(np.array(list(log)), np.array(list(log.values()))) for log in logs]
        return bins.curve([bins.ratio(at, values, np.ones_like(values)) for at, values in columns])
    return Curve(np.array(steps), np.array([smooth(np.array([log[s] for s in steps]), window) for log in logs]))
