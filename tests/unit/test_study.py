"""Study files: arms and sweeps, what is refused, what counts as finished."""

import json
from pathlib import Path

import pytest

from killick import study as studies
from killick.errors import ConfigError, RecordError

GOOD = """
[study]
recipe = "nano"
seeds = [3, 4]
jobs = 1
[set]
"trl.max_steps" = 2
"evaluate.num_problems" = 5
[[arm]]
name = "plain"
label = "GRPO"
[arm.set]
"method.anchor.name" = ""
[[arm]]
name = "sage"
[arm.sweep]
"trl.beta" = [0.1, 0.2]
"method.anchor.gamma" = [1.0, 2.0]
"""


def write(tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text)
    return str(path)


@pytest.fixture
def good(tmp_path):
    text = GOOD.replace('"method.anchor.name" = ""', '"method.anchor.gamma" = 0.5')
    return write(tmp_path, text)


def test_sweep_is_a_product(good):
    study = studies.load_study(good)
    assert [a.name for a in study.arms] == [
        "plain", "sage-beta0.1-gamma1.0", "sage-beta0.1-gamma2.0", "sage-beta0.2-gamma1.0", "sage-beta0.2-gamma2.0",
    ]  # fmt: skip
    assert study.seeds == (3, 4)
    assert {a.method for a in study.arms} == {"GRPO", "sage"}
    assert "trl.beta=0.2" in study.sets(study.arms[-1], 4)
    assert "run.seed=4" in study.sets(study.arms[-1], 4)
    assert studies.load_study(good, seeds=3).seeds == (0, 1, 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[arm]]", "[[arms]]", "Did you mean 'arm'"),
        ("seeds", "seads", "Did you mean 'seeds'"),
        ('recipe = "nano"', "", "needs .study. recipe"),
        ('name = "sage"', 'name = "plain"\nsweep = {}\n[[arm]]\nname = "plain"', "same name"),
        ('name = "sage"', 'name = "sage"\nagainst = "plane"', "names no arm in `against`"),
        ('"trl.beta"', '"trll.beta"', "unknown section .trll"),
    ],
)
def test_refused(tmp_path, good, old, new, message):
    text = Path(good).read_text().replace(old, new)
    if "same name" in message:
        text = text.split("[arm.sweep]")[0]
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=message):
        studies.load_study(path)


def test_counterpart_has_the_same_sweep_values(tmp_path):
    arms = """
[[arm]]
name = "a"
[arm.sweep]
"trl.beta" = [0.1, 0.2]
[[arm]]
name = "b"
against = "a"
[arm.sweep]
"trl.beta" = [0.1, 0.2]
"""
    study = studies.load_study(write(tmp_path, GOOD.split("[[arm]]")[0] + arms))
    assert [a.against for a in study.arms] == [None, None, "a-beta0.1", "a-beta0.2"]


def test_plan_writes_the_description_and_refuses_another(good, tmp_path):
    study = studies.load_study(good)
    out = tmp_path / "out"
    jobs = studies.plan(study, out)
    assert len(jobs) == 1 + 2 * 5
    data = json.loads((out / "study.json").read_text())
    assert data["arms"][1]["runs"][0] == {"seed": 3, "dir": "arms/sage-beta0.1-gamma1.0/seed3"}
    assert not any(job.finished() for job in jobs)
    other = studies.load_study(
        write(tmp_path, Path(good).read_text().replace('num_problems" = 5', 'num_problems" = 6'))
    )
    with pytest.raises(RecordError, match="num_problems: 5 / 6"):
        studies.plan(other, out)


def test_finished_needs_model_and_all_records(good, tmp_path):
    job = studies.plan(studies.load_study(good), tmp_path / "out")[1]
    for split in ("mixed", "hard"):
        folder = job.folder / "eval" / split
        folder.mkdir(parents=True)
        (folder / "records.jsonl").write_text("{}\n" * (5 * 128))
    assert not job.finished()
    (job.folder / "model").mkdir()
    (job.folder / "model" / "done.json").write_text("{}")
    assert job.finished()


