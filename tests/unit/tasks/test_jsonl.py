"""Own data: column mapping, and every way a file can be unusable."""

import json
from pathlib import Path

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks.jsonl import JsonLines

RECORDS = [
    {"problem": "1 + 1?", "answer": "2", "solution": "It is 2.", "id": "a"},
    {"problem": "Half of one?", "answer": "\\frac{1}{2}", "solution": "", "id": "b"},
]


def write(folder: Path, records: list, name: str = "data.jsonl") -> str:
    file = folder / name
    file.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
    return str(file)


def test_rows_carry_everything(tmp_path: Path) -> None:
    task = JsonLines(write(tmp_path, RECORDS), solution_column="solution", id_column="id", system="Be brief.")
    first, second = task.rows("train")
    assert (first.uid, first.answer, first.solution) == ("a", "2", "It is 2.")
    assert second.solution is None
    assert first.prompt[0] == {"role": "system", "content": "Be brief."}
    assert first.prompt[1]["content"].startswith("1 + 1?\n\nReason")
    assert all(task.verifier(task.gold_completion(row), row.answer).correct for row in (first, second))
    assert not task.verifier(task.gold_completion(first), second.answer).correct


def test_columns_are_mapped_and_numbers_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, [{"q": "1 + 1?", "a": 2}, "", {"q": "1 + 2?", "a": 3}])
    task = JsonLines(path, problem_column="q", answer_column="a", judge="number", instruction="")
    rows = task.rows("train")
    assert [row.answer for row in rows] == ["2", "3"]
    assert rows[0].prompt == [{"role": "user", "content": "1 + 1?"}]
    assert len({row.uid for row in rows}) == 2
    assert task.rows("train", 1) == rows[:1]


def test_uids_without_an_id_column_depend_on_the_problem_only(tmp_path: Path) -> None:
    forward, backward = (
        JsonLines(write(tmp_path, r, n)) for r, n in ((RECORDS, "a.jsonl"), (RECORDS[::-1], "b.jsonl"))
    )
    assert {r.uid for r in forward.rows("train")} == {r.uid for r in backward.rows("train")}


def test_a_line_separator_inside_a_problem_does_not_split_it(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"problem": "a\u2028b", "answer": "1"}, ensure_ascii=False), encoding="utf-8")
    assert len(JsonLines(str(path)).rows("train")) == 1


def test_splits(tmp_path: Path) -> None:
    train, test = write(tmp_path, RECORDS), write(tmp_path, RECORDS[:1], "test.jsonl")
    assert JsonLines(train).splits == ("train",)
    assert len(JsonLines(train, test_path=test).rows("test")) == 1
    with pytest.raises(ConfigError, match="Set test_path"):
        JsonLines(train).rows("test")
    with pytest.raises(ConfigError, match="same file"):
        JsonLines(train, test_path=train)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "is empty"),
        (["", "  "], "is empty"),
        (["{'problem': 1}"], "line 1 is not JSON"),
        ([RECORDS[0], "[1, 2]"], "line 2 holds a list"),
        ([{"Problem": "x", "answer": "1"}], "Known: Problem, answer. Did you mean 'Problem'"),
        ([{"problem": "x"}], "no column 'answer'"),
        ([{"problem": " ", "answer": "1"}], "not a text"),
        ([{"problem": "x", "answer": None}], "not a text or number"),
        ([{"problem": "x", "answer": ""}], "never be matched"),
        ([RECORDS[0], RECORDS[0]], "occurs twice"),
    ],
)
def test_unusable_files(tmp_path: Path, records: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        JsonLines(write(tmp_path, records)).rows("train")


def test_missing_or_binary_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        JsonLines(str(tmp_path / "none.jsonl")).rows("train")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        JsonLines(str(tmp_path / "binary")).rows("train")
    with pytest.raises(DataError, match="cannot be read"):
        JsonLines(str(tmp_path)).rows("train")


def test_unknown_judge_and_limit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="number"):
        JsonLines(write(tmp_path, RECORDS), judge="numbers")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="at least 1"):
        JsonLines(write(tmp_path, RECORDS)).rows("train", 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"problem": "\\ud800", "answer": "1"}', "line 2 holds a lone surrogate"),
        ('{"problem": "x", "answer": "1", "more": ["\\uDFFF"]}', "line 2 holds a lone surrogate"),
        ('{"problem": "x", "answer": ' + "1" * 5000 + "}", "line 2 cannot be read"),
        ('{"problem": ' + "[" * 100_000, "line 2 cannot be read"),
    ],
)
def test_lines_that_json_allows_and_nothing_else_does(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"data\.jsonl, {message}"):
        JsonLines(write(tmp_path, [RECORDS[0], line])).rows("train")


def test_whole_characters_may_be_escaped(tmp_path: Path) -> None:
    row = JsonLines(write(tmp_path, ['{"problem": "\\ud83d\\ude42 \\u00e9", "answer": "1"}'])).rows("train")[0]
    assert row.prompt[0]["content"].startswith("\U0001f642 é")


