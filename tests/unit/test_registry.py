from dataclasses import dataclass
from importlib.metadata import EntryPoint

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
    with pytest.raises(ConfigError, match="Two owners of the thing 'path'"):
        table.names()


def test_settings_are_checked(monkeypatch):
    table = Registry("thing", "killick.things", {"thing": "pathlib:Path"})
    monkeypatch.setattr(Registry, "get", lambda self, name: Thing)
    assert table.build("thing", size=3) == Thing(3)
    with pytest.raises(ConfigError, match=r"no setting 'sise'.*Did you mean 'size'"):
        table.build("thing", sise=3)
    with pytest.raises(ConfigError, match="size must be >= 0"):
        table.build("thing", size=-1)
