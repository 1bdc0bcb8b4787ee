"""Does the installed TRL still offer what the trainer relies on? Static checks, and one real step that is watched."""

import ast
import inspect
from dataclasses import fields

import pytest
import torch
from engine_kit import make_trainer
from trl import GRPOConfig, GRPOTrainer

from killick import KillickConfig, KillickTrainer
from killick.engines.trl import contract
from killick.engines.trl import trainer as trainer_module

ANCHOR = {"beta": 0.1, "kl_form": "k3_loss", "max_steps": 1}


@pytest.mark.parametrize("name", contract.CHECKS)
def test_static(name):
    assert contract.check_contract()[name] is None


def test_a_changed_host_is_found(monkeypatch):
    monkeypatch.delattr(GRPOTrainer, "_calculate_rewards")
    found = contract.check_contract()["what the trainer overrides or calls"]
    assert found is not None
    assert "_calculate_rewards" in found


SHADOWING = "no name of ours shadows the host's by accident"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("evaluate", "replaces evaluate of the host"),  # a method of the host
        ("_metrics", "without the prefix _killick_: _metrics"),  # the host has it too, but only in instances
        ("helper", "without the prefix _killick_: helper"),  # nobody's yet
    ],
)
def test_an_accidental_name_is_found(monkeypatch, name, said):
    monkeypatch.setattr(KillickTrainer, name, lambda self: None, raising=False)
    found = contract.check_contract()[SHADOWING]
    assert found is not None
    assert said in found


def test_an_override_not_listed_is_found(monkeypatch):
    monkeypatch.setattr(contract, "OVERRIDES", contract.OVERRIDES - {"_compute_loss"})
    assert "_compute_loss" in contract.check_contract()[SHADOWING]


def foreign(trainer, stock):
    """Attributes of a trainer that a stock one lacks and that lack our prefix."""
    return sorted(n for n in vars(trainer).keys() - vars(stock).keys() if not n.startswith("_killick_"))


def test_attributes_of_an_instance_have_our_prefix(tmp_path):
    """`self.log = …` would hide the host's method: an attribute the stock trainer's instance does not have."""
    stock = make_trainer(GRPOTrainer, GRPOConfig, tmp_path / "a", beta=0.1)
    ours = make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", guide="random", **ANCHOR)
    assert vars(ours).keys() - vars(stock).keys()  # there is something to look at
    assert foreign(ours, stock) == []
    ours.log = ours.log
    assert foreign(ours, stock) == ["log"]


def test_no_attribute_of_the_host_is_assigned():
    """Which names the source assigns to `self`: ours, and `beta`, which is put back after the loss call."""
    tree = ast.parse(inspect.getsource(trainer_module))
    assigned = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.value.id == "self"
    }
    assert {n for n in assigned if not n.startswith("_killick_")} == {"beta"}


class Recorder(dict):
    """A batch that notes the order of its reads."""

    reads: list

    def _note(self, key):
        self.reads.append(key)

    def __getitem__(self, key):
        self._note(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self._note(key)
        return super().get(key, default)


def test_order_of_reads_in_a_real_step(tmp_path, monkeypatch):
    """The seam lies after the masks and before advantages and reference are read."""
    trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path, **ANCHOR)
    reads: list[str] = []
    seam = GRPOTrainer._get_per_token_logps_and_entropies
    loss = GRPOTrainer._compute_loss

    def watched_seam(self, *args, **kwargs):
        out = seam(self, *args, **kwargs)
        if self._killick_slice is not None:
            assert len(out) == 3
            reads.append("<seam>")
        return out

    def watched_loss(self, model, inputs):
        record = Recorder(inputs)
        record.reads = reads
        self._killick_slice = record
        return loss(self, model, record)

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", watched_seam)
    monkeypatch.setattr(GRPOTrainer, "_compute_loss", watched_loss)
    trainer.train()
    assert reads.count("<seam>") == 1
    at = reads.index("<seam>")
    assert "completion_mask" in reads[:at]
    for key in ("advantages", "ref_per_token_logps"):
        assert key not in reads[:at]
        assert key in reads[at:]


def test_buffered_slice_is_untouched(tmp_path):
    """TRL reads the same slice again when num_iterations > 1: what we write must stay in the copy."""
    trainer = make_trainer(
        KillickTrainer, KillickConfig, tmp_path, guide="constant", guide_settings={"c": 1.3}, **ANCHOR
    )
    before = {}
    loss = trainer._compute_loss

    def watched(model, inputs):
        before.update({k: v.clone() for k, v in inputs.items() if torch.is_tensor(v)})
        out = loss(model, inputs)
        assert inputs.keys() == before.keys()
        assert all(torch.equal(inputs[k], before[k]) for k in before)
        return out

    trainer._compute_loss = watched
    trainer.train()
    assert before


def test_group_rewards_arrive_in_group_order(tmp_path):
    """Rows of `_calculate_rewards` are prompts repeated G times in a row."""
    trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path, **ANCHOR)
    seen = []
    original = trainer._calculate_rewards

    def watched(inputs, prompts, completions, ids):
        seen.extend(p[-1]["content"] for p in prompts)
        rewards = original(inputs, prompts, completions, ids)
        assert rewards.shape == (len(prompts), 2)
        return rewards

    trainer._calculate_rewards = watched
    trainer.train()
    assert len(seen) == 8
    assert len(set(seen[:4])) == 1
    assert len(set(seen[4:])) == 1
    assert seen[0] != seen[4]


def test_every_setting_of_the_host_passes_through(tmp_path):
    """KillickConfig adds six fields and fills one; vLLM and all other settings of TRL arrive as given."""
    given = {
        "output_dir": str(tmp_path), "bf16": False, "beta": 0.1, "vllm_mode": "server", "vllm_server_port": 8123,
        "vllm_gpu_memory_utilization": 0.55, "vllm_importance_sampling_mode": "token_truncate", "top_p": 0.9,
        "top_entropy_quantile": 0.5, "entropy_coef": 0.01, "delta": 4.0, "epsilon_high": 0.28, "report_to": "none",
    }  # fmt: skip
    host, ours = GRPOConfig(**given), KillickConfig(kl_form="k3_ratio", **given)
    names = {f.name for f in fields(GRPOConfig)}
    assert {f.name for f in fields(KillickConfig)} - names == {
        "kl_form",
        "guide",
        "guide_settings",
        "repair",
        "repair_settings",
        "correctness_reward",
    }
    differing = {n for n in names if str(getattr(host, n)) != str(getattr(ours, n))}
    assert differing <= {"logging_dir", "run_name"}
    assert ours.use_bias_correction_kl is True
    assert KillickConfig(kl_form="k3_loss", **given).use_bias_correction_kl is False
