"""Comparisons on narrow terminals: every number is whole, whatever does not fit is left out and said to be."""

import json
import re

import pytest
from rich.console import Console

from killick.cli import run
from killick.evaluate.columns import Column, fitting, number_table, total_width
from killick.evaluate.compare import compare
from killick.evaluate.macro import compare_suites
from killick.evaluate.suite_table import paper_table
from killick.evaluate.tables import comparison_tables, legend, suite_tables
from killick.evaluate.texts import PatternRequest


def printed(parts, width):
    console = Console(width=width)
    with console.capture() as found:
        for part in parts:
            console.print(part, highlight=False, crop=False)
    return found.get()


def intervals(estimates, form):
    return [text for one in estimates for text in (form % one.mean, f"[{form % one.low}, {form % one.high}]")]


def test_as_many_columns_as_fit_evenly_spaced():
    def of(total):
        return [Column("x" * 16, [])] * total

    # 16 characters and a space between: 3 need 50, 4 need 67
    assert fitting(of(9), 50) == [0, 4, 8]
    assert fitting(of(9), 66) == [0, 4, 8]
    assert fitting(of(9), 67) == [0, 3, 5, 8]
    assert fitting(of(2), 5) == [0, 1]  # the ends stay
    assert fitting(of(1), 5) == [0]
    for total in range(2, 12):
        for room in range(10, 200):
            chosen = fitting(of(total), room)
            assert chosen[0] == 0
            assert chosen[-1] == total - 1
            assert chosen == sorted(set(chosen))
            assert len(chosen) == max(2, min(total, (room + 1) // 17))


@pytest.fixture
def three(tmp_path, write_evaluation):
    """256 samples, the largest k of the suites."""
    names = {"base": 0.2, "better": 0.4, "worse": 0.01}
    made = [
        write_evaluation(tmp_path / name, share, seed=seed, fingerprint=name, num_samples=256)
        for seed, (name, share) in enumerate(names.items())
    ]
    return [one.path for one in made]


@pytest.mark.parametrize(("width", "num_ks"), [(80, 3), (100, 4), (140, 7), (300, 9), (40, 2)])
def test_no_number_is_cut_at_any_width(three, width, num_ks):
    result = compare(three)
    text = printed(comparison_tables(result, width), width)
    assert "…" not in text
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width
    shown = [int(k) for k in re.findall(r"pass@(\d+)", text.splitlines()[next(iter(header_lines(text)))])]
    assert len(shown) == num_ks
    assert (shown[0], shown[-1]) == (1, 256)
    assert (f"Shown: k = {', '.join(map(str, shown))}; all k: --json." in " ".join(text.split())) == (num_ks < 9)
    for one in result.runs:
        places = [result.ks.index(k) for k in shown]
        expected = intervals([one.pass_at[i] for i in places], "%.3f") + intervals(one.modes.values, "%.2f")
        if one.difference:
            expected += intervals([one.difference[i] for i in places], "%+.3f")
            expected += intervals(one.modes.difference, "%+.2f")
            for p_value in (one.support.p_lost, one.p_rates_holm):
                expected.append(f"{p_value:.3f}" if p_value >= 0.001 else f"{p_value:.0e}")
        for number in expected:
            assert number in text


def header_lines(text):
    return (i for i, line in enumerate(text.splitlines()) if line.startswith("run") and "pass@" in line)


def test_runs_are_numbers_and_named_once():
    text = printed([legend(["runs/[b]a", "runs/c"])], 80)
    assert text == "1: runs/[b]a (base)\n2: runs/c\n"


def test_texts_fold_and_numbers_do_not():
    columns = [Column("name", ["a" * 30], is_text=True), Column("n", ["[0.123,\n0.456]"])]
    text = printed([number_table(columns, 25)], 25)
    # 7 for the number and 1 between leave 17
    assert [line.split() for line in text.splitlines()[2:]] == [["a" * 17, "[0.123,"], ["a" * 13, "0.456]"]]
    assert total_width(columns) == 38
    # no room at all: the line is longer than the terminal, and whole
    wide = printed([number_table([Column("n", ["0.1234567890123"])], 8)], 8)
    assert "0.1234567890123" in wide


def test_settings_stand_above_and_the_reading_below_once(three):
    text = printed(comparison_tables(compare(three), 80), 80)
    assert text.startswith("toy / test: 5 problems × 256 samples, temperature 1.0")
    for part in ("Brackets: 95% bootstrap", "By chance: losses", "2 runs (Holm)"):
        assert " ".join(text.split()).count(part) == 1


def test_patterns_of_any_number_of_runs_fit(three):
    request = PatternRequest(("arithmetic_verification", "b"), lambda text: ["b"], num_samples=2)
    result = compare([*three, *three], patterns=request)
    text = printed(comparison_tables(result, 80), 80)
    rows = [line for line in text.splitlines() if re.search(r"\d  ?\d\.\d{3} \[", line)]
    assert len(rows) == 12
    assert all("1.000 [1.000, 1.000]" in row for row in rows[6:])
    assert "…" not in text


# ---- suites ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def suites(tmp_path, write_evaluation):
    for name, share in (("a", 0.2), ("b", 0.3)):
        for place, samples in (("knights_and_knaves/test", 256), ("big/test", 256)):
            write_evaluation(tmp_path / name / place, share, seed=len(place), fingerprint=name, num_samples=samples)
    return [tmp_path / "a", tmp_path / "b"]


def test_a_suite_is_averages_and_one_row_a_benchmark(suites):
    result = compare_suites(suites)
    text = printed(suite_tables(result, 80), 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for part in ("Macro average of 2 benchmarks", "Δ pass@1", "Δ pass@256", "--full", "5 problems"):
        assert part in text
    assert "truncated" not in text
    gaps = [interval for one in result.benchmarks.values() for interval in one.runs[1].difference]
    ends = [gaps[place] for place in (0, 8, 9, 17)]
    for number in intervals([*result.macro[1].pass_at.difference[:1], *ends], "%+.3f"):
        assert number in text
    full = printed(suite_tables(result, 80, full=True), 80)
    assert full.count("truncated") == full.count("toy / test: 5 problems") == 2
    assert full.count("Brackets: 95%") == full.count("By chance: losses") == 1
    single = compare_suites([folder / "big" for folder in suites])
    assert "Macro" not in printed(suite_tables(single, 80), 80)
    assert printed(suite_tables(single, 80), 80) == printed(comparison_tables(single.benchmarks["test"], 80), 80)


def test_benchmarks_of_other_sample_counts_say_their_k(tmp_path, write_evaluation):
    for name in ("a", "b"):
        for place, samples in (("few", 4), ("many", 16)):
            write_evaluation(tmp_path / name / place, 0.3, fingerprint=name, num_samples=samples)
    text = printed(suite_tables(compare_suites([tmp_path / "a", tmp_path / "b"]), 80), 80)
    row = next(line for line in text.splitlines() if line.startswith("few"))
    assert row.split()[2] == "4"
    assert "4 samples, temperature" in text
    assert "16 samples, temperature" in text


def paper(name="m"):
    at = {"pass_at": {"1": {"mean": 0.123, "low": 0.1, "high": 0.2}, "256": {"mean": 0.456, "low": 0.4, "high": 0.5}}}
    labels = ["AIME 2024", "AIME 2025", "AMC 2023", "MATH-500", "Minerva", "OlympiadBench", "GPQA-Diamond", "MMLU-Pro"]
    sets = [
        {
            "label": one,
            "group": "out" if i > 5 else "in",
            "pool": "",
            "num_problems": 9,
            "task": "t",
            "split": "s",
            **at,
        }
        for i, one in enumerate(labels)
    ]
    averages = {"in": {"num_benchmarks": 6, "of": 6, **at}, "out": {"num_benchmarks": 2, "of": 2, **at}}
    sampling = {"num_samples": 256, "temperature": 0.3, "top_p": 0.95, "max_tokens": 9, "seed": 0}
    return {"title": "Suite", "model": {"name": name}, "ks": [1, 256], "sampling": sampling, "benchmarks": sets} | {
        "averages": averages, "left_out": []
    }  # fmt: skip


def test_the_table_of_the_papers_fits_with_the_most_benchmarks():
    text = printed([paper_table([("a", paper()), ("b", paper())])], 80)
    rows = [line.split() for line in text.splitlines() if re.match(r"\d pass@", line)]
    assert rows == [[n, f"pass@{k}", *[mean] * 10] for n in "12" for k, mean in ((1, "0.123"), (256, "0.456"))]


def test_the_command_names_runs_once_and_shows_the_papers_table(suites, capsys):
    for folder in suites:
        (folder / "suite.json").write_text(json.dumps(paper(folder.name)))
    assert run(["compare", *map(str, suites)]) == 0
    captured = capsys.readouterr()
    assert "2 pass@256" in captured.out
    text = "".join(captured.out.split())
    assert [text.count(f"{n}:{folder}") for n, folder in enumerate(suites, 1)] == [1, 1]
    assert "truncated" not in captured.out
    assert run(["compare", "--full", *map(str, suites)]) == 0
    assert "truncated" in capsys.readouterr().out
    other = paper("b") | {"title": "Other"}
    (suites[1] / "suite.json").write_text(json.dumps(other))
    assert run(["compare", *map(str, suites)]) == 0
    captured = capsys.readouterr()
    assert "no common table" in captured.err
    assert "Macro average" in captured.out
