"""What the README tells people to type is run here, shrunk to seconds where it would take minutes."""

import itertools
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from killick import study as studies
from killick.cli import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LINES = [
    line.split("#")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.split("#")[0].strip()
]
COMMANDS = [line for line in LINES if line.startswith("killick ")]
MAKE = [line for line in LINES if line.startswith("make ")]


def test_every_line_is_known():
    others = [line for line in LINES if line not in COMMANDS + MAKE]
    assert others == ["pip install killick"]
    assert MAKE == ["make quickstart", "make test"]


@pytest.mark.parametrize("line", MAKE)
def test_make_target(line):
    target = line.split()[1]
    planned = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {"quickstart": "killick study quickstart", "test": "-m pytest"}[target] in planned
    assert "tools/setup.sh .venv" in planned


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, shrink_study):
    """A folder in which `killick study quickstart` has run, shrunk."""
    folder = tmp_path_factory.mktemp("readme")
    path = shrink_study(studies.shipped_studies()["quickstart"], folder / "quickstart.toml")
    assert run(["study", str(path), "--out", str(folder / "runs" / "quickstart")]) == 0
    return folder


@pytest.mark.parametrize("line", COMMANDS)
def test_command(line, workplace, byte_llama, gsm8k, shrunk, monkeypatch):
    monkeypatch.chdir(workplace)
    argv = shlex.split(line)[1:]
    if argv[0] == "train":
        sets = dict(shrunk)
        if "gsm8k" in line:
            sets |= {
                "model.name_or_path": str(byte_llama),
                "task.path": str(gsm8k),
                "model.lora.target_modules": ["q_proj"],
            }
        for key, value in sets.items():
            argv += ["--set", f"{key}={json.dumps(value)}"]
        argv += ["--run-dir", f"runs/{abs(hash(line))}"]
    elif argv[0] == "evaluate":
        argv[argv.index("--samples") + 1] = "2"
        argv += ["--problems", "2"]
    elif argv[:2] == ["nano", "build"]:
        argv += ["--steps", "2", "--no-score"]
    elif argv[0] == "study":
        only = [value for flag, value in itertools.pairwise(argv) if flag == "--arm"]
        assert studies.load_study(argv[1], only=only).arms
        argv = ["study", "quickstart.toml", "--out", "runs/quickstart"]
    elif argv[:2] == ["tasks", "validate"]:
        argv += ["--limit", "20"]
    assert run(argv) == 0


def test_three_changed_lines(tmp_path):
    """The lines marked + in the README's diff, on the nano base."""
    from engine_kit import SMALL, digit_share

    from killick.nano import base_path
    from killick.tasks.countdown import Countdown

    block = re.search(r"```diff\n(.*?)```", README, re.S)[1]
    added = [line[1:] for line in block.splitlines() if line.startswith("+")]
    assert len(added) == 3
    small = {**SMALL, "output_dir": str(tmp_path), "max_steps": 1}
    code = "\n".join(added).replace("...", "**small")
    from datasets import Dataset

    dataset = Dataset.from_dict({"prompt": [row.prompt for row in Countdown().rows("train", 8)]})
    scope = {"small": small, "model": str(base_path()), "reward": digit_share, "dataset": dataset}
    exec(compile(code, "README.md", "exec"), scope)
    scope["trainer"].train()
    assert scope["trainer"].state.global_step == 1
    assert "sage/q_mean" in scope["trainer"].state.log_history[0]
