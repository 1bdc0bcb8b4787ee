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
