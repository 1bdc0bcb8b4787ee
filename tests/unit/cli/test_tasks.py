"""`killick tasks validate all` and `overlap` as commands: what they print and how they exit."""

import json
from pathlib import Path

import pytest

from killick.cli import run


def write(file: Path, *problems: str, answer: str = "1") -> str:
    records = [
        {"id": f"{file.stem}-{n}", "problem": text, "answer": answer, "solution": ""} for n, text in enumerate(problems)
    ]
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return str(file)


def test_overlap_of_files_and_tasks(tmp_path: Path, capsys) -> None:
    train = write(tmp_path / "mine.jsonl", "What is 1 + 1?", "What is 1 + 2?")
    write(tmp_path / "aime24.jsonl", "What is $1+2$?", "Something else")
    assert run(["tasks", "overlap", train, "aime24", "--set", f"path={tmp_path}"]) == 1
    out = capsys.readouterr()
    assert json.loads(out.out) == {"eval": "aime24-0", "train": "mine-1", "kind": "text", "share": 1.0}
    assert "1 of 2 evaluation problems (50.0%)" in out.err
    other = write(tmp_path / "other.jsonl", "New")
    assert run(["tasks", "overlap", train, other]) == 0
    assert run(["tasks", "overlap", "aime24:test", "aime24:test", "--set", f"path={tmp_path}"]) == 1
    assert run(["tasks", "overlap", train, "aime2", "--set", f"path={tmp_path}"]) == 2
    assert run(["tasks", "overlap", train, other, "--min-share", "2"]) == 2


def test_overlap_of_files_with_other_columns(tmp_path: Path, capsys) -> None:
    mine, theirs = tmp_path / "mine.jsonl", tmp_path / "theirs.jsonl"
    mine.write_text('{"question": "What is 1 + 2?", "nr": 7}', encoding="utf-8")
    theirs.write_text('{"question": "What is 1+2?", "nr": 8}', encoding="utf-8")
    for columns in (["columns={problem='question', id='nr'}"], ["columns.problem=question", "columns.id=nr"]):
        sets = [word for one in columns for word in ("--set", one)]
        assert run(["tasks", "overlap", str(mine), str(theirs), *sets]) == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["eval"], found["train"]) == ("8", "7")
    assert run(["tasks", "overlap", str(mine), str(theirs)]) == 2
    assert "no column 'problem'" in capsys.readouterr().err
    assert run(["tasks", "overlap", str(mine), str(theirs), "--set", "colums.problem=question"]) == 2
    assert "has a setting 'colums'" in (text := capsys.readouterr().err)
    assert "Did you mean 'columns'?" in text


def test_overlap_says_which_splits_there_are(tmp_path: Path, capsys) -> None:
    assert run(["tasks", "overlap", "amc83", "aime24", "--set", f"path={tmp_path}"]) == 2
    assert "amc83 has no split 'train'. Say which one: amc83:test." in capsys.readouterr().err


def plug_in(folder: Path, monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """An installed package, as far as importlib.metadata can tell, with these tasks."""
    info = folder / "plug_in-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    lines = [f"{name} = {target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[killick.tasks]", *lines, ""]))
    monkeypatch.syspath_prepend(str(folder))


def test_a_broken_plug_in_is_a_row_and_disables_nothing_else(tmp_path: Path, capsys, monkeypatch) -> None:
    plug_in(tmp_path, monkeypatch, ghost="no_such_module:Task", countdown="other.owner:Task", plain="builtins:int")
    assert run(["tasks", "list"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert text.count("cannot be loaded") >= 3
    assert "Two owners of the task" in text
    assert "Grade-school mathematics" in text
    assert run(["tasks", "show", "gsm8k", "--set", f"path={tmp_path}"]) == 2  # no file, but the task is found
    assert "There is no file" in capsys.readouterr().err
    assert run(["tasks", "show", "countdown"]) == 2
    assert "Two owners of the task 'countdown'" in capsys.readouterr().err


def test_names_of_tasks_are_whole_in_a_narrow_terminal(capsys, monkeypatch) -> None:
    from killick.cli import tasks

    monkeypatch.setattr(tasks.out, "_width", 80)
    assert run(["tasks", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for name in tasks.TASKS.names():
        assert any(f" {name} " in line for line in lines), name
    assert "…" not in "".join(lines)


def test_dotted_settings_fill_tables(capsys, tmp_path: Path) -> None:
    from killick.cli.tasks import parse_settings

    assert parse_settings(["a=1", "b.c=x", "b.d.e=[2]", "f="]) == {"a": 1, "b": {"c": "x", "d": {"e": [2]}}, "f": ""}
    assert run(["tasks", "show", "jsonl", "--set", "path=x", "--set", "path.x=1"]) == 2
    assert "'path' is a value, not a table" in capsys.readouterr().err
    file = tmp_path / "mine.jsonl"
    file.write_text('{"question": "1 + 1?", "answer": "2"}', encoding="utf-8")
    assert run(["tasks", "show", "jsonl", "--set", f"path={file}", "--set", "columns.problem=question"]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "1 + 1?"


def test_a_missing_file_is_named_once(capsys, tmp_path: Path) -> None:
    assert run(["tasks", "show", "jsonl", "--set", f"path={tmp_path}/none.jsonl"]) == 2
    assert capsys.readouterr().err.count("none.jsonl") == 1


def test_validate_all_takes_what_is_at_hand(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    from killick.tasks import TASKS

    kept = {name: TASKS._built_in[name] for name in ("aime24", "aime25", "jsonl")}
    monkeypatch.setattr(TASKS, "_built_in", kept)
    write(tmp_path / "aime24.jsonl", "P")
    assert run(["tasks", "validate", "all", "--set", f"path={tmp_path}"]) == 0
    out = capsys.readouterr()
    assert "aime24" in out.out
    assert "1 of 1" in out.out
    assert "aime25 test: left out" in out.err
    assert "jsonl: left out" in out.err
    assert run(["tasks", "validate", "all"]) == 0
    assert "aime24 test: left out, the hub is not at hand" in capsys.readouterr().err


def test_validate_lists_what_fails(tmp_path: Path, capsys) -> None:
    """A judge that finds every text equal to itself only: the wrong gold is refused, the right one accepted."""
    file = write(tmp_path / "mine.jsonl", "P", "Q", answer="x")
    settings = ["--set", f"path={file}", "--set", "judge=python", "--set", "function=operator:ne"]
    assert run(["tasks", "validate", "jsonl", *settings]) == 1
    err = capsys.readouterr().err
    assert err.count("the gold is judged wrong") == 2
    assert "2 verdicts are not as they must be" in err
