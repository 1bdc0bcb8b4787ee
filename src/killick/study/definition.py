"""Study files: TOML to arms, seeds and overrides, with every key and component checked before anything runs."""

import itertools
import os
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from killick.config import find_recipe, load_recipe, read_toml, to_toml
from killick.errors import ConfigError
from killick.registry import nearest

_KEYS = {"study", "set", "arm"}
_STUDY_KEYS = {"title", "recipe", "seeds", "jobs", "baseline"}
_ARM_KEYS = {"name", "label", "against", "set", "sweep"}


@dataclass(frozen=True)
class Arm:
    """One setting of the study.

    Attributes:
        sweep: the values that tell it from others of the same `method`.
        against: the arm it differs from in one thing only (at the same sweep values), or None.
    """

    name: str
    label: str
    method: str
    overrides: dict[str, Any]
    sweep: dict[str, Any] = field(default_factory=dict)
    against: str | None = None


@dataclass(frozen=True)
class Study:
    """A parsed study file."""

    name: str
    title: str
    recipe: str
    seeds: tuple[int, ...]
    jobs: int
    baseline: str | None
    shared: dict[str, Any]
    arms: tuple[Arm, ...]

    def sets(self, arm: Arm | None, seed: int | None) -> list[str]:
        """The `--set` overrides of one job."""
        values = {**self.shared, **(arm.overrides if arm else {})}
        if seed is not None:
            values["run.seed"] = seed
        return [f"{key}={to_toml(value)}" for key, value in values.items()]


def shipped_studies() -> dict[str, Path]:
    """Name -> file of every study in the package."""
    folder = Path(str(resources.files("killick") / "recipes" / "studies"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_study(name_or_path: str, seeds: int | None = None, jobs: int | None = None) -> Study:
    """Read a study by name or path and check the keys of every arm (its components: `check`).

    Raises:
        ConfigError: unknown file, key or recipe, two arms of one name, or a counterpart that is no arm.
    """
    path = Path(name_or_path)
    if not path.is_file():
        known = shipped_studies()
        if name_or_path not in known:
            raise ConfigError(f"No study file {name_or_path!r} and no shipped study. {nearest(name_or_path, known)}")
        path = known[name_or_path]
    data = read_toml(path)
    _refuse(data, _KEYS, str(path))
    head = data.get("study", {})
    _refuse(head, _STUDY_KEYS, f"{path}: [study]")
    if "recipe" not in head or not data.get("arm"):
        raise ConfigError(f"{path} needs [study] recipe and at least one [[arm]].")
    arms = tuple(arm for entry in data["arm"] for arm in _expand(entry, str(path)))
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise ConfigError(f"{path}: two arms have the same name: {', '.join(sorted(names))}.")
    for arm in arms:
        if arm.against is not None and arm.against not in names:
            raise ConfigError(f"{path}: arm {arm.name!r} names no arm in `against`. {nearest(arm.against, names)}")
    study = Study(
        name=path.stem,
        title=head.get("title", path.stem),
        recipe=str(find_recipe(head["recipe"])),
        seeds=tuple(range(seeds)) if seeds else tuple(head.get("seeds", [0])),
        jobs=jobs or head.get("jobs") or os.cpu_count() or 1,
        baseline=head.get("baseline"),
        shared=data.get("set", {}),
        arms=arms,
    )
    for arm in arms:
        load_recipe(study.recipe, study.sets(arm, study.seeds[0]))
    return study


def check(study: Study) -> None:
    """Check every component and setting of every arm, so that a typo in the last one shows before hours of work.

    Raises:
        ConfigError: as `build_args` and the registries say, with the arm's name.
    """
    from killick.engines.trl.args import build_args
    from killick.tasks import TASKS

    for arm in study.arms:
        recipe = load_recipe(study.recipe, study.sets(arm, study.seeds[0]))
        try:
            TASKS.build(recipe.task.name, **recipe.task.settings)
            build_args(recipe, Path("unused"))
        except ConfigError as error:
            raise ConfigError(f"Arm {arm.name!r}: {error}") from error


def _refuse(table: dict[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}. {nearest(key, known)}")


def _expand(entry: dict[str, Any], origin: str) -> list[Arm]:
    _refuse(entry, _ARM_KEYS, f"{origin}: [[arm]]")
    if "name" not in entry:
        raise ConfigError(f"{origin}: an [[arm]] has no name.")
    name, label = entry["name"], entry.get("label", entry["name"])
    sweep = entry.get("sweep", {})
    arms = []
    for values in itertools.product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        tail = "".join(f"-{key.rpartition('.')[2]}{value}" for key, value in chosen.items())
        text = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in chosen.items())
        arms.append(
            Arm(
                name=name + tail,
                label=f"{label}, {text}" if text else label,
                method=label,
                overrides={**entry.get("set", {}), **chosen},
                sweep=chosen,
                against=entry["against"] + tail if "against" in entry else None,
            )
        )
    return arms
