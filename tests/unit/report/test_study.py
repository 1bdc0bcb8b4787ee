import dataclasses
import json

import pytest

from killick.errors import ConfigError, RecordError
from killick.evaluate.folder import EvaluationFolder
from killick.report import load_study
from killick.report.estimates import difference
from killick.report.files import read_log
from killick.report.page import render


def _edit(folder, **changes):
    path = folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def small(synthetic, tmp_path):
    return synthetic.write_study(tmp_path / "s", betas=(0.02,), methods=("grpo",), splits=("mixed",))


def test_a_study(study_dir):
    study = load_study(study_dir)
    assert study.kind == "study"
    assert [arm.name for arm in study.arms] == ["base", "grpo-0.02", "grpo-0.3", "sage-0.02", "sage-0.3"]
    assert study.base is study.arms[0]
    assert study.methods == ["grpo", "sage"]
    assert study.splits == ["mixed", "hard"]
    assert study.missing == []
    assert [run.seed for run in study.arm("sage-0.3").runs] == [0, 1]
    assert study.arm("sage-0.3").sweep_text == "beta=0.3"


def test_a_single_run(study_dir):
    study = load_study(study_dir / "arms/sage-0.3/seed1")
    assert study.kind == "run"
    assert study.seeds == [1]
    assert [arm.name for arm in study.arms] == ["sage"]
    assert sorted(study.splits) == ["hard", "mixed"]


def test_a_single_run_says_what_is_unfinished(synthetic, tmp_path):
    synthetic.write_run(tmp_path / "r", seed=0, beta=0.02, method="grpo")
    for split in ("mixed", "hard"):
        synthetic.write_evaluation(tmp_path / "r/eval" / split, split, seed=1)
    (tmp_path / "r/eval/hard/summary.json").unlink()
    study = load_study(tmp_path / "r")
    assert study.splits == ["mixed"]
    assert study.missing == ["The evaluation of hard is not finished."]


def test_evaluation_folders(study_dir):
    place = study_dir / "base/eval/mixed"
    assert load_study(place).kind == "evaluations"
    study = load_study([place, study_dir / "base/eval/hard", study_dir / "arms/sage-0.3/seed0/eval/mixed"])
    # two splits of one model are one arm
    assert [(arm.label, len(arm.evaluations("mixed")), len(arm.evaluations("hard"))) for arm in study.arms] == [
        ("model", 1, 1),
        ("sage-0.3", 1, 0),
    ]
    # the same model twice on one split stays apart
    assert [arm.label for arm in load_study([place, place]).arms] == [str(place), f"{place} (2)"]


def test_several_folders_are_compared_with_the_first(synthetic, tmp_path):
    """Models called alike go by their folders, whether these are evaluations, hold some, or are runs."""
    for run, seed in (("a", 0), ("c", 1)):
        synthetic.write_run(tmp_path / run, seed=seed, beta=0.02, method="grpo")
        for split in ("mixed", "hard"):
            synthetic.write_evaluation(tmp_path / run / "eval" / split, split, seed=seed, name=f"/x/{run}/model")
    (tmp_path / "c/eval/hard/summary.json").unlink()
    a, c = tmp_path / "a", tmp_path / "c"
    for folders, labels in (
        ([a, c], [a, c]),
        ([a / "eval", c / "eval"], [a / "eval", c / "eval"]),
        ([a / "eval/mixed", a / "eval/hard", c / "eval/mixed"], [a / "eval/mixed", c / "eval/mixed"]),
    ):
        study = load_study(folders)
        assert (study.kind, study.baseline) == ("evaluations", str(labels[0]))
        assert [(arm.label, sorted(arm.runs[0].evaluations)) for arm in study.arms] == [
            (str(labels[0]), ["hard", "mixed"]),
            (str(labels[1]), ["mixed"]),
        ]
        assert study.missing[-1] == f"{labels[1]}: no finished evaluation of hard."
        gap = difference(study.arms[1], study.arm(study.baseline), "mixed", [1]).at[1].mean
        means = [arm.evaluations("mixed")[0].pass_at([1]).mean() for arm in study.arms]
        assert gap == pytest.approx(means[1] - means[0])
        assert means[1] != means[0]
    assert [len(arm.runs[0].log) > 0 for arm in load_study([a, c]).arms] == [True, True]
    assert f"{c}: the evaluation of hard is not finished." in load_study([a, c]).missing
    named = synthetic.write_evaluation(tmp_path / "n", "mixed", seed=2, name="other")
    assert [arm.label for arm in load_study([a / "eval/mixed", tmp_path / "n"]).arms] == ["model", named.model.name]
    assert load_study([a]).baseline is None


