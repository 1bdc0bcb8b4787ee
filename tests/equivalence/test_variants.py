"""The ways people run GRPO also work with a guide: LoRA, bf16, accumulation, every loss type, evaluation."""

import pytest
import torch
from engine_kit import make_trainer, run
from peft import LoraConfig

from killick import KillickConfig, KillickTrainer
from killick.errors import ConfigError
from killick.methods.guides.branch import BranchGuide
from killick.methods.sage import KL_FORMS

GUIDE = {"guide": "branch", "guide_settings": {"gamma": 1.0, "tau_quantile": 0.5}}
FORMS = [name for name, form in KL_FORMS.items() if form.needs_reference]


def guide_for(form):
    return GUIDE if KL_FORMS[form].takes_guide else {}


@pytest.mark.parametrize("kl_form", FORMS)
def test_lora_reference_is_the_adapter_switched_off(tmp_path, kl_form):
    """KL to the base is 0 before the first update and positive after large ones: the reference is the frozen base."""
    trainer = make_trainer(
        KillickTrainer, KillickConfig, tmp_path, beta=0.01, kl_form=kl_form, max_steps=6, learning_rate=0.05,
        extra={"peft_config": LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")},
    )  # fmt: skip
    frozen = {k: v.clone() for k, v in trainer.model.named_parameters() if not v.requires_grad}
    out = run(trainer)
    assert out.log[0]["sage/kl"] == pytest.approx(0.0, abs=1e-6)
    assert abs(out.log[-1]["sage/kl"]) > 1e-4
    assert all(torch.equal(v, dict(out.trainer.model.named_parameters())[k]) for k, v in frozen.items())


@pytest.mark.parametrize("kl_form", FORMS)
@pytest.mark.parametrize("extra", [{"bf16": True}, {"gradient_accumulation_steps": 2}, {"num_iterations": 2}])
def test_forms_run_with_finite_numbers(tmp_path, kl_form, extra):
    out = run(
        make_trainer(
            KillickTrainer,
            KillickConfig,
            tmp_path,
            beta=0.1,
            kl_form=kl_form,
            max_steps=3,
            **guide_for(kl_form),
            **extra,
        )
    )
    assert all(torch.isfinite(p).all() for p in out.parameters.values())
    assert len(out.losses) == 3


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "bnpo", "dr_grpo", "cispo", "sapo", "vespo", "luspo"])
def test_every_loss_type_takes_a_guide(tmp_path, loss_type):
    """The guide moves the update under each reduction, not only under the default one."""
    shared = {"beta": 0.5, "kl_form": "k3_loss", "max_steps": 3, "loss_type": loss_type}
    plain = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / "a", **shared))
    shaped = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", **shared, **GUIDE))
    assert any(not torch.equal(plain.parameters[k], shaped.parameters[k]) for k in plain.parameters)


def test_penalty_of_reward_to_go_reaches_the_advantages(tmp_path):
    """With zero rewards everywhere the k1 penalty is the only force: at policy = reference it is q's alone."""
    trainer = make_trainer(
        KillickTrainer, KillickConfig, tmp_path, beta=0.7, kl_form="k1_reward_to_go", guide="constant",
        guide_settings={"c": 1.25}, max_steps=1,
    )  # fmt: skip
    seen = {}
    shape = trainer._killick_shape

    def watched(model, logp, entropy):
        before = trainer._killick_slice["advantages"].clone()
        shape(model, logp=logp, entropy=entropy)
        seen["difference"] = before.unsqueeze(1) - trainer._killick_slice["advantages"]
        seen["mask"] = trainer._killick_slice["completion_mask"].bool()

    trainer._killick_shape = watched
    trainer.train()
    mask = seen["mask"]
    to_go = mask.flip(1).cumsum(1).flip(1)  # tokens from t to the end
    expected = torch.where(mask, -0.7 * torch.log(torch.tensor(1.25)) * to_go, torch.zeros(()))
    torch.testing.assert_close(seen["difference"], expected, rtol=1e-4, atol=1e-5)


