"""Recipes: TOML to frozen dataclasses. Unknown keys are refused with the nearest known one; nothing has an alias."""

import copy
import dataclasses
import hashlib
import json
import math
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from killick.errors import ConfigError
from killick.methods.kl_forms import KL_FORMS
from killick.registry import nearest

_SLOTS = ("anchor", "repair", "group", "advantage")
_FILLED = ("anchor", "repair")
# Sections that name a component and carry its settings, with the keys that are the section's own.
_COMPONENTS = {("task",): ("name", "split", "limit"), ("method", "anchor"): ("name", "kl_form")}
# Settings of GRPOConfig that the recipe has elsewhere.
_NOT_TRL = {
    "output_dir": "run.output_dir, or --run-dir",
    "seed": "run.seed",
    "save_strategy": "run.save_every",
    "save_steps": "run.save_every",
    "resume_from_checkpoint": "nothing: the same command resumes",
    "kl_form": "method.anchor.kl_form",
    "guide": "method.anchor.name",
    "guide_settings": "method.anchor",
    "repair": "method.repair.name",
    "repair_settings": "method.repair",
}


@dataclass(frozen=True)
class RunSection:
    """`[run]`: name, where results go, seed, threads of one process, steps between checkpoints."""

    name: str
    output_dir: str = "runs"
    seed: int = 0
    threads: int | None = None
    save_every: int | None = None


@dataclass(frozen=True)
class ModelSection:
    """`[model]`: `nano`, a local folder or a hub name; `lora`: settings of `peft.LoraConfig`, if any."""

    name_or_path: str
    dtype: str = "float32"
    max_prompt_tokens: int | None = None
    lora: dict[str, Any] | None = None


@dataclass(frozen=True)
class TaskSection:
    """`[task]`: a registered task, the split to train on; every other key is a setting of that task."""

    name: str
    split: str = "train"
    limit: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnchorSection:
    """`[method.anchor]`: `kl_form`, and optionally a guide by `name`; every other key is a setting of that guide."""

    kl_form: str
    name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RepairSection:
    """`[method.repair]`: a repair rule by `name`; every other key is a setting of `RepairSettings` or of that rule."""

    name: str = "none"
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EvaluateSection:
    """`[evaluate]`: what `killick train` measures at its end and `killick evaluate --recipe` uses."""

    splits: tuple[str, ...] = ()
    num_problems: int | None = None
    num_samples: int = 128
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int = 0
    batch_size: int = 512


