"""Two processes (gloo, CPU) train what one does on the same rows; a signal to one of them stops both.

Started by torchrun: `accelerate launch --cpu` quietly starts one process. The script checks that there are two and that
the model is wrapped for them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from equivalence import two_processes

TESTS = Path(__file__).parents[1]
SAME_CASES = [name for name in two_processes.CASES if name != "quantile_per_process"]
TOLERANCE = 1e-6


def torchrun(*arguments):
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What each of the two processes saved."""
    folder = tmp_path_factory.mktemp("two")
    torchrun(two_processes.__file__, str(folder))
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)], folder


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    folders = {name: tmp_path_factory.mktemp(name) for name in SAME_CASES}
    return {name: {**two_processes.train_case(name, folder), "folder": folder} for name, folder in folders.items()}


def distance(a, b):
    return max(float((a[k] - b[k]).abs().max()) for k in a)


@pytest.mark.parametrize("name", SAME_CASES)
def test_parameters_are_those_of_one_process(one, two, name):
    (first, second), _ = two
    assert distance(one[name]["start"], first[name]["start"]) == 0
    assert distance(one[name]["start"], one[name]["parameters"]) > 100 * TOLERANCE
    assert distance(first[name]["parameters"], second[name]["parameters"]) == 0
    assert distance(one[name]["parameters"], first[name]["parameters"]) < TOLERANCE


def test_a_threshold_per_process_would_show(one, two):
    assert distance(one["quantile"]["parameters"], two[0][0]["quantile_per_process"]["parameters"]) > 10 * TOLERANCE


@pytest.mark.parametrize("name", SAME_CASES)
def test_metrics_are_those_of_one_process(one, two, name):
    """The two hold unequal numbers of tokens: a mean of their means would differ. Every process logs all of them."""
    expected = one[name]["log"]
    assert len(expected) == two_processes.STEPS
    ours = {k for k in expected[0] if k.startswith(("sage/", "group/"))}
    ours |= {k for entry in expected for k in entry if k.startswith("sort/")}
    assert {"group/all_wrong_frac", "sage/kl"} <= ours
    assert ("sage/q_mean" in ours) == ("guide" in two_processes.CASES[name])
    for rank in (0, 1):
        for a, b in zip(expected, two[0][rank][name]["log"], strict=True):
            for key in [*(k for k in ours if k in a), "loss", "grad_norm", "reward"]:
                assert b[key] == pytest.approx(a[key], rel=1e-4, abs=1e-5), key
    assert 0 < sum(entry["group/all_wrong_frac"] for entry in expected) < len(expected)


def test_the_first_process_judges_references_for_all(two):
    """Else two processes would repair different prompts; also when its reward cannot be asked, nobody waits for it."""
    for found in two[0]:
        judged, unchecked = found["references"]
        assert judged == [n % 3 != 0 for n in range(len(judged))]
        assert unchecked == [True] * len(judged)


@pytest.mark.parametrize("name", ["repair", "repair_checkpointing", "repair_slices"])
def test_repairs_are_those_of_one_process(one, two, name):
    """Same prompts, same plans, same order in the records of one process and of two."""
    alone = one[name]["folder"]
    together = two[1] / name
    assert sum(entry["sort/repaired_num"] for entry in one[name]["log"]) >= 2
    for file in ("groups.jsonl", "repairs.jsonl"):
        pairs = [
            [json.loads(line) for line in (folder / file).read_text().splitlines()] for folder in (alone, together)
        ]
        assert len(pairs[0]) == len(pairs[1]) > 0
        for a, b in zip(*pairs, strict=True):
            assert [a[k] for k in a if k not in ("p_base", "p_plan", "weight")] == [
                b[k] for k in b if k not in ("p_base", "p_plan", "weight")
            ]
            assert a.get("weight", []) == pytest.approx(b.get("weight", []), rel=1e-3)


def test_noise_belongs_to_the_global_row(one, two):
    """Rows of the first process, then rows of the second, are the rows of one process, whatever each pads to."""
    whole = one["noise"]["noise"]
    halves = [results["noise"]["noise"] for results in two[0]]
    assert len(whole) == two_processes.STEPS
    for step, rows in enumerate(whole):
        split = halves[0][step] + halves[1][step]
        assert len(rows) == len(split) == two_processes.ROWS
        assert all(torch.equal(a, b) for a, b in zip(rows, split, strict=True))
        assert not torch.equal(rows[0][:3], rows[two_processes.ROWS // 2][:3])  # not the same noise in each half


def test_a_signal_to_one_process_stops_both_at_a_whole_checkpoint(two):
    results, folder = two
    for result in results:
        assert result["interrupted"]["step"] == two_processes.INTERRUPTED_AT
        assert result["interrupted"]["interrupted"]
        assert distance(result["interrupted"]["whole"], result["interrupted"]["resumed"]) == 0
    checkpoint = folder / "cut" / f"checkpoint-{two_processes.INTERRUPTED_AT}"
    names = {path.name for path in checkpoint.iterdir()}
    assert {"killick_state.json", "trainer_state.json", "model.safetensors"} <= names
    assert {f"killick_rollouts_{rank}.safetensors" for rank in (0, 1)} <= names


def test_one_process_evaluates(tmp_path):
    """3 problems x 4 samples are 12 records, written once."""
    sets = {
        "trl.max_steps": 1, "trl.per_device_train_batch_size": 8, "trl.num_generations": 4,
        "trl.max_completion_length": 16, "evaluate.num_problems": 3, "evaluate.num_samples": 4,
        "evaluate.splits": '["mixed"]',
    }  # fmt: skip
    arguments = [x for key, value in sets.items() for x in ("--set", f"{key}={value}")]
    text = torchrun("-m", "killick", "train", "nano", "--run-dir", str(tmp_path), *arguments)
    records = [json.loads(line) for line in (tmp_path / "eval/mixed/records.jsonl").read_text().splitlines()]
    keys = [(record["uid"], record["sample"]) for record in records]
    assert len(keys) == len(set(keys)) == 12
    assert text.count("train_log.jsonl") == 1  # and says once what it wrote
