"""`killick verify`: scores of a case file, one verdict explained, wrong use."""

import json
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
    assert "accepted (right): gold '7', prediction '7.0'" in text
    assert "rejected (wrong): gold '7', prediction '8'" in text


def test_one_verdict_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", r"$\dfrac12$", "--pred", r"so \boxed{50\%}"]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["gold: one name per symbol"].strip() == r"\frac12"
    assert lines["extraction"].strip() == r"'50\\%' (last box)"
    assert lines["rule"].strip() == "per cent as a share"
    assert lines["verdict"].strip() == "right"


def test_an_explanation_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--gold", "5 cm", "--pred", "5 m", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["correct"], result["reason"]) == (False, "wrong")
    assert ["rule", "values in different units"] in result["steps"]


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
    places = {name: str(folder / f"{name}.jsonl") for name in ("missing", "broken", "short", "empty")}
    assert run(["verify", *(word.format(file=file, **places) for word in argv)]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert message in text
    assert "Traceback" not in text