@dataclass(frozen=True)
class Recipe:
    """One experiment, fully resolved."""

    run: RunSection
    model: ModelSection
    task: TaskSection
    anchor: AnchorSection
    repair: RepairSection
    evaluate: EvaluateSection
    trl: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain, JSON-able form (saved as `resolved.json`)."""
        data: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return data

    def hash(self) -> str:
        """Twelve hex digits over `identity`."""
        return hashlib.sha256(json.dumps(identity(self.to_dict()), sort_keys=True).encode()).hexdigest()[:12]


def identity(data: dict[str, Any]) -> dict[str, Any]:
    """What of a resolved recipe makes two runs the same one: all but names, places of results and the evaluation."""
    run = {key: value for key, value in data["run"].items() if key not in ("name", "output_dir", "save_every")}
    return {"run": run, **{key: value for key, value in data.items() if key not in ("run", "evaluate")}}


def shipped_recipes() -> dict[str, Path]:
    """Name -> file of every recipe in the package."""
    folder = Path(str(resources.files("killick") / "recipes"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_recipe(name_or_path: str) -> Path:
    """The file of a shipped recipe by name, or a path.

    Raises:
        ConfigError: neither exists.
    """
    path = Path(name_or_path)
    try:
        if path.is_file():
            return path
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name_or_path[:60]!r} … is no file name: {error}.") from error
    known = shipped_recipes()
    stem = path.stem if path.suffix == ".toml" else name_or_path
    if stem in known:
        return known[stem]
    raise ConfigError(f"No recipe file {name_or_path!r}, and no shipped recipe of that name. {nearest(stem, known)}")


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; ConfigError names the file and the line when it cannot."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {path}: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def apply_overrides(data: dict[str, Any], overrides: list[str]) -> dict[str, Any]:
    """`--set a.b=value` pairs applied to a copy; values are TOML, a bare word is a string, `a.b=` removes the key.

    A task or guide that is replaced by its `name` takes its settings with it: those of the recipe would be refused by
    the new one, or mean something else there. What other overrides set stays, whatever the order.

    Raises:
        ConfigError: no `=`, or a path through something that is not a table.
    """
    data = copy.deepcopy(data)
    parsed = [_parse_override(override) for override in overrides]
    for keys, text in parsed:
        if keys[-1] == "name" and keys[:-1] in _COMPONENTS:
            _drop_settings(data, keys[:-1], toml_value(text))
    for (keys, text), override in zip(parsed, overrides, strict=True):
        table = data
        for key in keys[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ConfigError(f"--set {override!r}: {key!r} is a value, not a table.")
        if text == "":
            table.pop(keys[-1], None)
        else:
            table[keys[-1]] = toml_value(text)
    return data


def _parse_override(override: str) -> tuple[tuple[str, ...], str]:
    path, equals, text = override.partition("=")
    keys = tuple(path.strip().split("."))
    if not equals or not all(keys):
        raise ConfigError(f"--set {override!r} is not KEY=VALUE. Example: --set method.anchor.gamma=0.5")
    return keys, text


def _drop_settings(data: dict[str, Any], section: tuple[str, ...], name: Any) -> None:
    """Take the settings of the component out of a section, unless it has this very name."""
    table: Any = data
    for key in section:
        table = table.get(key) if isinstance(table, dict) else None
    if isinstance(table, dict) and table.get("name", name) != name:
        for key in [key for key in table if key not in _COMPONENTS[section]]:
            del table[key]


def toml_value(text: str) -> Any:
    """A value as `--set` reads it: TOML, or a bare word as a string."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def to_toml(value: Any) -> str:
    """A JSON-able value as inline TOML, so that it can travel through `--set`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {to_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_toml(entry) for entry in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # TOML writes inf and nan as Python does
    return json.dumps(value, ensure_ascii=False)


def load_recipe(name_or_path: str, overrides: list[str] | None = None) -> Recipe:
    """Read a recipe, apply `--set` overrides, check every key.

    Raises:
        ConfigError: missing file, invalid TOML, unknown section, key or component, wrong type.
    """
    path = find_recipe(name_or_path)
    return parse_recipe(apply_overrides(read_toml(path), overrides or []), origin=str(path))


def parse_recipe(data: dict[str, Any], origin: str = "recipe") -> Recipe:
    """Build a `Recipe` from parsed TOML; see `load_recipe` for the errors."""
    sections = ("run", "model", "task", "method", "evaluate", "trl")
    for key, value in data.items():
        if key not in sections:
            raise ConfigError(f"{origin}: unknown section [{key}]. {nearest(key, sections)}")
        if not isinstance(value, dict):
            raise ConfigError(f"{origin}: [{key}] must be a table, found {type(value).__name__}.")
    for key in ("run", "model", "task", "method"):
        if key not in data:
            raise ConfigError(f"{origin}: section [{key}] is missing.")
    _refuse_dates(data, origin)
    for key in data.get("trl", {}):
        if key in _NOT_TRL:
            raise ConfigError(f"{origin}: [trl] {key} is set by another section of the recipe. Use {_NOT_TRL[key]}.")
    recipe = Recipe(
        run=_section(RunSection, data["run"], origin, "run"),
        model=_section(ModelSection, data["model"], origin, "model"),
        task=_section(TaskSection, data["task"], origin, "task", rest="settings"),
        anchor=_anchor(data["method"], origin),
        repair=_section(RepairSection, data["method"].get("repair", {}), origin, "method.repair", rest="settings"),
        evaluate=_section(EvaluateSection, data.get("evaluate", {}), origin, "evaluate"),
        trl=dict(data.get("trl", {})),
    )
    ranges = (("seed", recipe.run.seed, 0, 2**32 - 1), ("threads", recipe.run.threads, 1, 4096))
    for key, value, low, high in (*ranges, ("save_every", recipe.run.save_every, 1, 2**31)):
        if value is not None and not low <= value <= high:
            raise ConfigError(f"{origin}: [run] {key} must be between {low} and {high}, found {value}.")
    return recipe


def _refuse_dates(value: Any, where: str) -> None:
    """TOML has dates and times; no setting is one, and JSON could not keep them."""
    if isinstance(value, dict):
        for key, entry in value.items():
            _refuse_dates(entry, f"{where}: {key}")
    elif isinstance(value, list):
        for entry in value:
            _refuse_dates(entry, where)
    elif not isinstance(value, str | int | float | bool):
        raise ConfigError(f"{where} is a {type(value).__name__}, which no setting is. Put it in quotes if it is text.")


def _anchor(method: dict[str, Any], origin: str) -> AnchorSection:
    for slot in method:
        if slot not in _SLOTS:
            raise ConfigError(f"{origin}: unknown slot [method.{slot}]. {nearest(slot, _SLOTS)}")
        if slot not in _FILLED:
            raise ConfigError(f"{origin}: [method.{slot}] cannot be filled: no {slot} component is registered yet.")
        if not isinstance(method[slot], dict):
            raise ConfigError(f"{origin}: [method.{slot}] must be a table, found {method[slot]!r}.")
    if "kl_form" not in method.get("anchor", {}):
        raise ConfigError(
            f"{origin}: [method.anchor] must say kl_form ({', '.join(KL_FORMS)}). It decides which gradient the anchor "
            "gives, so it has no default."
        )
    return _section(AnchorSection, method["anchor"], origin, "method.anchor", rest="settings")


def _section(cls: Any, data: dict[str, Any], origin: str, name: str, rest: str | None = None) -> Any:
    known = {f.name: f for f in dataclasses.fields(cls) if f.name != rest}
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in data.items():
        if key in known:
            values[key] = _checked(value, known[key].type, f"{origin}: [{name}] {key}")
        elif rest is not None:
            extra[key] = value
        else:
            raise ConfigError(f"{origin}: [{name}] has no key {key!r}. {nearest(key, known)}")
    for key, spec in known.items():
        required = spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING
        if required and key not in values:
            raise ConfigError(f"{origin}: [{name}] needs {key!r}.")
    if rest is not None:
        values[rest] = extra
    return cls(**values)


def _checked(value: Any, annotation: Any, where: str) -> Any:
    """The value if it fits the annotation of its field; lists become tuples, whole numbers become floats."""
    text = str(annotation)
    if text.startswith("tuple["):
        if isinstance(value, list | tuple) and all(isinstance(x, str) for x in value):
            return tuple(value)
        raise ConfigError(f"{where} must be a list of strings, found {value!r}.")
    base = annotation
    if "|" in text:
        base = next(a for a in annotation.__args__ if a is not type(None))
    base = getattr(base, "__origin__", base)
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, base) or (isinstance(value, bool) and base is not bool):
        raise ConfigError(f"{where} must be {base.__name__}, found {value!r}.")
    return value
