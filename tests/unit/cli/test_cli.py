"""Wrong use of the command line: exit code 2, one clear message, no traceback; help with examples."""

import json
import subprocess
import sys

import pytest

from killick.cli import app, run

COMMANDS = ["train", "evaluate", "compare", "report", "study", "recipes", "doctor", "verify", "tasks", "nano", "lab"]


@pytest.mark.parametrize(
    "argv",
    [[c, "--help"] for c in COMMANDS[:-3]]
    + [["tasks", s, "--help"] for s in ("list", "show", "validate", "overlap")]
    + [["lab", s, "--help"] for s in ("anchors", "support", "repair", "shrinkage")]
    + [["nano", "build", "--help"]],
)
def test_help_has_an_example(argv, capsys):
    assert run(argv) == 0
    text = capsys.readouterr().out
    assert "Example" in text
    assert f"killick {' '.join(argv[:-1])}" in text.replace("\n", " ")
    assert all(line.count("killick ") < 2 for line in text.splitlines()), "examples run together"


def test_every_command_is_listed_here():
    registered = {c.callback.__name__ for c in app.registered_commands} | {g.name for g in app.registered_groups}
    assert registered == set(COMMANDS)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["train", "nanno"], "Did you mean 'nano'"),
        (["train", "nano", "--set", "trl.beta=0"], "beta = 0"),
        (["train", "nano", "--set", "method.anchor.kl_form=forward_exact"], "nothing to guide"),
        (["train", "nano", "--set", "method.anchor.kl_form=none", "--set", "trl.beta=0"], "nothing to guide"),
        (["train", "nano", "--set", "method.anchor.kl_form=k9"], "Unknown kl_form 'k9'"),
        (["train", "nano", "--set", "method.anchor.name=brunch"], "Did you mean 'branch'"),
        (["train", "nano", "--set", "method.anchor.gama=2"], "Did you mean 'gamma'"),
        (["train", "nano", "--set", "trl.max_stepps=2"], "Did you mean 'max_steps'"),
        (
            ["train", "nano", "--set", "trl.loss_type=vespo", "--set", "method.anchor.kl_form=k1_reward_to_go"],
            "per row",
        ),
        (["train", "nano", "--set", "trl.use_bias_correction_kl=true"], "needs use_bias_correction_kl=False"),
        (["train", "nano", "--set", "trl.seed=3"], "set by another section"),
        (["train", "nano", "--set", "trl.num_generations=7"], "rejected by TRL"),
        (["train", "nano", "--set", "task.name=countdwn", "--run-dir", "{tmp}"], "Did you mean 'countdown'"),
        (["train", "nano", "--set", "task.split=tran", "--run-dir", "{tmp}"], "train"),
        (["train", "nano", "--set", 'evaluate.splits=["nope"]', "--run-dir", "{tmp}"], "nope"),
        (["train", "nano", "--set", "evaluate.num_samples=0", "--run-dir", "{tmp}"], "num_samples"),
        (["train", "nano", "--set", "evaluate.top_p=2", "--run-dir", "{tmp}"], "top_p"),
        (["train", "nano", "--set", "evaluate.num_problems=0", "--run-dir", "{tmp}"], "0"),
        (["train", "nano", "--set", "model.max_prompt_tokens=2", "--run-dir", "{tmp}"], "All 2000 prompts are longer"),
        (["train", "nano", "--set", "model.name_or_path=no/such/place/x", "--run-dir", "{tmp}"], "no model folder"),
        (["train", "nano", "--run-dir", "{file}/run"], "Cannot write to"),
        (
            [
                "train",
                "nano",
                "--set",
                "task.name=jsonl",
                "--set",
                "task.path={empty}",
                "--run-dir",
                "{tmp}",
                "--no-evaluate",
            ],
            "empty",
        ),
        (["evaluate", "nano"], "Say what to evaluate"),
        (["evaluate", "nano", "--task", "countdown", "--split", "mixd"], "mixed"),
        (["evaluate", "{tmp}", "--task", "countdown", "--split", "mixed"], "config.json is missing"),
        (["evaluate", "nano", "--task", "countdown", "--split", "mixed", "--top-p", "0"], "top_p"),
        (["compare", "{tmp}", "{tmp}"], "spec.json"),
        (["report", "{tmp}"], "{tmp}"),
        (["study", "quikstart"], "Did you mean 'quickstart'"),
        (["tasks", "show", "countdwn"], "Did you mean 'countdown'"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_use(argv, message, capsys, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "empty.jsonl").write_text("")
    places = {"tmp": tmp_path / "out", "file": tmp_path / "file", "empty": tmp_path / "empty.jsonl"}
    assert run([a.format(**places) for a in argv]) == 2
    captured = capsys.readouterr()
    text = " ".join((captured.err + captured.out).split())
    assert message.format(**places) in text
    assert "Traceback" not in text


def test_settings_of_a_guide_are_checked_before_trl_is_imported():
    code = (
        "import sys; from killick.cli import run; "
        "code = run(['train', 'nano', '--set', 'method.anchor.name=constant', '--set', 'method.anchor.d=1']); "
        "sys.exit(code if 'trl' not in sys.modules else 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "'constant' has no setting 'd'" in done.stderr


def test_tasks_show_prints_json_lines(capsys):
    assert run(["tasks", "show", "countdown", "--limit", "1"]) == 0  # the first split
    assert "train" in json.loads(capsys.readouterr().out)["uid"]
    assert run(["tasks", "show", "countdown", "--split", "hard", "--limit", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2
    assert rows[0]["uid"] != rows[1]["uid"]


def test_tasks_validate(capsys):
    assert run(["tasks", "validate", "countdown", "--split", "validation", "--limit", "20"]) == 0
    assert "20 of 20" in capsys.readouterr().out


def test_recipes_prints_a_file(capsys):
    assert run(["recipes", "nano"]) == 0
    assert 'kl_form = "k3_loss"' in capsys.readouterr().out
