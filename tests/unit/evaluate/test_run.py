import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from killick.errors import ConfigError, DataError, RecordError
from killick.evaluate.backends.transformers import LoadedModel
from killick.evaluate.folder import EvaluationFolder, load
from killick.evaluate.run import evaluate
from killick.evaluate.writer import RecordWriter
from killick.verifiers.number import NumberVerifier
from killick.verifiers.types import RIGHT


@pytest.fixture
def go(model, tokenizer, task):
    def call(spec, out_dir, **kwargs):
        return evaluate(model, tokenizer, kwargs.pop("task", task), spec, out_dir, progress=False, **kwargs)

    return call


def sorted_lines(folder):
    return sorted((folder / "records.jsonl").read_bytes().splitlines(keepends=True))


def test_everything_is_written_and_adds_up(go, make_spec, tmp_path):
    spec = make_spec(num_samples=20)
    result = go(spec, tmp_path / "deep" / "out")
    stored = json.loads((result.folder / "spec.json").read_text())
    assert stored["hash"] == spec.hash()
    assert stored["sampling"]["top_p"] == 1.0
    assert stored["model"] == {"name": "tiny", "fingerprint": "f0"}
    assert {"killick", "torch", "transformers", "numpy"} <= set(stored["versions"])
    assert stored["wall_s"] > 0
    summary = json.loads((result.folder / "summary.json").read_text())
    assert summary == result.summary
    assert list(summary["pass_at"]) == ["1", "2", "4", "8", "16", "20"]
    table = result.table
    assert table.correct_QN.shape == (5, 20)
    assert summary["pass_at"]["1"]["mean"] == pytest.approx(table.correct_QN.mean())
    assert summary["pass_at"]["20"]["mean"] == pytest.approx(table.correct_QN.any(axis=1).mean())
    assert sum(summary["reason_frac"].values()) == pytest.approx(1.0)
    assert summary["reason_frac"]["right"] == pytest.approx(table.correct_QN.mean())
    assert summary["reason_frac"]["no_answer"] > 0  # empty completions are ordinary
    assert sum(summary["modes"]["frac"].values()) + summary["modes"]["rest_frac"] == pytest.approx(1.0)
    # Distinct modes per problem, counted the slow way.
    distinct = [len({m for m in row if m >= 0}) for row in table.mode_QN.tolist()]
    assert summary["modes"]["num_distinct_per_problem_mean"] == pytest.approx(sum(distinct) / 5)
    assert (table.mode_QN >= 0).tolist() == table.correct_QN.tolist()


def test_a_folder_read_back_equals_the_result(go, make_spec, tmp_path):
    result = go(make_spec(), tmp_path)
    again = load(tmp_path)
    assert again.spec == dataclasses.replace(result.spec)
    assert again.table.correct_QN.tolist() == result.table.correct_QN.tolist()
    assert again.wall_s == result.summary["wall_s"]


@pytest.mark.parametrize("kept_share", [0.0, 0.37, 0.8, 1.0])
def test_resume_after_a_cut_gives_the_uninterrupted_records(go, make_spec, tmp_path, kept_share):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    expected = go(make_spec(batch_size=30), whole)
    go(make_spec(batch_size=7), cut)
    data = (cut / "records.jsonl").read_bytes()
    (cut / "records.jsonl").write_bytes(data[: int(len(data) * kept_share)])
    (cut / "summary.json").unlink()
    resumed = go(make_spec(batch_size=1), cut)
    assert sorted_lines(cut) == sorted_lines(whole)
    assert {**resumed.summary, "wall_s": 0} == {**expected.summary, "wall_s": 0}


