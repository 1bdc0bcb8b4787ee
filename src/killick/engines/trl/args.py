"""A recipe's `[trl]`, `[run]` and `[method]` as one `KillickConfig`, with errors people can act on."""

import math
import types
import typing
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from killick.config import Recipe
from killick.engines.trl.settings import KillickConfig, check_trl_keys
from killick.errors import ConfigError
from killick.maths import REDUCTIONS
from killick.registry import nearest

_LEAST = {
    "max_completion_length": 1, "num_generations": 2, "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 1, "num_iterations": 1, "learning_rate": 0.0, "logging_steps": 1,
}  # fmt: skip
# What a host's constructor raises for a value it cannot use.
REJECTIONS = (TypeError, ValueError, KeyError, ZeroDivisionError, ImportError, AssertionError, RuntimeError)


def build_args(recipe: Recipe, run_dir: Path) -> KillickConfig:
    """The arguments of one run.

    Raises:
        ConfigError: unknown `[trl]` key, a value of the wrong type or range, or settings that contradict each other.
    """
    settings = dict(recipe.trl)
    check_trl_keys(settings)
    _check_values(settings)
    defaults: dict[str, Any] = {
        "report_to": "none",
        "logging_steps": 1,
        "disable_tqdm": True,
        "save_strategy": "steps" if recipe.run.save_every else "no",
        "save_steps": recipe.run.save_every or 500,
        "save_total_limit": 2,
    }
    try:
        return KillickConfig(
            **{**defaults, **settings},
            output_dir=str(run_dir),
            seed=recipe.run.seed,
            kl_form=recipe.anchor.kl_form,
            guide=recipe.anchor.name,
            guide_settings=recipe.anchor.settings or None,
            repair=recipe.repair.name,
            repair_settings=recipe.repair.settings or None,
        )
    except ConfigError:
        raise
    except REJECTIONS as error:
        raise ConfigError(f"[trl] is rejected by TRL: {error}") from error


def _check_values(settings: dict[str, Any]) -> None:
    hints = typing.get_type_hints(GRPOConfig)
    for key, value in settings.items():
        allowed = _plain_types(hints.get(key))
        fits = type(value) in allowed or (float in allowed and type(value) is int)
        if allowed and not fits:
            names = " or ".join(sorted(kind.__name__ for kind in allowed))
            raise ConfigError(f"[trl] {key} must be {names}, found {value!r}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"[trl] {key} must be finite, found {value!r}.")
        if key in _LEAST and isinstance(value, int | float) and value < _LEAST[key]:
            raise ConfigError(f"[trl] {key} must be at least {_LEAST[key]}, found {value!r}.")
    if settings.get("temperature", 1.0) <= 0:
        raise ConfigError(f"[trl] temperature must be > 0, found {settings['temperature']!r}: groups need spread.")
    if settings.get("loss_type", "dapo") not in REDUCTIONS:
        raise ConfigError(
            f"[trl] has no loss_type {settings['loss_type']!r}. {nearest(settings['loss_type'], REDUCTIONS)}"
        )


def _plain_types(hint: Any) -> set[type]:
    """The types a value may have, or nothing when the annotation allows more than plain numbers, text and switches."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) else (hint,)
    plain = {part for part in parts if part in (int, float, bool, str)}
    return plain if plain and all(part in (int, float, bool, str, type(None)) for part in parts) else set()