HEAD = '[study]\nrecipe = "nano"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study = 3\n[[arm]]\nname = 'a'", "study must be a table"),
        (HEAD + "[arm]\nname = 'a'", "arm must be a list"),
        ("arm = [1]\n" + HEAD, r"\[\[arm\]\] must be a table"),
        ("set = 1\n" + HEAD + "[[arm]]\nname = 'a'", "set must be a table"),
        (HEAD + "title = 3\n[[arm]]\nname = 'a'", "title must be a text"),
        (HEAD + "jobs = -1\n[[arm]]\nname = 'a'", "jobs must be a whole number of at least 1, found -1"),
        (HEAD + "jobs = true\n[[arm]]\nname = 'a'", "jobs must be a whole number"),
        (HEAD + "seeds = []\n[[arm]]\nname = 'a'", "seeds must list"),
        (HEAD + "seeds = [1, 1]\n[[arm]]\nname = 'a'", "seeds must list"),
        (HEAD + "seeds = [-1]\n[[arm]]\nname = 'a'", "seeds must list"),
        (HEAD + "seeds = ['1']\n[[arm]]\nname = 'a'", "seeds must list"),
        (HEAD + "baseline = 'b'\n[[arm]]\nname = 'a'", "baseline = 'b' names no arm"),
        (HEAD + "[[arm]]\nname = '../a'", "names a folder"),
        (HEAD + "[[arm]]\nname = 'base'", "names a folder"),
        (HEAD + "[[arm]]\nname = '..'", "names a folder"),
        (HEAD + f"[[arm]]\nname = '{'a' * 201}'", "names a folder"),
        (HEAD + "[[arm]]\nname = 3", "name must be a text"),
        (HEAD + "[[arm]]\nname = 'a'\nsweep = {'trl.beta' = 0.1}", "must be a list of values"),
        (HEAD + "[[arm]]\nname = 'a'\nsweep = {'trl.beta' = []}", "must be a list of values"),
        (HEAD + "[[arm]]\nname = 'a'\nset = {'trl.beta' = 2020-01-01}", "date or time"),
        (HEAD + "[[arm]]\nname = 'a'\nset = {'trl.beta=3' = 1}", "no key of a recipe"),
    ],
)
def test_wrong_types_and_names_are_refused(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        studies.load_study(write(tmp_path, text))


def test_numbers_of_the_command_line_are_checked_too(good):
    for wrong in ({"jobs": -1}, {"jobs": 0}, {"seeds": 0}):
        with pytest.raises(ConfigError, match="at least 1"):
            studies.load_study(good, **wrong)
    with pytest.raises(ConfigError, match="no file name"):
        studies.load_study("a" * 5000)


def test_sweep_values_become_folder_names(tmp_path):
    arm = "[[arm]]\nname = 'a'\n[arm.sweep]\n'model.name_or_path' = ['org/model one', '../x']"
    names = [arm.name for arm in studies.load_study(write(tmp_path, HEAD + arm)).arms]
    assert names == ["a-name_or_pathorg_model_one", "a-name_or_path.._x"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"evaluate.top_p" = 3.0', "The base: sampling.top_p"),
        ('"evaluate.batch_size" = 0', "The base: batch_size"),
        ('"evaluate.splits" = ["hart"]', "The base: The task countdown has no split 'hart'"),
        ('"task.split" = "trian"', "The base: The task countdown has no split 'trian'"),
        ('"evaluate.num_problems" = 0', "The base: limit must be at least 1"),
    ],
)
def test_check_finds_what_only_the_evaluation_would_trip_over(tmp_path, line, message):
    study = studies.load_study(write(tmp_path, HEAD + f"[set]\n{line}\n[[arm]]\nname = 'a'"))
    with pytest.raises(ConfigError, match=message):
        studies.check(study)


def test_check_names_the_arm_and_loads_equal_problems_once(tmp_path, monkeypatch):
    from killick.tasks.countdown import Countdown

    calls, real = [], Countdown.rows

    def rows(self, split, limit=None):
        calls.append((split, limit))
        return real(self, split, limit)

    monkeypatch.setattr(Countdown, "rows", rows)
    text = (
        HEAD
        + """[set]
"evaluate.splits" = ["hard"]
"evaluate.num_problems" = 2
"task.limit" = 4
[[arm]]
name = "a"
[[arm]]
name = "b"
"""
    )
    studies.check(studies.load_study(write(tmp_path, text)))
    assert calls == [("hard", 2), ("train", 4)]
    study = studies.load_study(write(tmp_path, text + "[arm.set]\n'evaluate.max_tokens' = 0\n"))
    with pytest.raises(ConfigError, match=r"Arm 'b': sampling\.max_tokens"):
        studies.check(study)


def test_overrides_reach_every_job_and_arms_can_be_chosen():
    names = ["grpo", "sort-coefficient0.5", "dft-coefficient0.5"]
    chosen = studies.load_study("sort", 2, 1, ["model.name_or_path=models/weak", "trl.beta=0.1"], names)
    assert [arm.name for arm in chosen.arms] == ["grpo", "dft-coefficient0.5", "sort-coefficient0.5"]
    assert [arm.against for arm in chosen.arms] == [None, None, "dft-coefficient0.5"]
    assert studies.load_study("sort", only=["grpo", "sort-coefficient0.5"]).arms[1].against is None
    for arm in (None, *chosen.arms):
        sets = chosen.sets(arm, 0)
        assert {'model.name_or_path="models/weak"', "trl.beta=0.1"} <= set(sets)


@pytest.mark.parametrize(
    ("overrides", "only", "message"),
    [
        (["trl.beta"], [], "not KEY=VALUE"),
        (["trl.beta="], [], "not KEY=VALUE"),
        (["trl.bta=1"], [], None),
        ([], ["sorted"], "--arm 'sorted' is no arm"),
        ([], ["sort-coefficient0.5"], "names no arm"),
    ],
)
def test_wrong_overrides_and_arms(overrides, only, message):
    if message is None:  # the key is checked with the arm's components
        with pytest.raises(ConfigError, match="bta"):
            studies.check(studies.load_study("sort", overrides=overrides))
        return
    with pytest.raises(ConfigError, match=message):
        studies.load_study("sort", overrides=overrides, only=only)
