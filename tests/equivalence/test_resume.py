"""A run cut in two equals an uninterrupted one to the bit: parameters, optimiser, noise, rollouts still in use."""

import pytest
import torch
from engine_kit import make_trainer, run

from killick import KillickConfig, KillickTrainer
from killick.errors import RecordError

ANCHOR = {
    "beta": 0.2, "kl_form": "k1_reward_to_go", "guide": "token", "max_steps": 7, "save_strategy": "steps",
    "save_steps": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"num_iterations": 2},
        {"num_iterations": 2, "steps_per_generation": 2},
        {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4},
        {"gradient_accumulation_steps": 2, "steps_per_generation": 3},
    ],
    ids=["plain", "reused rollouts", "reused slices", "accumulation", "cycles that do not fit"],
)
def test_resumed_equals_uninterrupted(tmp_path, extra):
    whole = run(make_trainer(KillickTrainer, KillickConfig, tmp_path, **ANCHOR, **extra))
    # save at 3 lies inside a cycle when rollouts are used more than once
    resumed = run(
        make_trainer(KillickTrainer, KillickConfig, tmp_path / "again", **ANCHOR, **extra),
        resume=str(tmp_path / "checkpoint-3"),
    )
    assert resumed.losses[-4:] == whole.losses[-4:]
    for key in whole.parameters:
        assert torch.equal(whole.parameters[key], resumed.parameters[key]), key
    a, b = (o.trainer.optimizer.state_dict()["state"] for o in (whole, resumed))
    assert all(torch.equal(a[i][k], b[i][k]) for i in a for k in a[i] if torch.is_tensor(a[i][k]))


def test_checkpoint_of_another_recipe_is_refused(tmp_path):
    run(make_trainer(KillickTrainer, KillickConfig, tmp_path, **ANCHOR))
    other = {**ANCHOR, "beta": 0.3, "guide": "branch"}
    trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path / "other", **other)
    with pytest.raises(RecordError, match=r"another recipe.*beta: 0\.2 / 0\.3"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"format": 0, "micro_step": 0, "anchor": {}}', None])
def test_incomplete_or_foreign_state_is_refused(tmp_path, content):
    run(make_trainer(KillickTrainer, KillickConfig, tmp_path, **{**ANCHOR, "max_steps": 3}))
    state = tmp_path / "checkpoint-3" / "killick_state.json"
    if content is None:
        state.unlink()
    else:
        state.write_text(content)
    trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path / "again", **ANCHOR)
    with pytest.raises(RecordError, match="resume from an earlier one"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


def test_unreadable_rollouts_are_refused(tmp_path):
    twice = {**ANCHOR, "num_iterations": 2}
    run(make_trainer(KillickTrainer, KillickConfig, tmp_path, **twice))
    (tmp_path / "checkpoint-3" / "killick_rollouts_0.safetensors").write_bytes(b"torn")
    trainer = make_trainer(KillickTrainer, KillickConfig, tmp_path / "again", **twice)
    with pytest.raises(RecordError, match="rollouts still in use"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
