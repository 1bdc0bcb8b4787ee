"""Ctrl-C, kill -9 and a resumed run, on real processes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

SETS = {
    "trl.max_steps": 8, "trl.per_device_train_batch_size": 16, "trl.num_generations": 4, "run.save_every": 2,
    "evaluate.num_problems": 3, "evaluate.num_samples": 4, "evaluate.splits": '["mixed"]',
    "method.anchor.name": "token", "method.anchor.gamma": "", "method.anchor.tau_quantile": "",
}  # fmt: skip


def command(folder):
    sets = [x for key, value in SETS.items() for x in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "killick", "train", "nano", "--run-dir", str(folder), *sets]


def start(folder):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
    )


def lines(folder):
    path = folder / "train_log.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def wait_for_step(process, folder, step):
    deadline = time.monotonic() + 180
    while lines(folder) < step and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[0]
    assert lines(folder) >= step


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder)
    text = process.communicate(timeout=300)[0]
    assert process.returncode == 0, text
    return folder


def assert_equals(whole, folder):
    a, b = (load_file(f / "model" / "model.safetensors") for f in (whole, folder))
    assert all((a[k] == b[k]).all() for k in a)
    losses = [
        [json.loads(x)["loss"] for x in (f / "train_log.jsonl").read_text().splitlines()] for f in (whole, folder)
    ]
    assert losses[0] == losses[1]
    records = [sorted((f / "eval/mixed/records.jsonl").read_text().splitlines()) for f in (whole, folder)]
    texts = [[(r["uid"], r["sample"], r["text"]) for r in map(json.loads, part)] for part in records]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 12


def test_ctrl_c_writes_a_checkpoint_and_the_rest_is_the_same(whole, tmp_path):
    process = start(tmp_path)
    wait_for_step(process, tmp_path, 3)
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=120)[0]
    assert process.returncode == 130, text
    assert "Traceback" not in text
    assert list(tmp_path.glob("checkpoint-*/killick_state.json"))
    again = start(tmp_path)
    text = again.communicate(timeout=300)[0]
    assert again.returncode == 0, text
    assert "Resuming from" in text
    assert_equals(whole, tmp_path)


def test_kill_9_loses_at_most_the_steps_since_the_last_checkpoint(whole, tmp_path):
    process = start(tmp_path)
    wait_for_step(process, tmp_path, 5)
    process.kill()
    process.communicate()
    again = start(tmp_path)
    text = again.communicate(timeout=300)[0]
    assert again.returncode == 0, text
    assert_equals(whole, tmp_path)


def test_another_recipe_does_not_continue_this_folder(whole):
    argv = [*command(whole), "--set", "trl.beta=0.2"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2
    assert "trl.beta: 0.05 / 0.2" in " ".join(done.stderr.split())
