"""Did numbers move? Series of seeded runs, as text. Change them only with a reason in the commit:

KILLICK_GOLDEN=write make golden

The policy starts away from its reference and the completions are scripted: nothing is 0, nothing is sampled, so every
row of every run can be compared on any machine.
"""

import os
from pathlib import Path

import pytest
import torch
from engine_kit import SGD, displace, make_trainer, run, script_rollouts

from killick import KillickConfig, KillickTrainer
from killick.engines.trl import names
from killick.methods import sage
from killick.methods.guides.branch import BranchGuide

FOLDER = Path(__file__).parent
COLUMNS = ("loss", "grad_norm", "reward", "sage/kl")
NUM_STEPS = 10
REL, ABS = 1e-4, 1e-5
"""In double precision the series differ from these by less than 2e-5 relative, or 2e-6 where a value is near 0."""
BRANCH = {"guide": "branch", "guide_settings": {"gamma": 1.0, "tau": 0.3}}
RUNS = {
    "sage_branch_k3_loss": {"kl_form": "k3_loss", **BRANCH},
    "sage_branch_quantile_k3_loss": {
        "kl_form": "k3_loss", "guide": "branch", "guide_settings": {"gamma": 1.0, "tau_quantile": 0.5},
        "gradient_accumulation_steps": 2, "per_device_train_batch_size": 4,
    },
    "sage_token_k3_ratio": {"kl_form": "k3_ratio", "guide": "token", "num_iterations": 2},
    "sage_token_reward_to_go": {"kl_form": "k1_reward_to_go", "guide": "token"},
    "sage_random_k3_loss": {"kl_form": "k3_loss", "guide": "random", "guide_settings": {"e_upper": 0.5}},
    "grpo_k2_loss": {"kl_form": "k2_loss", "loss_type": "grpo"},
    "grpo_forward_exact": {"kl_form": "forward_exact"},
}  # fmt: skip


def series(name, folder):
    """[steps][columns] of one run."""
    settings = {"beta": 1.0, "max_steps": NUM_STEPS, "max_completion_length": 32, **SGD, **RUNS[name]}
    trainer = make_trainer(KillickTrainer, KillickConfig, folder, **settings)
    displace(trainer)
    script_rollouts(trainer)
    # a step that uses rollouts again has no new reward
    return [[entry.get(column, float("nan")) for column in COLUMNS] for entry in run(trainer).log]


def stored(name):
    return [[float(x) for x in line.split()] for line in (FOLDER / f"{name}.txt").read_text().splitlines()[1:]]


def differing(found, expected):
    """Names of the columns that differ in some row by more than another order of summation can explain."""
    assert len(found) == len(expected) == NUM_STEPS
    columns = zip(COLUMNS, zip(*found, strict=True), zip(*expected, strict=True), strict=True)
    return [name for name, a, b in columns if a != pytest.approx(b, rel=REL, abs=ABS, nan_ok=True)]


@pytest.mark.parametrize("name", RUNS)
def test_series(name, tmp_path):
    found = series(name, tmp_path)
    if os.environ.get("KILLICK_GOLDEN") == "write":
        rows = [" ".join(f"{x:.7e}" for x in row) for row in found]
        head = f"# {', '.join(COLUMNS)} of {NUM_STEPS} seeded steps"
        (FOLDER / f"{name}.txt").write_text("\n".join([head, *rows]) + "\n")
    assert differing(found, stored(name)) == []


def test_stored_series_are_not_degenerate():
    """Losses, gradients and KL away from 0 from the first row on, and moving; no two runs alike."""
    everything = {name: stored(name) for name in RUNS}
    for rows in everything.values():
        assert all(abs(row[i]) > 1e-3 for row in rows for i in (0, 1, 3))
        assert abs(rows[0][3] - rows[-1][3]) > 100 * REL * abs(rows[0][3])
    assert len({str(rows) for rows in everything.values()}) == len(RUNS)


def twice_k2(patch):
    original = sage.k2
    patch.setattr(sage, "k2", lambda *args: 2 * original(*args))


def no_mask(patch):
    patch.setattr(names, "loss_mask", lambda batch: torch.ones_like(batch["completion_mask"], dtype=torch.bool))


def larger_q(patch):
    original = BranchGuide.__call__
    patch.setattr(BranchGuide, "__call__", lambda self, view: 1.01 * original(self, view))


@pytest.mark.parametrize(
    ("name", "change"),
    [("grpo_k2_loss", twice_k2), ("sage_token_reward_to_go", no_mask), ("sage_branch_k3_loss", larger_q)],
)
def test_a_wrong_term_shows(name, change, tmp_path, monkeypatch):
    change(monkeypatch)
    found = series(name, tmp_path)
    assert {"loss", "grad_norm", "sage/kl"} & set(differing(found[:1] * NUM_STEPS, stored(name)[:1] * NUM_STEPS))
