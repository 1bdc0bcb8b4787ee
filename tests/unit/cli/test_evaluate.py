"""`killick evaluate` as a command: what it refuses, what it says under the table, and what it leaves on disk."""

import itertools
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from killick.cli import evaluate as command
from killick.cli import run
from killick.tasks import TASKS
from killick.tasks.countdown import Countdown

ROOT = Path(__file__).parents[3]
SHOWING = (ROOT / "README.md", ROOT / "docs" / "evaluation.md", ROOT / "docs" / "tasks.md")
SHORT = ["--samples", "2", "--problems", "2", "--max-tokens", "4"]


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps({"question": f"{n}+1", "answer": "2"}) + "\n" for n in range(4)))
    return ["--task", "jsonl", "--task-set", f"path={file}", "--task-set", "columns.problem=question"]


@pytest.mark.parametrize("env", [{"HF_HUB_OFFLINE": "1"}])
def test_a_name_that_is_nowhere_is_one_line(tmp_path, env):
    """In a process of its own, because the client reads its environment on import."""
    argv = [sys.executable, "-m", "killick", "evaluate", "owner/nope", "--task", "countdown", "--split", "mixed"]
    environment = {**os.environ, **env, "HF_HOME": str(tmp_path)}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    assert "There is no folder owner/nope, and the hub has no such model or cannot be reached" in done.stderr
    assert len(done.stderr.splitlines()) == 2  # the other one says that the hub is asked
    assert list(tmp_path.iterdir()) == []


def test_attempts_at_the_hub_are_not_told_one_by_one(caplog):
    assert run(["recipes"]) == 0
    client = logging.getLogger("huggingface_hub.utils._http")
    client.warning("Retrying in 8s [Retry 4/5].")
    client.warning("'no route' thrown while requesting HEAD https://hub/x")
    client.warning("Rate limited. Waiting 300s before retry [Retry 1/5].")
    assert [record.getMessage()[:12] for record in caplog.records] == ["Rate limited"]


def test_a_judge_that_always_fails_does_not_look_like_a_bad_model(mine, tmp_path, capsys, caplog):
    """str / str is a TypeError for every completion. 4 problems of 3 samples: 12 verdicts."""
    argv = ["evaluate", "nano", *mine, "--task-set", "judge=python", "--task-set", "function=operator:truediv"]
    argv += ["--samples", "3", "--max-tokens", "4", "--out", str(tmp_path / "out")]
    assert run(argv) == 1
    text = capsys.readouterr().err
    assert re.search(r"jsonl/train: 12 of 12 verdicts are `error` \(first cause: .*TypeError", text)
    assert re.search(r"jsonl/train: \d+ of 12 completions hit max_tokens = 4 and were cut", text)
    assert "says nothing about the model" in text
    assert len((tmp_path / "out" / "train" / "records.jsonl").read_text().splitlines()) == 12
    told = [record.getMessage() for record in caplog.records if "failed on a completion" in record.getMessage()]
    assert len(told) == 3
    assert "9 more lines like these" in caplog.text
    assert run(argv) == 1  # nothing new is judged, and the numbers are no better


def test_a_refused_request_leaves_the_folder_free(tmp_path, capsys):
    argv = ["evaluate", "nano", "--task", "countdown", "--split", "mixed", *SHORT, "--out", str(tmp_path)]
    assert run([*argv, "--max-tokens", "5000"]) == 2
    text = capsys.readouterr().err
    assert "Set sampling.max_tokens" in text
    assert "sampling " not in text.replace("sampling.", "")  # no empty progress bar
    assert run(argv) == 0
    capsys.readouterr()
    before = (tmp_path / "mixed" / "records.jsonl").read_bytes()
    assert run([*argv, "--samples", "3"]) == 2
    assert "sampling.num_samples: 2 / 3). Choose another folder with --out" in capsys.readouterr().err
    assert (tmp_path / "mixed" / "records.jsonl").read_bytes() == before


def test_the_split_of_a_task_that_has_one_need_not_be_said(mine, tmp_path, capsys):
    assert run(["evaluate", "nano", *mine, *SHORT, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "train" / "summary.json").is_file()
    assert run(["evaluate", "nano", "--task", "gsm8k", *SHORT]) == 2
    assert "--split is missing; gsm8k has: train, test." in capsys.readouterr().err


@dataclass(frozen=True)
class Stopped(Countdown):
    """Somebody presses Ctrl-C while the first batch is judged."""

    @property
    def verifier(self):
        def press(text, answer):
            raise KeyboardInterrupt

        return press


def test_ctrl_c_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(TASKS._built_in, "stopped", f"{__name__}:Stopped")
    argv = ["evaluate", "nano", "--task", "stopped", "--split", "mixed", *SHORT, "--out", str(tmp_path)]
    assert run(argv) == 130
    assert "Stopped; the same command resumes." in capsys.readouterr().err


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in re.findall(r"^ *killick evaluate [^\n]+", text, re.M)]


def test_commands_one_after_another_do_not_share_a_folder():
    """Two that name no --out share one when model, backend and what is evaluated are equal, and a split is."""
    taken: dict[tuple[str, str, str], list[str]] = {}
    shown = [commands(text) for text in (command.HELP, *(file.read_text() for file in SHOWING))]
    assert all(shown)
    for words in itertools.chain(*shown):
        options: dict[str, list[str]] = {}
        for key, value in zip(words[3:], [*words[4:], ""], strict=True):
            if key.startswith("--"):
                options.setdefault(key, []).append(value)
        if "--out" in options:
            continue
        what = options.get("--suite") or options.get("--task") or ["countdown"]  # the recipe `nano` is of countdown
        splits = options.get("--split", ["mixed", "hard"] if "--recipe" in options else ["all"])
        for split in splits:
            place = (words[2], f"{what[0]} {options.get('--backend', ['transformers'])[0]}", split)
            assert taken.setdefault(place, words) == words, (taken[place], words)