def test_two_models_of_one_name_in_a_folder_are_two(synthetic, tmp_path):
    for n, split in enumerate(("mixed", "hard")):
        synthetic.write_evaluation(tmp_path / split, split, seed=n, name=f"/x/{n}/model")
    assert [arm.label for arm in load_study(tmp_path).arms] == [str(tmp_path / "hard"), str(tmp_path / "mixed")]


def test_a_study_has_no_place_in_a_list(study_dir):
    with pytest.raises(RecordError, match="is a study, which has a report of its own"):
        load_study([study_dir, study_dir / "base/eval"])


def test_another_backend_is_compared_when_allowed(synthetic, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    specs = [synthetic.write_evaluation(folder, "mixed", seed=n) for n, folder in enumerate(folders)]
    other = dataclasses.replace(specs[1], backend={"name": "vllm"})
    EvaluationFolder(folders[1]).write_spec(other, 1.5)
    records = (folders[1] / "records.jsonl").read_text().replace(specs[1].hash(), other.hash())
    (folders[1] / "records.jsonl").write_text(records)
    study = load_study(folders)
    assert study.unlike == ["Split mixed: the models were evaluated with different backend.name."]
    assert difference(study.arms[1], study.arms[0], "mixed") is None
    study = load_study(folders, allow=["backend"])
    assert (study.unlike, study.differing) == ([], ["Split mixed: backend.name is transformers / vllm."])
    assert difference(study.arms[1], study.arms[0], "mixed") is not None
    assert "Allowed to differ" in render(study)
    with pytest.raises(ConfigError, match="Did you mean 'backend'"):
        load_study(folders, allow=["backends"])
    with pytest.raises(ConfigError, match="Name several folders"):
        load_study(folders[0], allow=["backend"])


def test_a_folder_of_evaluations(study_dir, synthetic, tmp_path):
    """As `killick compare` takes it: a run's `eval`, or that of several tasks."""
    study = load_study(study_dir / "base/eval")
    assert (study.kind, study.splits, [arm.label for arm in study.arms]) == (
        "evaluations",
        ["hard", "mixed"],
        ["model"],
    )
    for task in ("gsm8k", "math500"):
        synthetic.write_evaluation(tmp_path / "e" / task / "test", "test", seed=0, task=task)
    synthetic.write_evaluation(tmp_path / "e/open", "test", seed=0, task="aime24")
    (tmp_path / "e/open/summary.json").unlink()
    study = load_study(tmp_path / "e")
    # two tasks have a split of one name: one model, two questions
    assert [(arm.label, list(arm.runs[0].evaluations)) for arm in study.arms] == [
        ("model", ["gsm8k/test", "math500/test"])
    ]
    assert (study.missing, study.unlike) == (["The evaluation of open is not finished."], [])
    for task in ("gsm8k", "math500"):
        (tmp_path / "e" / task / "test/summary.json").unlink()
    with pytest.raises(RecordError, match=r"No evaluation in .* is finished: open, gsm8k/test, math500/test"):
        load_study(tmp_path / "e")


@pytest.mark.parametrize("damage", [{"averages": 3}, {"ks": [1, 2]}, {"sampling": {}}, {"benchmarks": [{}]}])
def test_a_damaged_suite_is_refused(synthetic, tmp_path, damage):
    synthetic.write_evaluation(tmp_path / "aime24-test", "test", seed=0)
    (tmp_path / "suite.json").write_text(json.dumps(synthetic.SUITE))
    assert [one["title"] for one in load_study(tmp_path).suites.values()] == ["Suite"]
    (tmp_path / "suite.json").write_text(json.dumps(synthetic.SUITE | damage))
    with pytest.raises(RecordError, match=r"suite\.json is no report of a suite"):
        load_study(tmp_path)


@pytest.mark.parametrize("make", [None, "empty", "other"])
def test_anything_else_is_refused_with_what_was_found(tmp_path, make):
    folder = tmp_path / "x"
    if make:
        folder.mkdir()
    if make == "other":
        (folder / "notes.txt").write_text("")
    expected = {None: "no such folder", "empty": "nothing", "other": "notes.txt"}[make]
    with pytest.raises(RecordError, match=rf"no study \(study.json\).*Found: {expected}"):
        load_study(folder)
    with pytest.raises(RecordError, match="no study"):
        load_study([folder])


def test_an_empty_list_is_refused():
    with pytest.raises(RecordError, match="No folder"):
        load_study([])


def test_what_is_missing_is_named(synthetic, small):
    index = json.loads((small / "study.json").read_text())
    index["arms"][0]["runs"].append({"seed": 2, "dir": "arms/grpo-0.02/seed2"})
    synthetic.write_run(small / "arms/new", seed=3, beta=0.02, method="grpo")
    index["arms"][0]["runs"].append({"seed": 3, "dir": "arms/new"})
    _edit(small, **index)
    (small / "base/eval/mixed/summary.json").unlink()  # still sampling
    study = load_study(small)
    assert study.missing == [
        "The base has no finished evaluation.",
        "Arm grpo-0.02: the run folder arms/grpo-0.02/seed2 does not exist.",
        "Arm grpo-0.02: arms/new has no finished evaluation.",
    ]


def test_a_split_that_only_some_runs_have_is_named(synthetic, small):
    synthetic.write_evaluation(small / "arms/grpo-0.02/seed0/eval/hard", "hard", seed=1)
    assert load_study(small).missing == [
        "base: no finished evaluation of hard.",
        "GRPO β=0.02, seed 1: no finished evaluation of hard.",
    ]


def test_other_sampling_settings_are_named(synthetic, small):
    other = small / "arms/grpo-0.02/seed0/eval/hard"
    synthetic.write_evaluation(other, "hard", seed=1)
    synthetic.write_evaluation(small / "base/eval/hard", "hard", seed=1, temperature=0.6)
    _edit(small, base={"label": "base", "evals": {"mixed": "base/eval/mixed", "hard": "base/eval/hard"}})
    assert load_study(small).unlike == ["Split hard: the models were evaluated with different sampling.temperature."]


@pytest.mark.parametrize("place", ["../outside", "/etc", "a/../../b"])
def test_folders_outside_the_study_are_refused(small, place):
    arm = {"name": "a", "label": "a", "method": "m", "runs": [{"seed": 0, "dir": place}]}
    _edit(small, arms=[arm], baseline=None)
    with pytest.raises(RecordError, match="below the study folder"):
        load_study(small)


def test_damaged_index(small):
    _edit(small, baseline="sage")
    with pytest.raises(RecordError, match=r"'sage' as baseline; its arms are base, grpo-0.02"):
        load_study(small)
    _edit(small, baseline=None, arms=[{"name": "a"}])
    with pytest.raises(RecordError, match="lacks or misplaces 'runs'"):
        load_study(small)
    _edit(small, arms=[], settings="abc")
    with pytest.raises(RecordError, match="lacks or misplaces"):
        load_study(small)
    (small / "study.json").write_text("{")
    with pytest.raises(RecordError, match=r"study.json is not JSON"):
        load_study(small)
    (small / "study.json").write_text("[]")
    with pytest.raises(RecordError, match="holds no JSON object"):
        load_study(small)


def test_names_are_unique_and_equal_labels_told_apart(small):
    arms = json.loads((small / "study.json").read_text())["arms"]
    _edit(small, arms=arms * 2)
    with pytest.raises(RecordError, match=r"two arms named 'grpo-0\.02'"):
        load_study(small)
    _edit(small, arms=[arms[0], arms[0] | {"name": "again"}])
    assert [arm.label for arm in load_study(small).arms][1:] == ["GRPO β=0.02 (grpo-0.02)", "GRPO β=0.02 (again)"]


def test_log_leaves_out_a_torn_last_line_only(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n\n{"step": 2}\n{"step": 3')
    assert read_log(path) == [{"step": 1}, {"step": 2}]
    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(RecordError, match="line 2, is not JSON"):
        read_log(path)
    path.write_text("[1]\n")
    with pytest.raises(RecordError, match="line 1, holds a list"):
        read_log(path)


@pytest.mark.parametrize("step", ['"x"', "null", "true", "-1", "1e999", "NaN", "1" + "0" * 400, "1" * 5000])
def test_a_step_that_is_no_number_is_refused(tmp_path, step):
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"step": 1}}\n{{"step": {step}, "loss": 1}}\n')
    with pytest.raises(RecordError, match=r"log\.jsonl, line 2,"):
        read_log(path)
    path.write_text('{"step": 1}\n{"step": 2, "loss": ' + "1" * 400 + "}\n")
    with pytest.raises(RecordError, match="loss beyond all measure"):
        read_log(path)
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(RecordError, match="line 1, is not JSON"):
        read_log(path)


def test_folder_names_beyond_any_file_system_are_refused(small):
    arm = {"name": "a", "label": "a", "method": "m", "runs": [{"seed": 0, "dir": "d" * 5000}]}
    _edit(small, arms=[arm], baseline=None)
    with pytest.raises(RecordError, match=r"Cannot read 'd*"):
        load_study(small)
    with pytest.raises(RecordError, match=r"Cannot read 'e*"):
        load_study("e" * 5000)
