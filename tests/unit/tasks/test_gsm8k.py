"""GSM8K: the local schema, the hub's schema, and every gold of the real data when it is at hand."""

import json
from pathlib import Path

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks.gsm8k import GSM8K, hub_record

BENCH = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "bench"
HUB_ROW = {"question": "How many?", "answer": "She has 48/2 = <<48/2=24>>24.\nSo 1,000 + 24 = 1,024.\n#### 1,024"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in GSM8K.splits:
        (tmp_path / f"gsm8k_{split}.jsonl").write_text(json.dumps(hub_record(HUB_ROW, split, 0)), encoding="utf-8")
    return tmp_path


def test_hub_rows_become_the_local_schema() -> None:
    assert hub_record(HUB_ROW, "test", 3) == {
        "id": "gsm8k-test-3",
        "problem": "How many?",
        "answer": "1024",
        "solution": HUB_ROW["answer"],
    }
    with pytest.raises(DataError, match="####"):
        hub_record({"question": "x", "answer": "5"}, "test", 0)
    with pytest.raises(DataError, match="column 'question' holds None"):
        hub_record({"question": None, "answer": "#### 5"}, "test", 0)
    with pytest.raises(DataError, match="no column 'question'"):
        hub_record({"answer": "#### 5"}, "test", 0)


def test_calculator_marks_are_gone_and_the_solution_ends_as_asked(folder: Path) -> None:
    number = GSM8K(path=str(folder)).rows("test")[0]
    assert number.solution == "She has 48/2 = 24.\nSo 1,000 + 24 = 1,024.\n#### 1,024"
    latex = GSM8K(path=str(folder), judge="latex").rows("test")[0]
    assert latex.solution == "She has 48/2 = 24.\nSo 1,000 + 24 = 1,024.\nThe final answer is \\boxed{1024}."
    assert "####" in number.prompt[-1]["content"]
    assert "boxed" in latex.prompt[-1]["content"]


def test_wording_is_a_setting(folder: Path) -> None:
    row = GSM8K(path=str(folder), instruction="Short.", system="You calculate.").rows("test")[0]
    assert row.prompt == [
        {"role": "system", "content": "You calculate."},
        {"role": "user", "content": "How many?\n\nShort."},
    ]


def test_wrong_use(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="test, train"):
        GSM8K(path=str(folder)).rows("validation")
    with pytest.raises(ConfigError):
        GSM8K(judge="exact")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="Give the folder"):
        GSM8K(path=str(folder / "gsm8k_test.jsonl")).rows("test")
    with pytest.raises(DataError, match="no file"):
        GSM8K(path=str(tmp_path / "elsewhere")).rows("test")


def test_an_unreadable_gold_names_its_row(folder: Path) -> None:
    record = {**hub_record(HUB_ROW, "test", 0), "answer": "many"}
    (folder / "gsm8k_test.jsonl").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match="gsm8k-test-0"):
        GSM8K(path=str(folder)).rows("test")


@pytest.mark.parametrize("judge", ["number", "latex"])
@pytest.mark.parametrize(("split", "num"), [("test", 1319), ("train", 7473)])
def test_every_real_gold_scores_1_and_a_wrong_one_0(judge: str, split: str, num: int) -> None:
    if not (BENCH / f"gsm8k_{split}.jsonl").is_file():
        pytest.skip("the shared GSM8K files are not beside this checkout")
    task = GSM8K(path=str(BENCH), judge=judge)  # type: ignore[arg-type]
    rows, verifier = task.rows(split), task.verifier
    assert len(rows) == len({row.uid for row in rows}) == num
    assert [row.uid for row in rows if not verifier(task.gold_completion(row), row.answer).correct] == []
    assert [row.uid for row in rows if verifier(task.gold_completion(row), str(int(row.answer) + 1)).correct] == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("problem", None, "column 'problem' holds None"),
        ("problem", " ", "column 'problem' holds ' '"),
        ("answer", None, "the answer in column 'answer' is None"),
        ("solution", 3, "the solution is 3"),
        ("id", None, "the id in column 'id' is None"),
    ],
)
def test_null_is_not_a_text(folder: Path, name: str, value: object, message: str) -> None:
    record = {**hub_record(HUB_ROW, "test", 0), name: value}
    (folder / "gsm8k_test.jsonl").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match=f"record 1: {message}"):
        GSM8K(path=str(folder)).rows("test")


def test_a_null_solution_is_none_and_odd_paths_are_refused(folder: Path) -> None:
    record = {**hub_record(HUB_ROW, "test", 0), "solution": None}
    (folder / "gsm8k_test.jsonl").write_text(json.dumps(record), encoding="utf-8")
    assert GSM8K(path=str(folder)).rows("test")[0].solution is None
    with pytest.raises(ConfigError, match="cannot be used"):
        GSM8K(path="a\0b")
