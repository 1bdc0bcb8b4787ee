"""Every shipped recipe runs two steps and its evaluation; every study runs to its report."""

import json

import pytest

from killick import study as studies
from killick.cli import run
from killick.cli.console import err
from killick.config import load_recipe, shipped_recipes


@pytest.mark.parametrize("name", shipped_recipes())
def test_two_steps(name, byte_llama, gsm8k, shrunk, tmp_path):
    recipe = load_recipe(name)
    sets = dict(shrunk)
    if recipe.model.name_or_path != "nano":
        sets["model.name_or_path"] = str(byte_llama)
    if recipe.task.name == "gsm8k":
        sets["task.path"] = str(gsm8k)
    if recipe.model.lora:
        sets["model.lora.target_modules"] = ["q_proj"]
    argv = ["train", name, "--run-dir", str(tmp_path / "run")]
    for key, value in sets.items():
        argv += ["--set", f"{key}={json.dumps(value)}"]
    assert run(argv) == 0
    assert len((tmp_path / "run" / "train_log.jsonl").read_text().splitlines()) == 2
    for split in recipe.evaluate.splits:
        assert len((tmp_path / "run" / "eval" / split / "records.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("name", studies.shipped_studies())
def test_study_runs_shrunk(name, shrink_study, tmp_path):
    """Arms of a study, two steps each, to the report; a second call finds nothing left to do."""
    path = shrink_study(studies.shipped_studies()[name], tmp_path / f"{name}.toml")
    study = studies.load_study(str(path))
    keep = study.arms if name == "quickstart" else study.arms[:2]
    small = studies.Study(**{**study.__dict__, "arms": keep, "seeds": study.seeds[:1], "baseline": None})
    out = tmp_path / "out"
    assert studies.run(small, out, err) == []
    studies.finish(small, out, err)
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["models"]) == len(keep) + 1
    page = (out / "report.html").read_text()
    assert all(arm.label in page for arm in keep)
    assert all(job.finished() for job in studies.plan(small, out))
