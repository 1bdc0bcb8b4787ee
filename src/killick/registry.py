"""The one look-up mechanism: a table of names to import strings, open to other packages by entry points.

Tables hold strings, so listing costs no import and a missing optional dependency cannot break the list.
"""

import dataclasses
import difflib
import importlib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from numbers import Integral, Real
from typing import Any

from killick.errors import ConfigError


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence naming the known names, and the closest one if any is close."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.54)  # 'anker' is 'anchor', 'problem' no 'rationale'
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"Known: {', '.join(known) or 'none'}.{hint}"


class Registry:
    """Names of one kind of component, e.g. guides.

    Args:
        kind: singular noun used in messages.
        entry_points: group under which other packages register theirs, e.g. `killick.guides`.
        built_in: name -> "module:attribute".
    """

    def __init__(self, kind: str, entry_points: str, built_in: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = entry_points
        self._built_in = dict(built_in)

    def _targets(self) -> dict[str, list[str]]:
        """Name -> what it stands for; more than one entry is a quarrel that only `get` of that name raises."""
        targets = {name: [value] for name, value in self._built_in.items()}
        for point in metadata.entry_points(group=self.group):
            owners = targets.setdefault(point.name, [])
            if point.value not in owners:
                owners.append(point.value)
        return targets

    def names(self) -> list[str]:
        """All names, sorted; nothing is imported."""
        return sorted(self._targets())

    def get(self, name: str) -> Any:
        """The component behind a name.

        Raises:
            ConfigError: unknown name (the nearest one is offered), two owners of it, or its module cannot be
                imported.
        """
        targets = self._targets()
        if name not in targets:
            raise ConfigError(f"Unknown {self.kind} {name!r}. {nearest(name, targets)}")
        target, *others = targets[name]
        if others:
            raise ConfigError(
                f"Two owners of the {self.kind} {name!r}: {' and '.join(targets[name])}. "
                f"Uninstall one of the packages or rename its entry point in group {self.group!r}."
            )
        module, _, attribute = target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except Exception as error:  # importing runs the module of another package, which may fail in any way
            raise ConfigError(
                f"The {self.kind} {name!r} is registered as {target} but cannot be loaded "
                f"({type(error).__name__}: {error})."
            ) from error

    def build(self, name: str, **settings: Any) -> Any:
        """Construct the component, refusing settings it does not have.

        Raises:
            ConfigError: unknown name, unknown setting (the nearest one is offered), or a value of the wrong type or
                one it rejects.
        """
        return construct(self.kind, name, self.get(name), settings)

    def broken(self) -> dict[str, str]:
        """Name -> reason for every entry that cannot be used (read by `killick doctor`)."""
        reasons = {}
        for name in self.names():
            try:
                self.get(name)
            except ConfigError as error:
                reasons[name] = str(error)
        return reasons


def construct(kind: str, name: str, component: Any, settings: Mapping[str, Any]) -> Any:
    """A dataclass from settings out of a recipe, refusing what it does not have.

    Args:
        kind: for messages, e.g. "guide".
        name: likewise, e.g. "branch".
        component: the dataclass.
        settings: field -> value.

    Raises:
        ConfigError: unknown setting (the nearest one is offered), or a value of the wrong type or one it rejects.
    """
    fields = {f.name for f in dataclasses.fields(component) if f.init}
    for key in settings:
        if key not in fields:
            raise ConfigError(f"The {kind} {name!r} has no setting {key!r}. {nearest(key, fields)}")
    hints = _hints(component)
    for key, value in settings.items():
        if key in hints and not _fits(value, hints[key]):
            raise ConfigError(f"The {kind} {name!r}: the setting {key} = {value!r} must be {_described(hints[key])}.")
    try:
        return component(**settings)
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"The {kind} {name!r} rejects its settings {dict(settings)}: {error}") from error


def _hints(component: Any) -> dict[str, Any]:
    """Field name -> type; fields whose annotation cannot be resolved are left out, and so not checked."""
    try:
        return typing.get_type_hints(component)
    except Exception:  # an annotation of another package may name anything
        return {f.name: f.type for f in dataclasses.fields(component) if not isinstance(f.type, str)}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a setting has the type of its field; a type that is none of TOML's is not judged."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is typing.Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if hint is None or hint is type(None):
        return value is None
    base = origin or hint
    if base is tuple and args and args[-1] is not Ellipsis:
        fits_all = isinstance(value, list | tuple) and len(value) == len(args)
        return fits_all and all(_fits(entry, arg) for entry, arg in zip(value, args, strict=True))
    if base in (tuple, list, Sequence):  # TOML knows lists only
        return isinstance(value, list | tuple) and all(_fits(entry, args[0]) for entry in value if args)
    if base in (dict, Mapping):
        return isinstance(value, Mapping)
    if base is bool or base is str:
        return isinstance(value, base)
    if base is int or base is float:
        return isinstance(value, Integral if base is int else Real) and not isinstance(value, bool)
    return True


def _described(hint: Any) -> str:
    """A type in words people can act on."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_described(arg) for arg in args if arg is not type(None))
    if origin is typing.Literal:
        return f"one of: {', '.join(map(str, sorted(args, key=str)))}"
    base = origin or hint
    if base in (tuple, list, Sequence):
        inner = [_described(arg) for arg in args if arg is not Ellipsis]
        return f"a list{' of: ' + ', '.join(inner) if inner else ''}"
    if base in (dict, Mapping):
        return "a table"
    return {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(base, str(base))
