"""Study files: TOML to arms, seeds and overrides, with every key and component checked before anything runs."""

import dataclasses
import itertools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from killick.config import find_recipe, load_recipe, read_toml, to_toml, toml_value
from killick.errors import ConfigError, DataError
from killick.registry import nearest

_KEYS: dict[str, type] = {"study": dict, "set": dict, "arm": list}
_STUDY_KEYS: dict[str, type] = {"title": str, "recipe": str, "seeds": list, "jobs": int, "baseline": str}
_ARM_KEYS: dict[str, type] = {"name": str, "label": str, "against": str, "set": dict, "sweep": dict}
_TOML_NAMES: dict[type, str] = {dict: "a table", list: "a list", str: "a text", int: "a whole number"}
_NAME = re.compile(r"[\w.=-]+")
_LONGEST_NAME = 200  # bytes; file systems allow 255
_HIGHEST_SEED = 2**32 - 1  # of the random generators a run seeds


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


def load_study(
    name_or_path: str,
    seeds: int | None = None,
    jobs: int | None = None,
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Study:
    """Read a study by name or path and check the keys of every arm (its components: `check`).

    Args:
        name_or_path: of the study.
        seeds: use 0 … seeds − 1 instead of those of the file.
        jobs: processes at a time instead of what the file says.
        overrides: `KEY=VALUE` pairs for the recipe, on top of the study's `[set]`; an arm's own settings still win.
        only: names of the arms to run (with their sweep values); all when empty.

    Raises:
        ConfigError: unknown file, key or recipe, a value of the wrong type, two arms of one name, a counterpart or
            baseline that is no arm.
    """
    path = _find(name_or_path)
    data = read_toml(path)
    _refuse(data, _KEYS, str(path))
    head = data.get("study", {})
    _refuse(head, _STUDY_KEYS, f"{path}: [study]")
    if "recipe" not in head or not data.get("arm"):
        raise ConfigError(f"{path} needs [study] recipe and at least one [[arm]].")
    _check_numbers({**head, **({} if jobs is None else {"jobs": jobs})}, seeds, str(path))
    shared = {**data.get("set", {}), **_pairs(overrides)}
    _check_settings(shared, f"{path}: [set]")
    arms = tuple(arm for entry in data["arm"] for arm in _expand(entry, str(path)))
    arms = _chosen(arms, only)
    _check_names(arms, head.get("baseline"), str(path))
    study = Study(
        name=path.stem,
        title=head.get("title", path.stem),
        recipe=str(find_recipe(head["recipe"])),
        seeds=tuple(head.get("seeds", [0])) if seeds is None else tuple(range(seeds)),
        jobs=jobs or head.get("jobs") or os.cpu_count() or 1,
        baseline=head.get("baseline"),
        shared=shared,
        arms=arms,
    )
    for arm in arms:
        load_recipe(study.recipe, study.sets(arm, study.seeds[0]))
    return study


def _chosen(arms: tuple[Arm, ...], only: Sequence[str]) -> tuple[Arm, ...]:
    """The arms of these names, in the order of the file; a counterpart that is not among them is forgotten."""
    if not only:
        return arms
    names = [arm.name for arm in arms]
    for name in only:
        if name not in names:
            raise ConfigError(f"--arm {name!r} is no arm of this study. {nearest(name, names)}")
    return tuple(
        arm if arm.against in only else dataclasses.replace(arm, against=None) for arm in arms if arm.name in only
    )


def _pairs(overrides: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` -> key and value, as `--set` of a recipe reads them."""
    pairs = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not text:
            raise ConfigError(f"--set {override!r} is not KEY=VALUE. Example: --set trl.beta=0.1")
        pairs[key.strip()] = toml_value(text)
    return pairs


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    try:
        if path.is_file():
            return path
    except OSError as error:
        raise ConfigError(f"{name_or_path[:60]!r} … is no file name: {error.strerror}. Name a study file.") from error
    known = shipped_studies()
    if name_or_path not in known:
        raise ConfigError(f"No study file {name_or_path!r} and no shipped study. {nearest(name_or_path, known)}")
    return known[name_or_path]


def _check_numbers(head: dict[str, Any], seeds: int | None, origin: str) -> None:
    """`jobs`, the number of seeds asked for, and the seeds of the file."""
    for key, value in (("jobs", head.get("jobs", 1)), ("the number of seeds", 1 if seeds is None else seeds)):
        if not _is_int(value) or value < 1:
            raise ConfigError(f"{origin}: {key} must be a whole number of at least 1, found {value!r}.")
    named = head.get("seeds", [0])
    fit = all(_is_int(seed) and 0 <= seed <= _HIGHEST_SEED for seed in named)
    if not named or not fit or len(set(named)) < len(named):
        raise ConfigError(
            f"{origin}: [study] seeds must list different whole numbers from 0 to {_HIGHEST_SEED}, found {named!r}."
        )


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_names(arms: tuple[Arm, ...], baseline: str | None, origin: str) -> None:
    """Names of expanded arms are unique and fit to be folders; counterpart and baseline are among them."""
    names = [arm.name for arm in arms]
    for name in names:
        if not _NAME.fullmatch(name) or name in ("base", ".", "..") or len(name.encode()) > _LONGEST_NAME:
            raise ConfigError(
                f"{origin}: an arm is named {name!r}; it names a folder. Use letters, digits and . = _ - (at most "
                f"{_LONGEST_NAME} bytes with the sweep values), and not 'base', '.' or '..'."
            )
    if len(set(names)) < len(names):
        raise ConfigError(f"{origin}: two arms have the same name: {', '.join(sorted(names))}.")
    for arm in arms:
        if arm.against is not None and arm.against not in names:
            raise ConfigError(f"{origin}: arm {arm.name!r} names no arm in `against`. {nearest(arm.against, names)}")
    if baseline is not None and baseline not in names:
        raise ConfigError(f"{origin}: [study] baseline = {baseline!r} names no arm. {nearest(baseline, names)}")


def _check_settings(values: dict[str, Any], where: str) -> None:
    """Keys and values of [set] and the like can travel as `KEY=VALUE`."""
    for key, value in values.items():
        if "=" in key or not all(key.strip().split(".")):
            raise ConfigError(f'{where}: {key!r} is no key of a recipe. Example: "trl.beta" = 0.05')
        try:
            json.dumps(value)
        except TypeError as error:
            raise ConfigError(f"{where}: {key} holds a date or time, which no setting takes. Quote it.") from error


def check(study: Study) -> None:
    """Check every component and setting of every arm, so that a typo in the last one shows before hours of work.

    The problems of every split to be trained on or evaluated are loaded, each set once.

    Raises:
        ConfigError: as `build_args`, the registries and the sampling settings say, with the arm's name.
        DataError: problems that cannot be read, with the arm's name.
    """
    from killick.engines.trl.args import build_args
    from killick.evaluate.settings import Performance, check_uids, evaluation_settings
    from killick.tasks import TASKS

    loaded: set[str] = set()
    for arm in (None, *study.arms):  # None: the base, evaluated with what all arms share
        recipe = load_recipe(study.recipe, study.sets(arm, study.seeds[0]))
        section = recipe.evaluate
        try:
            task = TASKS.build(recipe.task.name, **recipe.task.settings)
            if arm is not None:
                build_args(recipe, Path("unused"))
            evaluation_settings(section)
            Performance(batch_size=section.batch_size, dtype=recipe.model.dtype)
            wanted = [(split, section.num_problems) for split in section.splits]
            for split, limit in [*wanted, (recipe.task.split, recipe.task.limit)]:
                key = json.dumps([recipe.task.name, recipe.task.settings, split, limit], sort_keys=True)
                if key not in loaded:
                    loaded.add(key)
                    check_uids(task.rows(split, limit), split)
        except (ConfigError, DataError) as error:
            kind = ConfigError if isinstance(error, ConfigError) else DataError
            raise kind(f"{'The base' if arm is None else f'Arm {arm.name!r}'}: {error}") from error


def _refuse(table: Any, known: dict[str, type], where: str) -> None:
    """Refuse anything but a table of known keys with values of their types."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table, found {table!r}.")
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}. {nearest(key, known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ConfigError(f"{where}: {key} must be {_TOML_NAMES[known[key]]}, found {value!r}.")


def _in_name(value: Any) -> str:
    """A sweep value as part of an arm's name, which is a folder's."""
    return re.sub(r"[^\w.=-]+", "_", str(value))


def _expand(entry: dict[str, Any], origin: str) -> list[Arm]:
    _refuse(entry, _ARM_KEYS, f"{origin}: [[arm]]")
    if "name" not in entry:
        raise ConfigError(f"{origin}: an [[arm]] has no name.")
    name, label = entry["name"], entry.get("label", entry["name"])
    sweep = entry.get("sweep", {})
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(f"{origin}: arm {name!r}: sweep {key!r} must be a list of values, found {values!r}.")
    for table in (entry.get("set", {}), sweep):
        _check_settings(table, f"{origin}: arm {name!r}")
    arms = []
    for values in itertools.product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        tail = "".join(f"-{_in_name(key.rpartition('.')[2])}{_in_name(value)}" for key, value in chosen.items())
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