@pytest.mark.parametrize("uid", [None, "", True, [1]])
def test_ids_are_texts_or_whole_numbers(tmp_path: Path, uid: object) -> None:
    with pytest.raises(DataError, match="the id in column 'id'"):
        JsonLines(write(tmp_path, [{**RECORDS[0], "id": uid}]), id_column="id").rows("train")


@pytest.mark.parametrize("path", ["a\0b", "a" * 5000, "~nobody-of-this-name/x", 3])
def test_what_cannot_be_a_path_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        JsonLines(path)
    with pytest.raises(ConfigError, match="cannot be used"):
        JsonLines(write(tmp_path, RECORDS), test_path=path)


def test_columns_as_one_table(tmp_path: Path) -> None:
    record = {"question": "1 + 1?", "gold": 2, "rationale": "It is 2.", "key": "a", "level": 3}
    columns = {"problem": "question", "answer": "gold", "solution": "rationale", "id": "key"}
    task = JsonLines(write(tmp_path, [record]), columns=columns, meta_columns=("level",), judge="number")
    (row,) = task.rows("train")
    assert (row.uid, row.answer, row.solution, row.meta, row.problem) == ("a", "2", "It is 2.", {"level": 3}, "1 + 1?")


def test_nested_columns(tmp_path: Path) -> None:
    """The layout of verl: prompts are messages, golds lie in a table."""
    record = {"prompt": [{"role": "user", "content": "1 + 1?"}], "reward_model": {"ground_truth": "2"}}
    columns = {"problem": "prompt.0.content", "answer": "reward_model.ground_truth"}
    (row,) = JsonLines(write(tmp_path, [record]), columns=columns).rows("train")
    assert (row.problem, row.answer) == ("1 + 1?", "2")
    for name in ("prompt.1.content", "prompt.0.text", "reward_model.0", "prompt.x"):
        with pytest.raises(DataError, match="Known: prompt, reward_model"):
            JsonLines(write(tmp_path, [record]), columns={**columns, "problem": name}).rows("train")


def test_parquet(tmp_path: Path) -> None:
    from pyarrow import Table, parquet

    file = tmp_path / "data.parquet"
    parquet.write_table(
        Table.from_pylist([{"q": "1 + 1?", "a": 2, "s": None}, {"q": "2 + 2?", "a": 4, "s": "4"}]), file
    )
    task = JsonLines(str(file), columns={"problem": "q", "answer": "a", "solution": "s"}, judge="number")
    assert [(row.answer, row.solution) for row in task.rows("train")] == [("2", None), ("4", "4")]
    with pytest.raises(DataError, match="Known: a, q, s"):
        JsonLines(str(file)).rows("train")
    file.write_bytes(b"not parquet")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        JsonLines(str(file)).rows("train")
    with pytest.raises(DataError, match="no file"):
        JsonLines(str(tmp_path / "none.parquet")).rows("train")


@pytest.mark.parametrize(
    ("judge", "answer", "wording", "more"),
    [
        ("exact", "Paris", "nothing else", {}),
        ("knights", "Zoey is a knight, Mia is a knave", "Conclusion", {}),
        ("choice", "B", "letter", {"columns": {"choices": "options"}}),
        ("python", "2", "", {"function": "operator:eq"}),
    ],
)
def test_other_judges(tmp_path: Path, judge: str, answer: str, wording: str, more: dict) -> None:
    records = [{"problem": "P?", "answer": answer, "options": ["one", "two"]}]
    task = JsonLines(write(tmp_path, records), judge=judge, **more)  # type: ignore[arg-type]
    (row,) = task.rows("train")
    assert wording in row.prompt[-1]["content"]
    assert task.verifier(task.gold_completion(row), row.answer).correct
    assert not task.verifier("The answer is nonsense.", row.answer).correct


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "either path .* or hub"),
        ({"path": "x", "hub": "a/b"}, "either path .* or hub"),
        ({"path": "x", "revision": "abc"}, "belongs to a hub"),
        ({"path": "x", "columns": {"anser": "a"}}, "Did you mean 'answer'"),
        ({"path": "x", "columns": {"answer": 3}}, "name of a column"),
        ({"path": "x", "columns": {"answer": "a"}, "answer_column": "b"}, "both set"),
        ({"path": "x", "judge": "choice"}, "columns.choices"),
        ({"path": "x", "judge": "python"}, "go together"),
        ({"path": "x", "function": "operator:eq"}, "go together"),
        ({"path": "x", "key_function": "operator:eq"}, "key_function belongs to"),
        ({"path": "x", "judge": "python", "function": "no_such_module:f"}, "cannot be imported"),
    ],
)
def test_settings_that_do_not_fit(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JsonLines(**settings)


def test_a_hub_without_network_says_what_to_do(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    task = JsonLines(hub="nobody/nothing", test_split="validation")
    assert task.splits == ("train", "test")
    with pytest.raises(DataError, match="Offline, download its file and set path"):
        task.rows("train")
    assert "without a revision" in caplog.text
