"""Suites: the shipped ones are the papers', averages add up, and the command runs them."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from killick.cli import run
from killick.errors import ConfigError
from killick.evaluate.suite_table import paper_table, suite_caption, suite_table
from killick.evaluate.suites import Benchmark, find_data, load_suite, shipped_suites, suite_report

BENCH = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "bench"


def test_the_papers_settings():
    suites = {name: load_suite(name) for name in shipped_suites()}
    assert set(suites) == {"sage", "sage-long", "sort"}
    sampling = {n: (s.sampling.num_samples, s.sampling.temperature, s.sampling.top_p) for n, s in suites.items()}
    assert sampling == {"sage": (256, 0.3, 0.95), "sage-long": (64, 0.3, 0.95), "sort": (16, 0.6, 0.95)}
    assert {name: suite.ks for name, suite in suites.items()} == {"sage": (1, 256), "sage-long": (1, 64), "sort": (1,)}
    assert len(suites["sort"].benchmarks) == 8
    assert suites["sage"].benchmarks == suites["sage-long"].benchmarks
    assert [one.task for one in suites["sage"].benchmarks if one.group == "out"] == ["knights_and_knaves"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("", "cannot be read|needs a table"),
        ("title = 3", "title"),
        ('group = "middle"', "group"),
        ('task = "aime42"', "unknown task 'aime42'"),
        ("ks = [1, 5]", "ks"),
        ("tempersture = 1.0", "tempersture"),
    ],
)
def test_bad_suites_are_refused(tmp_path, change, message):
    good = (
        'title = "t"\nks = [1, 4]\n[sampling]\nnum_samples = 4\nmax_tokens = 9\nseed = 0\n'
        '[[benchmark]]\ntask = "aime24"\nlabel = "A"\ngroup = "in"\n'
    )
    path = tmp_path / "mine.toml"
    path.write_text(good)
    assert load_suite(str(path)).ks == (1, 4)
    key = change.split(" = ")[0]
    lines = [change if change and line.startswith(f"{key} =") else line for line in good.splitlines()]
    path.write_text(
        "\n".join(lines if change != "tempersture = 1.0" else [*lines[:3], change, *lines[3:]]) if change else ""
    )
    with pytest.raises(ConfigError, match=message):
        load_suite(str(path))


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'sage'"):
        load_suite("sagf")


@pytest.fixture
def finished(write_evaluation, tmp_path):
    """Results of toy evaluations with given right samples; 5 problems, 6 samples each."""
    from killick.evaluate.folder import load
    from killick.evaluate.run import EvaluationResult

    def make(name, right_frac, seed=0, limit=None):
        made = write_evaluation(tmp_path / name, right_frac, seed=seed, limit=limit)
        done = load(made.path)
        return EvaluationResult(done.spec, {}, done.table, made.path), made.right

    return make


def test_averages_count_pools_once_and_groups_apart(finished):
    """Two sets of one pool (5 and 2 problems) and one alone: mean of (pooled mean, the other's mean)."""
    suite = load_suite("sage")
    a, b, c, d = (suite.benchmarks[i] for i in (0, 1, 2, 4))
    made = [
        (one, *finished(one.task, share, seed, limit))
        for one, share, seed, limit in ((a, 0.5, 0, None), (b, 0.2, 1, 2), (c, 0.4, 2, None), (d, 0.9, 3, None))
    ]
    report = suite_report(suite, [(one, result) for one, result, _ in made], [])
    first, second, alone, other = (right for _, _, right in made)
    assert report["ks"] == [1, 6]  # 256 is more than was drawn
    expected = np.mean([np.concatenate([first, second]).mean(), alone.mean()])
    assert report["averages"]["in"]["pass_at"]["1"]["mean"] == pytest.approx(expected)
    any_right = np.mean([np.concatenate([first, second]).any(axis=1).mean(), alone.any(axis=1).mean()])
    assert report["averages"]["in"]["pass_at"]["6"]["mean"] == pytest.approx(any_right)
    assert (report["averages"]["in"]["num_benchmarks"], report["averages"]["in"]["of"]) == (3, 4)
    assert report["averages"]["out"]["pass_at"]["1"]["mean"] == pytest.approx(other.mean())
    for entry, values in zip(report["benchmarks"], (first, second, alone, other), strict=True):
        assert entry["pass_at"]["1"]["mean"] == pytest.approx(values.mean())
        assert entry["pass_at"]["1"]["low"] <= entry["pass_at"]["1"]["mean"] <= entry["pass_at"]["1"]["high"]
    json.dumps(report, allow_nan=False)
    assert "count each set once, AIME 2024 and AIME 2025 as one." in suite_caption(report)
    table = suite_table(report)
    assert [str(column.header) for column in table.columns] == ["benchmark", "problems", "pass@1", "pass@6"]
    assert list(map(str, table.columns[0].cells)) == [
        "AIME 2024", "AIME 2025", "AMC 2023", "average in distribution, only 3 of 4 sets", "Knights and Knaves",
        "average out of distribution",
    ]  # fmt: skip
    assert list(table.columns[1].cells) == ["5", "2", "5", "", "5", ""]

    paper = paper_table([("runs/a", report), ("runs/b", {**report, "sampling": {**report["sampling"], "seed": 9}})])
    assert [str(column.header) for column in paper.columns] == [
        "", "AIME 2024", "AIME 2025", "AMC 2023", "avg in, only 3 of 4 sets", "Knights and Knaves", "avg out",
    ]  # fmt: skip
    rows = list(zip(*(column.cells for column in paper.columns), strict=True))
    means = [first.mean(), second.mean(), alone.mean(), expected, other.mean(), other.mean()]
    assert rows[0] == ("1 pass@1", *(f"{mean:.3f}" for mean in means))
    assert [row[0] for row in rows] == ["1 pass@1", "1 pass@6", "2 pass@1", "2 pass@6"]
    assert rows[3][1:] == rows[1][1:] != rows[0][1:]
    assert paper.caption is None  # the caller names the models
    short = paper_table([("m", {**report, "left_out": [{"label": "MATH-500", "reason": "no file"}]})])
    assert str(short.caption) == "m. Left out: MATH-500."
    odd = paper_table([("m", {**report, "benchmarks": [{**report["benchmarks"][0], "label": "[/b] 2024"}]})])
    console = Console(width=200)
    with console.capture() as printed:
        console.print(odd)
    assert "[/b] 2024" in printed.get()  # a suite file may hold any text: it is no markup
    hotter = {**report, "sampling": {**report["sampling"], "temperature": 0.77}}
    with pytest.raises(ConfigError, match="no common table"):
        paper_table([("a", report), ("b", hotter)])


def test_nothing_evaluated_is_an_error():
    with pytest.raises(ConfigError, match="every benchmark was left out"):
        suite_report(load_suite("sage"), [], [])


# ---- the command, with the nano base on files of its own ------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """Problems the nano base can read, in the schema and under the names of the suites' sets."""
    folder = tmp_path / "bench"
    folder.mkdir()

    def write(name, answers, **extra):
        rows = [{"id": f"{name}{n}", "problem": "3,5,7,2>22:", "answer": a, "solution": "", **extra} for n, a in
                enumerate(answers)]  # fmt: skip
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")

    for name in ("aime24", "aime25", "amc23", "math500", "minerva", "olympiadbench"):
        write(name, ["22", "23", "24"])
    write("mmlu_pro", ["A", "B"], choices=["x", "y"])
    write(
        "knights_and_knaves", ["A is a knight, B is a knave"], meta={"names": ["A", "B"], "roles": ["knight", "knave"]}
    )
    return folder


def command(files, suite, *more):
    argv = ["evaluate", "nano", "--suite", suite, "--task-set", f"path={files}", "--task-set", "instruction="]
    return run([*argv, "--samples", "2", "--problems", "2", "--max-tokens", "12", *more])


def test_a_suite_runs_resumes_and_prints_json(files, tmp_path, capsys):
    out = tmp_path / "out"
    assert command(files, "sage", "--out", str(out), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["num_problems"] for entry in shown["benchmarks"]] == [2, 2, 2, 2, 1]
    assert shown == json.loads((out / "suite.json").read_text())
    assert shown["sampling"]["temperature"] == 0.3
    assert shown["sampling"]["num_samples"] == 2
    before = (out / "math500-test" / "records.jsonl").read_bytes()
    assert before.count(b"\n") == 4
    assert command(files, "sage", "--out", str(out)) == 0
    table = capsys.readouterr().out
    assert "Knights and" in table
    assert "pass@2" in table
    assert (out / "math500-test" / "records.jsonl").read_bytes() == before
    assert run(["compare", str(out), str(out)]) == 0
    assert "2 pass@2" in capsys.readouterr().out  # both in one table of the papers' shape


def test_a_missing_set_is_an_error_before_sampling_unless_left_out(files, tmp_path, capsys):
    out = tmp_path / "out"
    assert command(files, "sort", "--out", str(out)) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "GPQA-Diamond is missing" in shown
    assert "1 of 8 sets of the suite 'sort' are missing" in shown
    assert not out.exists()
    assert command(files, "sort", "--out", str(out), "--skip-missing", "--json") == 0
    captured = capsys.readouterr()
    assert "GPQA-Diamond is missing" in " ".join(captured.err.split())
    report = json.loads(captured.out)
    assert [one["label"] for one in report["left_out"]] == ["GPQA-Diamond"]
    assert (report["averages"]["out"]["num_benchmarks"], report["averages"]["out"]["of"]) == (1, 2)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--split", "test"], "leave out --task"),
        (["--backend", "openai"], "needs base_url"),
        (["--backend", "opnai"], "Did you mean 'openai'"),
        (["--backend-set", "concurency=3"], "no setting 'concurency'"),
        (["--backend", "openai", "--base-url", "http://127.0.0.1:1/v1", "--dtype", "float32"], "no setting 'dtype'"),
        (["--task-set", "pth=x"], "no setting 'pth'"),
    ],
)
def test_wrong_use_of_the_command(files, tmp_path, capsys, more, message):
    assert command(files, "sage", "--out", str(tmp_path / "out"), *more) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_skip_missing_is_for_suites(capsys):
    assert run(["evaluate", "nano", "--task", "countdown", "--split", "mixed", "--skip-missing"]) == 2
    assert "--skip-missing" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sage", "sort"])
def test_the_shared_files_serve_the_suites(name):
    if not BENCH.is_dir():
        pytest.skip("the shared data files are not beside this checkout")
    found, left_out = find_data(load_suite(name), {"path": str(BENCH)}, 3)
    assert [one.benchmark.task for one in left_out] == (["gpqa_diamond"] if name == "sort" else [])
    for benchmark, task in found:
        assert isinstance(benchmark, Benchmark)
        assert len(task.rows("test", 3)) == 3