CHILD = """
import signal, sys, time, importlib.util
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background parent may have it ignored
from pathlib import Path
spec = importlib.util.spec_from_file_location("fixtures", sys.argv[1])
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)
from killick.evaluate import run
from killick.evaluate.settings import ModelIdentity, Performance, SamplingSettings, describe
import dataclasses
class Slow(fixtures.ToyTask):
    @property
    def verifier(self):
        time.sleep(0.02)  # one batch a time, so that the signal lands in the middle
        return super().verifier
sampling = SamplingSettings(num_samples=6, max_tokens=8, seed=3)
spec = describe("toy", fixtures.ToyTask(), "test", None, sampling, ModelIdentity("tiny", "f0"))
spec = dataclasses.replace(spec, performance=Performance(batch_size=1))
try:
    run.evaluate(fixtures.make_model(), fixtures.make_tokenizer(), Slow(), spec, Path(sys.argv[2]), progress=False)
except KeyboardInterrupt:
    sys.exit(77)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 77)])
def test_a_killed_process_is_resumed(go, make_spec, tmp_path, sent, code):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    conftest = os.path.join(os.path.dirname(__file__), "conftest.py")
    child = subprocess.Popen([sys.executable, "-c", CHILD, conftest, str(killed)])
    records = killed / "records.jsonl"
    deadline = time.monotonic() + 120
    while child.poll() is None and time.monotonic() < deadline:
        if records.exists() and records.read_bytes().count(b"\n") >= 3:
            break
        time.sleep(0.005)
    child.send_signal(sent)
    assert child.wait(60) == code
    num_before = records.read_bytes().count(b"\n")
    assert 3 <= num_before < 30
    go(make_spec(), whole)
    go(make_spec(), killed)
    assert sorted_lines(killed) == sorted_lines(whole)


def test_finished_evaluation_is_not_sampled_again(go, make_spec, tmp_path, monkeypatch):
    first = go(make_spec(), tmp_path)

    def never(*args, **kwargs):
        raise AssertionError("sampled again")

    monkeypatch.setattr(LoadedModel, "sample", never)
    assert go(make_spec(), tmp_path).summary == first.summary


def test_another_spec_in_the_folder_is_refused_with_the_differences(go, make_spec, tmp_path):
    go(make_spec(), tmp_path)
    before = (tmp_path / "records.jsonl").read_bytes()
    with pytest.raises(RecordError, match=r"sampling.temperature: 1.0 / 0.7.*Choose another folder") as caught:
        go(make_spec(temperature=0.7, seed=9), tmp_path)
    assert "sampling.seed: 3 / 9" in str(caught.value)
    assert (tmp_path / "records.jsonl").read_bytes() == before


def test_a_folder_without_a_record_is_free(go, make_spec, tmp_path):
    """What a refused request leaves: settings, no record; whatever is wrong with them, they bind nobody."""
    folder = EvaluationFolder(tmp_path)
    folder.claim(make_spec(temperature=0.7), resume=True)
    for left in (folder.spec_file.read_text(), "{"):
        folder.spec_file.write_text(left)
        folder.records_file.write_bytes(b'{"run": "torn')
        result = go(make_spec(), tmp_path, resume=False)
        assert load(tmp_path).spec == result.spec == make_spec()
        folder.records_file.unlink()


def test_a_folder_whose_first_record_is_still_to_come_is_not_taken(make_spec, tmp_path):
    folder, spec = EvaluationFolder(tmp_path), make_spec()
    folder.claim(spec, resume=True)
    with (
        RecordWriter(folder.records_file, spec.hash()),
        pytest.raises(RecordError, match="being written by another process"),
    ):
        folder.claim(make_spec(temperature=0.7), resume=True)
    assert folder.read_spec()[0] == spec


def test_no_resume_refuses_existing_records(go, make_spec, tmp_path):
    go(make_spec(), tmp_path, resume=False)
    with pytest.raises(RecordError, match="already holds records"):
        go(make_spec(), tmp_path, resume=False)


def test_records_without_settings_and_edited_settings_are_refused(go, make_spec, tmp_path):
    go(make_spec(), tmp_path)
    stored = (tmp_path / "spec.json").read_text()
    (tmp_path / "spec.json").write_text(stored.replace('"top_p": 1.0', '"top_p": 0.9'))
    with pytest.raises(RecordError, match="was edited"):
        go(make_spec(), tmp_path)
    (tmp_path / "spec.json").write_text("{")
    with pytest.raises(RecordError, match="is not JSON"):
        go(make_spec(), tmp_path)
    (tmp_path / "spec.json").unlink()
    with pytest.raises(RecordError, match=r"no spec.json"):
        go(make_spec(), tmp_path)


def test_unwritable_folder_is_a_clear_error(go, make_spec, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match=r"Cannot (create|write).*writable folder"):
        go(make_spec(), tmp_path / "file" / "out")


def test_changed_problems_are_refused(go, make_spec, task, tmp_path):
    with pytest.raises(ConfigError, match="describes other problems"):
        go(make_spec(), tmp_path, task=dataclasses.replace(task, letters="abd"))


def test_equal_uids_are_refused(go, make_spec, task, tmp_path):
    class Twice(type(task)):
        def rows(self, split, limit=None):
            return super().rows(split, 2) + super().rows(split, 1)

    with pytest.raises(DataError, match="uid 'p0'"):
        go(make_spec(), tmp_path, task=Twice())


def test_a_crashing_verifier_is_counted_and_logged(go, make_spec, task, tmp_path, caplog):
    class Broken(type(task)):
        @property
        def verifier(self):
            def judge(text, answer):
                if len(text) > 3:
                    raise ZeroDivisionError
                return RIGHT

            return judge

        def mode(self, completion):
            return None

    result = go(make_spec(), tmp_path, task=Broken())
    texts = [json.loads(line)["text"] for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert result.summary["reason_frac"]["error"] == pytest.approx(sum(len(t) > 3 for t in texts) / len(texts))
    assert result.summary["modes"] == {
        "frac": {}, "rest_frac": 0.0, "num_distinct": 0, "num_distinct_per_problem_mean": 0.0,
    }  # fmt: skip
    assert "ZeroDivisionError" in caplog.text


def test_an_unreadable_gold_stops_the_evaluation(go, make_spec, task, tmp_path):
    class Unreadable(type(task)):
        @property
        def verifier(self):
            return NumberVerifier()  # the golds of the toy task are letters

    with pytest.raises(DataError, match=r"gold answer '[abc]' is not a plain number"):
        go(make_spec(), tmp_path, task=Unreadable())


def test_progress_goes_to_standard_error_only(model, tokenizer, task, make_spec, tmp_path, capsys):
    evaluate(model, tokenizer, task, make_spec(), tmp_path, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "30/30" in shown.err
    assert "samples/s" in shown.err


@pytest.mark.parametrize("wall_s", ["null", '"x"', "-1.0", "NaN", "Infinity", "true"])
def test_seconds_that_are_none_are_refused(go, make_spec, tmp_path, wall_s):
    go(make_spec(), tmp_path)
    stored = json.loads((tmp_path / "spec.json").read_text())
    text = json.dumps({**stored, "wall_s": 0}).replace('"wall_s": 0', f'"wall_s": {wall_s}')
    (tmp_path / "spec.json").write_text(text)
    for attempt in (lambda: load(tmp_path), lambda: go(make_spec(), tmp_path)):
        with pytest.raises(RecordError, match=r"spec\.json: wall_s = .* is no number of seconds"):
            attempt()


@pytest.mark.parametrize("change", [{"versions": [1]}, {"model": {"name": {}, "fingerprint": "f0"}}, {"sampling": 1}])
def test_settings_of_the_wrong_shape_are_refused(go, make_spec, tmp_path, change):
    go(make_spec(), tmp_path)
    stored = json.loads((tmp_path / "spec.json").read_text())
    (tmp_path / "spec.json").write_text(json.dumps({**stored, **change}))
    with pytest.raises(RecordError):
        load(tmp_path)


@pytest.mark.parametrize(("old", "new"), [('"uid":"p0"', '"uid":"zz"'), ('"sample":0', '"sample":77')])
def test_records_that_are_not_of_this_evaluation_are_refused(go, make_spec, tmp_path, old, new):
    go(make_spec(), tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(RecordError, match="1 records that are not of this evaluation"):
        go(make_spec(), tmp_path)
