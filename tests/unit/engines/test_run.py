"""What a run refuses before anything long starts, and which checkpoint it goes on from."""

import json

import pytest

from killick.config import load_recipe
from killick.engines.trl.args import build_args
from killick.engines.trl.checkpoint import STATE, last_checkpoint
from killick.engines.trl.run import check_folder, claim_folder, is_trained
from killick.errors import ConfigError, RecordError

PARTS = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", STATE)


def checkpoint(run_dir, step):
    folder = run_dir / f"checkpoint-{step}"
    folder.mkdir()
    for part in PARTS:
        (folder / part).write_text("x")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return folder


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trl.max_steps=2.5", "max_steps must be int, found 2.5"),
        ("trl.learning_rate=fast", "learning_rate must be float"),
        ("trl.learning_rate=nan", "learning_rate must be finite"),
        ("trl.learning_rate=-1", "at least 0.0"),
        ("trl.temperature=0", "temperature must be > 0"),
        ("trl.num_generations=0", "num_generations must be at least 2"),
        ("trl.per_device_train_batch_size=0", "at least 1"),
        ("trl.max_completion_length=0", "at least 1"),
        ("trl.loss_type=nope", "has no loss_type 'nope'"),
        ("trl.num_generations=7", "rejected by TRL"),
        ("run.seed=-1", r"\[run\] seed must be between 0"),
        ("run.threads=0", r"\[run\] threads must be between 1"),
        ("run.save_every=-2", r"\[run\] save_every must be between 1"),
        ("trl.beta=2024-01-01", "is a date"),
        ("method.anchor=3", "must be a table"),
    ],
)
def test_wrong_values(override, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        build_args(load_recipe("nano", [override]), tmp_path)


@pytest.mark.parametrize("part", [*PARTS, "trainer_state.json"])
@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_a_checkpoint_that_is_not_whole_is_passed_over(tmp_path, part, damage, caplog):
    whole, torn = checkpoint(tmp_path, 2), checkpoint(tmp_path, 4)
    assert last_checkpoint(tmp_path) == torn
    if damage == "missing":
        (torn / part).unlink()
    else:
        (torn / part).write_text("")
    assert last_checkpoint(tmp_path) == whole
    assert "passed over" in caplog.text


def test_odd_folders_are_no_checkpoints(tmp_path):
    (tmp_path / "checkpoint-²").mkdir()
    (tmp_path / "checkpoint-x").mkdir()
    assert last_checkpoint(tmp_path) is None
    (checkpoint(tmp_path, 3) / "trainer_state.json").write_text('{"global_step": 2}')
    assert last_checkpoint(tmp_path) is None


def test_another_recipe_is_refused_once_something_was_trained(tmp_path):
    one, other = load_recipe("nano"), load_recipe("nano", ["trl.beta=0.2"])
    claim_folder(one, tmp_path)
    check_folder(other, tmp_path)  # nothing trained yet: a failed start leaves the folder free
    (tmp_path / "train_log.jsonl").write_text("")
    check_folder(one, tmp_path)
    with pytest.raises(RecordError, match=r"trl\.beta: 0\.05 / 0\.2"):
        check_folder(other, tmp_path)
    for content in ("{}", '{"run": 3}', "{", "[]"):
        (tmp_path / "resolved.json").write_text(content)
        with pytest.raises(RecordError):
            check_folder(one, tmp_path)


def test_trained_needs_weights_and_the_mark(tmp_path):
    (tmp_path / "done.json").write_text("{}")
    assert not is_trained(tmp_path)
    (tmp_path / "model.safetensors").write_text("x")
    assert is_trained(tmp_path)