def test_evaluation_loop_uses_the_anchor_too(tmp_path):
    trainer = make_trainer(
        KillickTrainer, KillickConfig, tmp_path, beta=0.1, kl_form="k2_loss", max_steps=1,
        per_device_eval_batch_size=8, **GUIDE,
    )  # fmt: skip
    trainer.train()
    metrics = trainer.evaluate(eval_dataset=trainer.train_dataset.select(range(4)))
    assert torch.isfinite(torch.tensor(metrics["eval_loss"]))
    logged = [entry["eval_sage/q_mean"] for entry in trainer.state.log_history if "eval_sage/q_mean" in entry]
    assert len(logged) == 1
    assert 1.0 < logged[0] <= 1.4


def test_noise_is_a_function_of_seed_generation_and_row(tmp_path):
    def noise(seed, step, micro_step=0, length=5):
        trainer = make_trainer(
            KillickTrainer, KillickConfig, tmp_path, beta=0.1, kl_form="k3_loss", guide="random", max_steps=1,
            gradient_accumulation_steps=4, steps_per_generation=1, seed=seed,
        )  # fmt: skip
        trainer.current_gradient_accumulation_steps = 4
        trainer.state.global_step, trainer._step = step, micro_step
        trainer.model.train()
        return trainer._killick_noise(torch.zeros(8, length, dtype=torch.long))

    first = noise(1, 3)
    assert set(first) == {"killick_noise_normal", "killick_noise_uniform"}
    again, longer = noise(1, 3), noise(1, 3, length=9)
    for key, value in first.items():
        assert torch.equal(value, again[key])
        assert torch.equal(value, longer[key][:, :5])
    key = "killick_noise_normal"
    for other in (noise(1, 4), noise(2, 3), noise(1, 3, micro_step=1)):  # the last: a second generation in one step
        assert not torch.equal(first[key], other[key])
    assert torch.equal(first[key], noise(1, 3, micro_step=4)[key])  # the counter restarts with each optimiser step


def test_evaluation_batches_get_noise_of_their_own_and_work_before_training(tmp_path):
    trainer = make_trainer(
        KillickTrainer, KillickConfig, tmp_path, beta=0.1, kl_form="k3_loss", guide="token", max_steps=1,
        per_device_eval_batch_size=8,
    )  # fmt: skip
    trainer.evaluate(eval_dataset=trainer.train_dataset.select(range(4)))
    logged = [entry["eval_sage/q_mean"] for entry in trainer.state.log_history if "eval_sage/q_mean" in entry]
    assert len(logged) == 1
    assert 0.6 <= logged[0] <= 1.4
    trainer.model.eval()
    ids = torch.zeros(8, 5, dtype=torch.long)
    one, two = (trainer._killick_noise(ids)["killick_noise_normal"] for _ in range(2))
    assert not torch.equal(one, two)


def test_guide_object_and_plain_config_errors(tmp_path):
    from trl import GRPOConfig

    trainer = make_trainer(
        KillickTrainer, KillickConfig, tmp_path, beta=0.1, kl_form="k3_loss", max_steps=1,
        extra={"guide": BranchGuide(gamma=2.0, tau=None, tau_quantile=0.5)},
    )  # fmt: skip
    assert trainer._killick_shaper.guide.gamma == 2.0
    with pytest.raises(ConfigError, match="needs args=KillickConfig"):
        make_trainer(KillickTrainer, GRPOConfig, tmp_path)
    with pytest.raises(ConfigError, match="kl_form is not set"):
        make_trainer(KillickTrainer, KillickConfig, tmp_path, beta=0.1)
    with pytest.raises(ConfigError, match="not a reward function"):
        make_trainer(KillickTrainer, KillickConfig, tmp_path, kl_form="none", correctness_reward="x", max_steps=1)
    with pytest.raises(ConfigError, match="Two guides"):
        make_trainer(
            KillickTrainer, KillickConfig, tmp_path, beta=0.1, kl_form="k3_loss", guide="token",
            extra={"guide": BranchGuide()},
        )  # fmt: skip


def test_failed_groups_are_counted_by_correctness(tmp_path):
    """The first reward has spread in every group; with `correctness_reward` the verifier decides instead."""
    shared = {"kl_form": "none", "max_steps": 1}
    by_first = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / "a", **shared))
    assert by_first.log[0]["group/all_wrong_frac"] == 0.0
    by_verifier = run(
        make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", correctness_reward="correct", **shared)
    )
    assert by_verifier.log[0]["group/all_wrong_frac"] == 1.0  # 16 tokens are too few for three steps
