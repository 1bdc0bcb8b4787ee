"""The sentence beside every number: what was asked of the model, how often, and how uncertainty was drawn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from killick.report.estimates import ONE_RUN, SEVERAL_RUNS, SOME_SEVERAL

if TYPE_CHECKING:
    from killick.report.study import Arm, Study

# Settings of an evaluation worth a place in the sentence, by the last part of their name.
SHOWN = ("temperature", "top_p", "max_tokens")


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names: `{"trl": {"beta": 0.05}}` -> `{"trl.beta": 0.05}`; lists stay values."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat.update(flatten(value, f"{name}."))
        else:
            flat[name] = value
    return flat


def measured(study: "Study", split: str) -> str:
    """Problems, samples, sampling settings, seeds and interval method of one split, over all arms.

    What differs between arms is shown as a list of the values, never as one of them.
    """
    arms = [arm for arm in study.arms if arm.evaluations(split)]
    found = [evaluation for arm in arms for evaluation in arm.evaluations(split)]
    problems = _values(evaluation.num_problems for evaluation in found)
    samples = _values(evaluation.num_samples for evaluation in found)
    parts = [f"{problems} problems × {samples} samples each", *_sampling(arms, split)]
    seeds = sorted({run.seed for arm in arms if not arm.is_base for run in arm.runs if run.seed is not None})
    if seeds:
        parts.append(f"training seeds {', '.join(map(str, seeds))}")
    runs = {study.coverage[arm.name, split].num_runs > 1 for arm in arms}
    parts.append("intervals: " + (SOME_SEVERAL if len(runs) > 1 else SEVERAL_RUNS if True in runs else ONE_RUN))
    return "; ".join(parts) + "."


def _sampling(arms: "list[Arm]", split: str) -> list[str]:
    found: dict[str, list[Any]] = {}
    for arm in arms:
        for evaluation in arm.evaluations(split):
            for key, value in flatten(evaluation.settings).items():
                name = key.rsplit(".", 1)[-1]
                if name in SHOWN and value is not None:
                    found.setdefault(name, []).append(value)
    return [f"{name} {_values(found[name])}" for name in SHOWN if name in found]


def _values(items: Any) -> str:
    return " / ".join(dict.fromkeys(str(item) for item in items))
