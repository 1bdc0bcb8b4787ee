"""Where the anchor is plain, KillickTrainer is GRPOTrainer to the bit; where it is not, it differs."""

import math

import pytest
import torch
from engine_kit import SGD, assert_same, displace, make_trainer, run
from trl import GRPOConfig, GRPOTrainer

from killick import KillickConfig, KillickTrainer

BIAS = {"k3_loss": False, "k3_ratio": True}


def test_no_anchor(tmp_path):
    stock = run(make_trainer(GRPOTrainer, GRPOConfig, tmp_path / "a", beta=0.0))
    ours = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", beta=0.0, kl_form="none"))
    assert len(stock.losses) == 20
    assert_same(stock, ours)


@pytest.mark.parametrize("kl_form", BIAS)
def test_plain_and_constant_anchor(tmp_path, kl_form):
    """beta = 0.1 moves the parameters visibly away from beta = 0, so equality here is not vacuous."""
    stock = run(make_trainer(GRPOTrainer, GRPOConfig, tmp_path / "a", beta=0.1, use_bias_correction_kl=BIAS[kl_form]))
    plain = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", beta=0.1, kl_form=kl_form))
    constant = run(
        make_trainer(
            KillickTrainer, KillickConfig, tmp_path / "c", beta=0.1, kl_form=kl_form, guide="constant",
            guide_settings={"c": 1.0},
        )
    )  # fmt: skip
    assert_same(stock, plain)
    assert_same(stock, constant)
    without = run(make_trainer(GRPOTrainer, GRPOConfig, tmp_path / "d", beta=0.0))
    assert without.losses != stock.losses


def test_forms_differ_from_each_other(tmp_path):
    series = {}
    for form in ("k3_loss", "k3_ratio", "k2_loss", "k1_reward_to_go", "forward_exact"):
        out = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / form, beta=0.5, kl_form=form, max_steps=4))
        series[form] = tuple(float(p.double().sum()) for p in out.parameters.values())
    assert len(set(series.values())) == len(series)


@pytest.mark.parametrize(
    ("loss_type", "accumulation"),
    [("grpo", 1), ("bnpo", 2), ("dr_grpo", 2), ("dapo", 2), ("cispo", 1), ("sapo", 2), ("vespo", 2), ("luspo", 1)],
)
def test_own_term_is_reduced_as_the_host_reduces_its_kl(tmp_path, loss_type, accumulation, monkeypatch):
    """With zero advantages the stock loss is beta * reduce(k3): the same k3 through our reduction must give it."""
    from killick.engines.trl import terms
    from killick.maths import k3

    settings = {
        "loss_type": loss_type, "max_steps": 3, "beta": 0.3, "gradient_accumulation_steps": accumulation, **SGD,
    }  # fmt: skip

    def displaced(trainer):
        displace(trainer)  # away from the reference, where k3 and its gradient are 0
        start.update({k: v.detach().clone() for k, v in trainer.model.named_parameters()})
        original = trainer._generate_and_score_completions

        def zeroed(inputs):
            out = original(inputs)
            out["advantages"] = torch.zeros_like(out["advantages"])
            return out

        trainer._generate_and_score_completions = zeroed
        return run(trainer)

    start = {}

    def host_k3(trainer, model, batch, logp, shaped):
        return k3(logp, batch["ref_per_token_logps"], batch["completion_mask"].bool())

    a = displaced(make_trainer(GRPOTrainer, GRPOConfig, tmp_path / "a", use_bias_correction_kl=False, **settings))
    monkeypatch.setattr(terms, "per_token_term", host_k3)
    b = displaced(make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", kl_form="k2_loss", **settings))
    assert min(a.losses) > 1e-3
    assert a.losses == pytest.approx(b.losses, rel=1e-5, abs=1e-9)
    assert max(float((a.parameters[k] - start[k]).abs().max()) for k in start) > 2e-5  # ten times the tolerance below
    for key in a.parameters:
        torch.testing.assert_close(a.parameters[key], b.parameters[key], rtol=0, atol=2e-6)


def test_constant_guide_shifts_the_logged_kl(tmp_path):
    """At policy = reference, k3 of the shaped anchor is q - ln q - 1, whatever the tokens."""
    out = run(
        make_trainer(
            KillickTrainer, KillickConfig, tmp_path, beta=0.1, kl_form="k3_loss", guide="constant",
            guide_settings={"c": 1.3}, max_steps=1,
        )
    )  # fmt: skip
    assert out.log[0]["kl"] == pytest.approx(1.3 - math.log(1.3) - 1, abs=1e-5)
    assert out.log[0]["sage/q_mean"] == pytest.approx(1.3, abs=1e-6)


@pytest.mark.parametrize("guide", ["branch", "token", "random"])
def test_guides_change_the_update(tmp_path, guide):
    settings = {"branch": {"gamma": 1.0, "tau": 0.05}, "token": {}, "random": {}}[guide]
    shared = {"beta": 0.5, "kl_form": "k3_loss", "max_steps": 4}
    plain = run(make_trainer(KillickTrainer, KillickConfig, tmp_path / "a", **shared))
    shaped = run(
        make_trainer(KillickTrainer, KillickConfig, tmp_path / "b", guide=guide, guide_settings=settings, **shared)
    )
    assert any(not torch.equal(plain.parameters[k], shaped.parameters[k]) for k in plain.parameters)
    low, mean, high = (shaped.log[-1][f"sage/q_{x}"] for x in ("min", "mean", "max"))
    assert 0.6 - 1e-6 <= low <= mean + 1e-6 <= high + 2e-6 <= 1.4 + 3e-6
