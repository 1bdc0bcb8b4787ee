import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Literal

import pytest

from killick import registry
from killick.errors import ConfigError
from killick.registry import Registry


@dataclass(frozen=True)
class Thing:
    size: int = 1

    def __post_init__(self):
        if self.size < 0:
            raise ValueError("size must be >= 0")


@pytest.fixture
def things(monkeypatch):
    points: list[EntryPoint] = []
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [p for p in points if p.group == group])
    table = Registry("thing", "killick.things", {"box": "no.such.module:Thing", "path": "pathlib:Path"})
    return table, points


def test_unknown_name_offers_the_nearest(things):
    with pytest.raises(ConfigError, match=r"Unknown thing 'bok'. Known: box, path. Did you mean 'box'\?"):
        things[0].get("bok")


def test_listing_imports_nothing(things):
    assert things[0].names() == ["box", "path"]


def test_broken_entry_fails_only_when_asked_for(things):
    with pytest.raises(ConfigError, match=r"no\.such\.module"):
        things[0].get("box")
    assert set(things[0].broken()) == {"box"}


def test_plugin_joins(things):
    table, points = things
    points.append(EntryPoint("sky", "collections:OrderedDict", "killick.things"))
    assert "sky" in table.names()


def test_two_owners(things):
    table, points = things
    points.append(EntryPoint("path", "collections:OrderedDict", "killick.things"))
    points.append(EntryPoint("sky", "collections:OrderedDict", "killick.things"))
    points.append(EntryPoint("sky", "collections:OrderedDict", "killick.things"))  # installed twice, of one mind
    assert table.names() == ["box", "path", "sky"]  # the quarrel about one name disables no other
    assert table.get("sky").__name__ == "OrderedDict"
    assert "Two owners" in table.broken()["path"]
    with pytest.raises(ConfigError, match=r"Two owners of the thing 'path': pathlib:Path and collections:OrderedDict"):
        table.get("path")


def test_a_module_that_fails_in_any_way_is_one_broken_entry(things, tmp_path, monkeypatch):
    (tmp_path / "fails_on_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    table, points = things
    points.append(EntryPoint("bad", "fails_on_import:Thing", "killick.things"))
    assert "ZeroDivisionError" in table.broken()["bad"]


def test_a_name_that_is_not_like_it_is_not_offered():
    """'problem' and 'rationale' share r, o, l, e in order: 2·4 / (7 + 9) = 0.5."""
    assert "Did you mean" not in registry.nearest("problem", ["question", "gold", "rationale"])
    assert registry.nearest("anker", ["anchor", "repair"]).endswith("Did you mean 'anchor'?")


def test_settings_are_checked(monkeypatch):
    table = Registry("thing", "killick.things", {"thing": "pathlib:Path"})
    monkeypatch.setattr(Registry, "get", lambda self, name: Thing)
    assert table.build("thing", size=3) == Thing(3)
    with pytest.raises(ConfigError, match=r"no setting 'sise'.*Did you mean 'size'"):
        table.build("thing", sise=3)
    with pytest.raises(ConfigError, match="size must be >= 0"):
        table.build("thing", size=-1)


@dataclass(frozen=True)
class Typed:
    whole: int = 1
    real: float | None = None
    flag: bool = False
    text: str = ""
    mode: Literal["fast", "slow"] = "fast"
    table: Mapping[str, int] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    other: "NowhereDefined" = None  # noqa: F821


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"whole": True}, "whole = True must be a whole number"),
        ({"whole": 1.0}, "must be a whole number"),
        ({"real": "1"}, "real = '1' must be a number"),
        ({"real": False}, "must be a number"),
        ({"flag": 1}, "must be true or false"),
        ({"text": 3}, "must be a text"),
        ({"mode": "quick"}, "must be one of: fast, slow"),
        ({"table": [1]}, "must be a table"),
        ({"items": ["a", 1]}, "must be a list of: a text"),
        ({"items": "ab"}, "must be a list"),
    ],
)
@pytest.mark.parametrize("resolvable", [False, True])
def test_types_are_checked(monkeypatch, settings, message, resolvable):
    if resolvable:  # else one annotation cannot be resolved; the others are still checked
        monkeypatch.setattr(sys.modules[__name__], "NowhereDefined", object, raising=False)
    table = Registry("thing", "killick.things", {})
    monkeypatch.setattr(Registry, "get", lambda self, name: Typed)
    with pytest.raises(ConfigError, match=message):
        table.build("thing", **settings)


def test_fitting_values_pass(monkeypatch):
    table = Registry("thing", "killick.things", {})
    monkeypatch.setattr(Registry, "get", lambda self, name: Typed)
    good = {"whole": 2, "real": 1, "flag": True, "text": "a", "mode": "slow", "table": {"a": 1}, "items": ["a"]}
    assert table.build("thing", **good, other=3) == Typed(**good, other=3)
    assert table.build("thing", real=None, items=("a",)).items == ("a",)
