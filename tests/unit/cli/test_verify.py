"""`killick verify`: scores of a case file, answers judged, one verdict explained, wrong use."""

import io
import json
import sys
from pathlib import Path

import pytest

from killick.cli import run

CASES = [
    ("0.5", r"\boxed{\frac{1}{2}}", True, "fraction"),
    ("0.5", r"\boxed{\frac{1}{3}}", False, "fraction"),
    (r"35\%", "35", True, "percent"),
    ("7", "8", True, "wrong expectation"),  # a false reject on purpose
    ("7", "7.0", False, "wrong expectation"),  # and a false accept
    (r"\div", "5", False, "unreadable gold"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    keys = ("gold", "pred", "expected", "kind")
    path.write_text("".join(json.dumps(dict(zip(keys, case, strict=True))) + "\n\n" for case in CASES))
    return path


def test_a_case_file_is_scored(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--cases", str(file), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["cases"], result["false_accepts"], result["false_rejects"]) == (6, 1, 1)
    assert result["agreement"] == pytest.approx(4 / 6)
    assert result["by_kind"]["fraction"] == {"cases": 2, "agreement": 1.0, "false_accepts": 0, "false_rejects": 0}
    assert result["by_kind"]["wrong expectation"]["agreement"] == 0.0
    assert [(row["gold"], row["pred"]) for row in result["disagreements"]] == [("7", "8"), ("7", "7.0")]


def test_the_table_names_kinds_and_disagreements(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--cases", str(file)]) == 0
    text = capsys.readouterr().out
    assert "percent" in text
    assert "accepted (right): gold 7  prediction 7.0" in text
    assert "rejected (wrong): gold 7  prediction 8" in text


def test_one_verdict_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", r"$\dfrac12$", "--pred", r"so \boxed{50\%}"]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["gold: one name per symbol"].strip() == r"\frac12"
    assert lines["extraction"].strip() == r"50\% (last box)"
    assert lines["rule"].strip() == "per cent as a share"
    assert lines["verdict"].strip() == "right"


def test_an_explanation_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", "5 cm", "--pred", "5 m", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["correct"], result["reason"]) == (False, "wrong")
    assert ["rule", "values in different units"] in result["steps"]


ANSWERS = [  # answer, response, verdict anywhere, verdict with --boxed
    (5, "the answer is 5", "right", "no_answer"),
    (0.50, r"\boxed{1/2}", "right", "right"),
    ("7", r"\boxed{8}", "wrong", "wrong"),
    ("", r"\boxed{8}", "unparsable", "unparsable"),
    ("7", "I do not know what\u2028it is.", "no_answer", "no_answer"),
]
COLUMNS = ["--columns", "gold=answer, pred=response"]


@pytest.fixture
def answers(tmp_path: Path) -> str:
    path = tmp_path / "answers.jsonl"
    lines = [json.dumps({"answer": a, "response": r, "id": 1}, ensure_ascii=False) for a, r, _, _ in ANSWERS]
    path.write_text("\n" + "\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("options", "column"), [([], 2), (["--boxed"], 3), (["--task", "math500"], 3)])
def test_answers_without_labels_are_judged(
    options: list[str], column: int, answers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", "--cases", answers, *COLUMNS, *options, "--json"]) == 0
    shown = capsys.readouterr()
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert [row["line"] for row in rows] == [2, 3, 4, 5, 6]
    assert [row["reason"] for row in rows] == [answer[column] for answer in ANSWERS]
    assert [row["correct"] for row in rows] == [answer[column] == "right" for answer in ANSWERS]
    assert (rows[0]["gold"], rows[0]["pred"]) == ("5", "the answer is 5")
    assert [row.get("problem", "")[:20] for row in rows] == ["", "", "", "The gold answer '' c", ""]
    assert ("1 of 5: in training and evaluation no_answer" in shown.err) == (not options)


def test_reasons_are_counted(answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--cases", answers, *COLUMNS]) == 0
    text = capsys.readouterr().out
    counts = [[cell.strip() for cell in line.split("│")[1:3]] for line in text.splitlines() if line.startswith("│")]
    assert counts == [["right", "2"], ["wrong", "1"], ["no_answer", "1"], ["unparsable", "1"], ["all", "5"]]
    assert "line 5: The gold answer '' can never be matched" in text


@pytest.mark.parametrize("option", ["--gold", "--pred"])
def test_a_text_from_standard_input(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"--gold": "½", "--pred": "so\n\\boxed{0.5}"}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{texts[option]}\n".encode())))
    argv = [word for name, text in texts.items() for word in (name, "-" if name == option else text)]
    assert run(["verify", *argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"] == "right"


def test_a_verdict_that_training_does_not_share(capsys: pytest.CaptureFixture[str]) -> None:
    def last_line(*options: str) -> str:
        assert run(["verify", "--gold", "5", *options]) == 0
        return " ".join(capsys.readouterr().out.splitlines()[-1].split())

    note = 'in training and evaluation no_answer (no box, answer tag or "final answer is")'
    assert last_line("--pred", "the answer is 5") == note
    assert last_line("--pred", "the final answer is 5") == "verdict right"
    assert last_line("--pred", "the answer is 5", "--boxed") == "verdict no_answer"
    assert last_line("--pred", "the answer is 5", "--task", "math500") == "verdict no_answer"
    gsm8k = ("--task", "gsm8k", "--task-set", "judge=latex")  # which has the fallback in training, too
    assert last_line("--pred", "the answer is 5", *gsm8k) == "verdict right"


def test_other_verifiers_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", "18", "--pred", "7 + 11 is 19.\n#### 19", "--task", "gsm8k", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == [
        ["gold", "18"],
        ["extraction", "19 (####)"],
        ["gold read as", "18"],
        ["answer read as", "19"],
        ["verdict", "wrong"],
    ]


def test_nothing_printed_acts_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", "[red]5", "--pred", "<answer>a\x1b[2J\nb\u202e</answer>"]) == 0
    text = capsys.readouterr().out
    assert "[red]5" in text
    assert all(c.isprintable() for c in text.replace("\n", ""))


def test_what_training_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", "5", "--pred", "it is 5", "--boxed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"] == "no_answer"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "either --cases FILE, or --gold and --pred"),
        (["--gold", "5"], "either --cases FILE, or --gold and --pred"),
        (["--cases", "{file}", "--gold", "5"], "either --cases FILE, or --gold and --pred"),
        (["--cases", "{missing}"], "Cannot read the case file"),
        (["--cases", "{broken}"], "line 2: not JSON"),
        (["--cases", "{short}"], "line 1: expected missing or of the wrong type"),
        (["--cases", "{empty}"], "holds no case"),
        (["--cases", "{mixed}"], "line 1 has expected, line 2 has not"),
        (["--cases", "{file}", "--columns", "gold=answer"], "line 1: answer missing or of the wrong type"),
        (["--cases", "{file}", "--columns", "gold"], "'gold' is not KEY=NAME"),
        (["--cases", "{file}", "--columns", "golds=answer"], "no key 'golds'"),
        (["--gold", "5", "--pred", "5", "--columns", "gold=a"], "give it with --cases"),
        (["--gold", "-", "--pred", "-"], "Only one of --gold and --pred"),
        (["--gold", "5", "--pred", "5", "--task", "gsm8k", "--boxed"], "leave out --boxed and --timeout-s"),
        (["--gold", "5", "--pred", "5", "--task-set", "judge=latex"], "say which with --task"),
        (["--gold", "five", "--pred", "5", "--task", "gsm8k"], "not a plain number"),
        (["--gold", "", "--pred", "5"], "can never be matched"),
        (["--gold", "5", "--pred", "5", "--timeout-s", "0"], "must be above 0"),
    ],
)
def test_wrong_use(argv: list[str], message: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent
    good = file.read_text().splitlines()[0]
    (folder / "broken.jsonl").write_text(f"{good}\nnonsense\n")
    (folder / "short.jsonl").write_text('{"gold": "1", "pred": "1", "expected": "yes", "kind": "x"}\n')
    (folder / "empty.jsonl").write_text("\n")
    (folder / "mixed.jsonl").write_text(f'{good}\n{{"gold": "1", "pred": "1", "expected": null}}\n')
    places = {name: str(folder / f"{name}.jsonl") for name in ("missing", "broken", "short", "empty", "mixed")}
    assert run(["verify", *(word.format(file=file, **places) for word in argv)]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert message in text
    assert "Traceback" not in text
