import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from killick.errors import ConfigError, RecordError
from killick.evaluate.compare import Comparison, compare
from killick.evaluate.folder import EvaluationFolder
from killick.evaluate.macro import compare_suites
from killick.evaluate.records import Record
from killick.evaluate.settings import EvaluationSpec, ModelIdentity, Performance, SamplingSettings
from killick.evaluate.tables import comparison_tables, suite_tables
from killick.evaluate.texts import PatternRequest
from killick.evaluate.writer import RecordWriter


@pytest.fixture
def folders(tmp_path, write_evaluation):
    weak = write_evaluation(tmp_path / "weak", 0.2, fingerprint="f1", num_samples=16)
    strong = write_evaluation(tmp_path / "strong", 0.8, seed=1, fingerprint="f2", num_samples=16)
    return weak, strong


def test_numbers_and_paired_differences(folders):
    weak, strong = folders
    result = compare([weak.path, strong.path])
    assert result.ks == (1, 2, 4, 8, 16)
    assert result.runs[0].difference == ()
    first, second = weak.right.mean(), strong.right.mean()
    assert result.runs[0].pass_at[0].mean == pytest.approx(first)
    assert result.runs[1].pass_at[0].mean == pytest.approx(second)
    gap = result.runs[1].difference[0]
    assert gap.mean == pytest.approx(second - first)
    assert 0 < gap.low <= gap.mean <= gap.high
    assert json.loads(json.dumps(result.to_dict()))["runs"][1]["difference"][0]["mean"] == pytest.approx(gap.mean)
    assert compare([weak.path, strong.path]) == result  # reproducible
    other = compare([weak.path, strong.path], np.random.default_rng(5))
    assert other.runs[1].difference[0].mean == pytest.approx(gap.mean)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.6}, r"sampling.temperature: 1.0 against 0.6"),
        ({"num_samples": 8}, r"sampling.num_samples: 16 against 8"),
        ({"max_tokens": 9}, r"sampling.max_tokens: 8 against 9"),
        ({"stop": ("h",)}, r"sampling.stop: \[\] against \['h'\]"),
        ({"limit": 4}, r"num_problems: 5 against 4; problems: "),
    ],
)
def test_other_questions_are_refused_with_setting_and_both_values(
    tmp_path, folders, write_evaluation, changes, message
):
    other = write_evaluation(tmp_path / "other", 0.5, **{"num_samples": 16, **changes})
    with pytest.raises(RecordError, match=message):
        compare([folders[0].path, other.path])


def test_other_model_and_sampler_seed_are_what_may_differ(tmp_path, folders, write_evaluation):
    other = write_evaluation(tmp_path / "other", 0.5, num_samples=16, seed=1, fingerprint="f9")
    assert len(compare([folders[0].path, other.path]).runs) == 2


def test_another_backend_or_dtype_is_compared_when_allowed(tmp_path, write_evaluation):
    """Only what was named may differ, and tables and JSON say what did."""

    def run(name, **changes):
        return write_evaluation(tmp_path / name / "test", 0.5, seed=1, fingerprint=name, changes=changes).path

    base = run("base")
    other = run("other", backend={"name": "openai", "dialect": "vllm"}, performance=Performance(dtype="bfloat16"))
    # the allowed differ, and what to add is named; a foreign setting is not among it
    with pytest.raises(RecordError, match=r"'transformers' against 'openai'.*--may-differ backend --may-differ dtype:"):
        compare([base, other])
    with pytest.raises(RecordError, match=r"differ in performance.dtype: 'auto' against 'bfloat16'. .*differ dtype:"):
        compare([base, other], allow=["backend"])
    result = compare([base, other], allow=["backend", "dtype"])
    assert result.differing == {
        "backend.name": ["transformers", "openai"],
        "performance.dtype": ["auto", "bfloat16"],
        "backend.dialect": [None, "vllm"],
    }
    assert not result.differing.keys() & result.settings.keys()
    # the same right samples: the difference is exactly nothing
    assert [one.mean for one in result.runs[1].difference] == [0.0] * len(result.ks)
    assert "Allowed to differ, so part of Δ: backend.name: transformers / openai; perf" in shown(result)
    for parent in (base.parent, other.parent):  # what comes first differs in nothing
        write_evaluation(parent / "alike", 0.5, seed=1, fingerprint="both")
    suites = compare_suites([base.parent, other.parent], allow=["backend", "dtype"])
    assert shown(suites).count("Allowed to differ") == 1
    warmer = run("warmer", backend={"name": "vllm"}, sampling=replace(SamplingSettings(6, 8, 3), temperature=0.5))
    with pytest.raises(RecordError, match=r"temperature: 1.0 against 0.5. Evaluate both with the same task"):
        compare([base, warmer], allow=["backend"])
    with pytest.raises(ConfigError, match="Did you mean 'backend'"):
        compare([base, other], allow=["backends"])
    assert compare([base, base]).differing == {}


