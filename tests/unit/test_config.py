"""Recipes: what is refused, and that nothing is silently ignored."""

import pytest

from killick.config import apply_overrides, load_recipe, parse_recipe, shipped_recipes
from killick.errors import ConfigError

GOOD = {
    "run": {"name": "x"},
    "model": {"name_or_path": "nano"},
    "task": {"name": "countdown", "split": "train", "depth": 3},
    "method": {"anchor": {"kl_form": "k3_loss", "name": "branch", "gamma": 0.3}},
    "trl": {"beta": 0.05},
}


def test_sections_and_open_ends():
    recipe = parse_recipe(GOOD)
    assert recipe.anchor.settings == {"gamma": 0.3}
    assert recipe.task.settings == {"depth": 3}
    assert recipe.evaluate.num_samples == 128


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("runn.name=x", r"unknown section \[runn\].*Did you mean 'run'"),
        ("run.sead=1", r"\[run\] has no key 'sead'.*Did you mean 'seed'"),
        ("run.seed=one", r"\[run\] seed must be int, found 'one'"),
        ("run.seed=true", r"\[run\] seed must be int, found True"),
        ("evaluate.splits=mixed", r"splits must be a list of strings"),
        ("method.anker.kl_form=none", r"unknown slot \[method.anker\].*Did you mean 'anchor'"),
        ("method.group.name=luffy", r"no group component is registered yet"),
        ("method.repair=5", r"\[method.repair\] must be a table"),
        ("method.repair.name=5", r"\[method.repair\] name must be str"),
        ("method.anchor.kl_form=", r"must say kl_form"),
        ("run.name=", r"\[run\] needs 'name'"),
        ("run=5", r"\[run\] must be a table"),
        ("run.name.x=5", r"'name' is a value, not a table"),
        ("run.seed", r"not KEY=VALUE"),
    ],
)
def test_refused(override, message):
    with pytest.raises(ConfigError, match=message):
        parse_recipe(apply_overrides(GOOD, [override]))


def test_override_values_are_toml():
    data = apply_overrides(GOOD, ["trl.beta=0.3", "trl.x=[1, 2]", "trl.y=word", 'trl.z="a b"', "model.lora.r=8"])
    assert data["trl"] == {"beta": 0.3, "x": [1, 2], "y": "word", "z": "a b"}
    assert data["model"]["lora"] == {"r": 8}
    assert GOOD["trl"] == {"beta": 0.05}


def test_a_component_replaced_by_name_takes_its_settings_with_it():
    for overrides in (["method.anchor.horizon=9", "method.anchor.name=position"], ["method.anchor.name=position"]):
        anchor = parse_recipe(apply_overrides(GOOD, overrides)).anchor
        given = {"horizon": 9} if len(overrides) == 2 else {}
        assert (anchor.name, anchor.kl_form, anchor.settings) == ("position", "k3_loss", given)
    assert parse_recipe(apply_overrides(GOOD, ["method.anchor.name=branch"])).anchor.settings == {"gamma": 0.3}
    without = parse_recipe(apply_overrides(GOOD, ["method.anchor.name="])).anchor
    assert (without.name, without.settings) == (None, {})
    task = parse_recipe(apply_overrides(GOOD, ["task.name=gsm8k", "task.path=data"])).task
    assert (task.split, task.settings) == ("train", {"path": "data"})
    assert GOOD["task"]["depth"] == 3


@pytest.mark.parametrize(
    ("key", "instead"), [("output_dir", "run.output_dir, or --run-dir"), ("save_steps", "run.save_every")]
)
def test_a_trl_setting_that_the_recipe_has_elsewhere_names_the_place(key, instead):
    with pytest.raises(ConfigError, match=rf"\[trl\] {key} is set by another section of the recipe. Use {instead}"):
        parse_recipe(apply_overrides(GOOD, [f"trl.{key}=1"]))


def test_hash_follows_what_matters():
    base = parse_recipe(GOOD).hash()
    assert parse_recipe(apply_overrides(GOOD, ["run.name=y", "run.output_dir=z"])).hash() == base
    for change in ("run.seed=1", "trl.beta=0.1", "method.anchor.gamma=0.4", "task.depth=4"):
        assert parse_recipe(apply_overrides(GOOD, [change])).hash() != base


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_are_valid_and_say_what_they_cost(name):
    from killick.engines.trl.args import build_args

    recipe = load_recipe(name)
    first = shipped_recipes()[name].read_text().splitlines()[0]
    assert first.startswith("# ")
    assert "minute" in first or "hour" in first
    build_args(recipe, __import__("pathlib").Path("unused"))


def test_unknown_recipe_offers_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'nano'"):
        load_recipe("nanno")


def test_broken_toml(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text("[run\n")
    with pytest.raises(ConfigError, match=r"not valid TOML.*line 1"):
        load_recipe(str(path))
