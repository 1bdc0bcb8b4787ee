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