def test_unfinished_missing_and_single(tmp_path, folders):
    weak, strong = folders
    with pytest.raises(ConfigError, match="at least 2"):
        compare([weak.path])
    with pytest.raises(RecordError, match="Cannot read"):
        compare([weak.path, tmp_path / "absent"])
    records = strong.path / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RecordError, match=r"'p4' has 15 of 16 samples.*not finished"):
        compare([weak.path, strong.path])
    records.write_bytes(b"".join(lines[:16]))
    with pytest.raises(RecordError, match="1 of 5 problems"):
        compare([weak.path, strong.path])


def test_reading_needs_no_tensor_library():
    code = (
        "import sys, killick.evaluate.compare, killick.evaluate.summary\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]


# ---- what only texts tell: votes and patterns ------------------------------------------------------------------------


def write_texts(path, texts_QN, right="5", task="gsm8k", fingerprint="f0", num_problems=None):
    """An evaluation of number problems whose gold is `right`; `texts_QN` are the completions."""
    sampling = SamplingSettings(num_samples=len(texts_QN[0]), max_tokens=8, seed=0)
    spec = EvaluationSpec(task, {}, "test", len(texts_QN), "digest", sampling, ModelIdentity("m", fingerprint))
    folder = EvaluationFolder(path)
    folder.claim(spec, resume=True)
    records = []
    for q, texts in enumerate(texts_QN):
        for n, text in enumerate(texts):
            reason = "right" if text.endswith(f"#### {right}") else "wrong" if "####" in text else "no_answer"
            records.append(Record(spec.hash(), f"p{q}", n, 0, text, reason == "right", reason, 3, False, None))
    with RecordWriter(folder.records_file, spec.hash()) as writer:
        writer.append(records)
    return path


def shown(result):
    console = Console(width=250)
    tables = comparison_tables if isinstance(result, Comparison) else suite_tables
    with console.capture() as printed:
        for part in tables(result, 250):
            console.print(part)
    return " ".join(printed.get().split())


def test_votes_merge_equal_answers_and_leave_out_samples_without_one(tmp_path):
    """Problem 0: two right ones against 6, 6.0 and 12/2, which are one answer: lost. Problem 1: one right, no rival."""
    first = write_texts(
        tmp_path / "a", [["#### 5", "#### 5", "#### 6", "#### 6.0", "#### 12/2"], ["#### 5"] + ["?"] * 4]
    )
    second = write_texts(tmp_path / "b", [["#### 5"] * 5, ["#### 7", *["?"] * 4]], fingerprint="f1")
    result = compare([first, second])
    assert result.ks == (1, 2, 4, 5)
    assert [run.maj_at.values[-1].mean for run in result.runs] == [0.5, 0.5]
    # k = 1: the share of right samples. First: (2/5 + 1/5) / 2; second: (1 + 0) / 2.
    assert [run.maj_at.values[0].mean for run in result.runs] == pytest.approx([0.3, 0.5])
    assert result.runs[1].maj_at.difference[0].mean == pytest.approx(0.2)
    change = result.runs[1].support
    assert (change.num_solved_base, change.num_solved, change.num_lost, change.num_gained) == (2, 1, 1, 0)
    # Problem 1 has one right sample of ten: dealt out, it is the base's with probability 1/2. Problem 0 has seven.
    assert change.num_by_chance == pytest.approx(0.5)
    assert "maj@5" in shown(result)


def test_without_readable_answers_the_rest_is_compared_and_the_note_says_why(folders):
    result = compare([one.path for one in folders])
    assert [run.maj_at for run in result.runs] == [None, None]
    assert "Unknown task 'toy'" in result.notes[0]
    assert "maj@" not in shown(result)


def test_modes_and_tests_of_every_run_against_the_first(tmp_path, folders, write_evaluation):
    third = write_evaluation(tmp_path / "third", 0.8, seed=7, fingerprint="f3", num_samples=16)
    result = compare([one.path for one in (*folders, third)])
    assert result.runs[0].support is None
    p_values = [run.support.p_rates for run in result.runs[1:]]
    # Five problems that all got better: at best 2 / 2^5.
    assert p_values == pytest.approx([0.0625, 0.0625])
    assert [run.p_rates_holm for run in result.runs[1:]] == pytest.approx([0.125, 0.125])
    assert [run.modes.values[0].mean for run in result.runs] == [1.0, 1.0, 1.0]
    text = shown(result)
    for part in ("By chance", "(0.125)", "adjusted for 2 runs (Holm)", "modes a"):
        assert part in text


def test_patterns_are_shares_of_answers_clustered_by_problem(tmp_path):
    first = write_texts(tmp_path / "a", [["x", "y"], ["x", "x"]])
    second = write_texts(tmp_path / "b", [["x", "x"], ["xy", "x"]], fingerprint="f1")
    request = PatternRequest(("x", "y"), lambda text: [letter for letter in "xy" if letter in text])
    result = compare([first, second], patterns=request)
    assert [interval.mean for interval in result.runs[0].patterns.values] == [0.75, 0.25]
    assert [interval.mean for interval in result.runs[1].patterns.difference] == [0.25, 0.0]
    # Problem 0 moves y by -1/2 and problem 1 by +1/2: the paired interval spans both.
    assert (result.runs[1].patterns.difference[1].low, result.runs[1].patterns.difference[1].high) == (-0.5, 0.5)
    assert "Found by: rules, first 2 samples of a problem" in shown(result)
    only_first = PatternRequest(("x", "y"), request.classify, num_samples=1)
    assert [one.mean for one in compare([first, second], patterns=only_first).runs[0].patterns.values] == [1.0, 0.0]
    with pytest.raises(ConfigError, match="at least 1"):
        PatternRequest(("x",), request.classify, num_samples=0)


# ---- several benchmarks ----------------------------------------------------------------------------------------------


def test_macro_average_gives_every_benchmark_one_vote(tmp_path):
    for run, wrong_in_big in (("a", 0), ("b", 3)):
        write_texts(tmp_path / run / "small/test", [["#### 5", "#### 6"]], fingerprint=run)
        big = [["#### 6"] * 4] * wrong_in_big + [["#### 5"] * 4] * (6 - wrong_in_big)
        write_texts(tmp_path / run / "big/test", big, fingerprint=run)
    result = compare_suites([tmp_path / "a", tmp_path / "b"])
    assert list(result.benchmarks) == ["big/test", "small/test"]
    assert result.ks == (1, 2)  # the small one has two samples only; its pass@4 would be of other problems
    # a: (1 + 0.5) / 2 and (1 + 1) / 2; b: (0.5 + 0.5) / 2 and (0.5 + 1) / 2, although 6 of its 7 problems are in one.
    assert [[one.mean for one in run.pass_at.values] for run in result.macro] == [[0.75, 1.0], [0.5, 0.75]]
    assert [one.mean for one in result.macro[1].pass_at.difference] == [-0.25, -0.25]
    assert result.macro[0].pass_at.difference == ()
    # a vote of two in the small benchmark is a tie: 1/2
    assert [one.mean for one in result.macro[0].maj_at.values] == [0.75, 0.75]
    assert json.loads(json.dumps(result.to_dict()))["ks"] == [1, 2]
    text = shown(result)
    for part in ("Macro average of 2 benchmarks", "small/test", "maj@2", "1 problem ", "6 problems"):
        assert part in text
    single = compare_suites([tmp_path / "a/small", tmp_path / "b/small"])
    assert (list(single.benchmarks), single.macro) == (["test"], ())  # one is no average


class Fragile:
    """A verifier whose keys fail on one wrong answer."""

    def answer_key(self, completion, answer):
        if completion == "#### boom":
            raise RecursionError("too deep")
        return completion


def test_keys_that_fail_cost_the_votes_only(tmp_path, monkeypatch):
    first = write_texts(tmp_path / "a", [["#### 5", "#### 6"], ["#### boom", "#### boom"]])
    second = write_texts(tmp_path / "b", [["#### 5", "#### 6"], ["#### 5", "#### 7"]], fingerprint="f1")
    task = SimpleNamespace(verifier=Fragile(), rows=lambda split, limit: [])
    monkeypatch.setattr("killick.evaluate.answers.TASKS", SimpleNamespace(build=lambda name, **settings: task))
    result = compare([first, second])
    assert [run.maj_at is None for run in result.runs] == [True, False]
    assert [note for note in result.notes if "maj@k" in note] == [
        "maj@k: the verifier cannot say which answer sample 0 of problem 'p1' gives (RecursionError: too deep), so "
        "votes are not counted."
    ]
    assert [run.pass_at[0].mean for run in result.runs] == [0.25, 0.5]
    assert "maj@2" in shown(result)  # of the run that has them


def test_averages_over_different_benchmarks_are_refused(tmp_path):
    write_texts(tmp_path / "a/small", [["#### 5"]])
    write_texts(tmp_path / "a/big", [["#### 5"]])
    write_texts(tmp_path / "b/small", [["#### 5"]])
    with pytest.raises(RecordError, match="only one of them has big"):
        compare_suites([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(RecordError, match="is no evaluation"):
        compare_suites([tmp_path / "a/small", tmp_path / "b"])
