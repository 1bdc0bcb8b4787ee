"""Settings of a repair, the term and its numbers."""

import math

import pytest
import torch

from killick.errors import ConfigError, ContractError
from killick.methods.repairs.dft import DftRepair
from killick.methods.repairs.geometric import GeometricRepair
from killick.methods.sort import RepairSettings, build_repair, repair, repair_metrics

BASE = torch.tensor([[0.04, 0.9, 0.5], [0.25, 0.5, 1.0]], dtype=torch.float64).log()
PLAN = torch.tensor([[0.64, 0.9, 0.5], [1.0, 0.5, 1.0]], dtype=torch.float64).log()
MASK = torch.tensor([[True, True, True], [True, True, False]])
BOTH, FIRST = torch.tensor([True, True]), torch.tensor([True, False])


@pytest.mark.parametrize("name", [None, "none"])
def test_none_is_no_repair(name):
    assert build_repair(name, {}) is None
    with pytest.raises(ConfigError, match=r"without a rule.*geometric"):
        build_repair(name, {"batch_size": 3})


def test_shared_settings_and_rule_come_from_one_table():
    rule, settings = build_repair("geometric", {"batch_size": 3, "coefficient": 1, "plan_source": "column"})
    assert rule == GeometricRepair()
    assert settings == RepairSettings(batch_size=3, coefficient=1, plan_source="column")


def test_a_rule_without_plans_asks_for_none():
    rule, settings = build_repair("dft", {"batch_size": 3})
    assert (rule, settings.plan_source) == (DftRepair(), "none")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("geometrik", {}, "Did you mean 'geometric'"),
        ("geometric", {"batchsize": 3}, "Did you mean 'batch_size'"),
        ("geometric", {"batch_size": 0}, "batch_size must be at least 1"),
        ("geometric", {"batch_size": 2.5}, "batch_size = 2.5 must be a whole number"),
        ("geometric", {"coefficient": -1.0}, "coefficient must be a finite number >= 0"),
        ("geometric", {"coefficient": math.nan}, "coefficient must be a finite number >= 0"),
        ("geometric", {"coefficient": "much"}, "must be a number"),
        ("geometric", {"plan_temperature": math.inf}, "plan_temperature must be a finite number"),
        ("geometric", {"plan_source": "teacher"}, "must be one of: column, none, policy"),
        ("geometric", {"batch_size": 9, "capacity": 8}, "never wait in a buffer of capacity = 8"),
        ("geometric", {"max_reference_tokens": 0}, "max_reference_tokens must be at least 1"),
        ("dft", {"plan_source": "policy"}, "reads no plan, so plan_source has no effect"),
        ("geometric", {"plan_source": "column", "plan_temperature": 0.5}, "plan_temperature has no effect"),
        ("geometric", {"plan_source": "none", "max_plan_tokens": 9}, "max_plan_tokens has no effect"),
        ("geometric", {"plan_source": ["policy"]}, "must be one of"),
        ("nll", {"max_plan_tokens": 9}, "reads no plan, so max_plan_tokens has no effect"),
    ],
)
def test_refused(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        build_repair(name, settings)


def test_the_loss_is_the_weighted_sum_over_the_given_divisor():
    # w = sqrt(p·q) = 0.16, 0.9, 0.5 and 0.5, 0.5; the masked token adds nothing
    weighted = [(0.16, 0.04), (0.9, 0.9), (0.5, 0.5), (0.5, 0.25), (0.5, 0.5)]
    expected = -sum(w * math.log(p) for w, p in weighted) / 10.0
    done = repair(GeometricRepair(), BASE, PLAN, BOTH, MASK, 10.0)
    assert float(done.loss) == pytest.approx(expected, rel=1e-6)
    assert done.weight_BR.tolist()[0] == pytest.approx([0.16, 0.9, 0.5])


def test_a_row_without_plan_gets_the_weight_of_dft():
    done = repair(GeometricRepair(), BASE, PLAN, FIRST, MASK, 5.0)
    dft = repair(DftRepair(), BASE, None, BOTH, MASK, 5.0)
    assert torch.equal(done.weight_BR[1], dft.weight_BR[1])
    assert not torch.equal(done.weight_BR[0], dft.weight_BR[0])
    assert torch.equal(done.logp_plan_BR[1], BASE[1])


def test_no_gradient_flows_through_the_weight():
    base = BASE.clone().requires_grad_()
    done = repair(GeometricRepair(), base, PLAN, BOTH, MASK, 1.0)
    done.loss.backward()
    assert torch.equal(base.grad, torch.where(MASK, -done.weight_BR, 0.0).to(base.grad))
    assert not done.weight_BR.requires_grad


def test_rows_that_do_not_count_give_a_zero_with_a_gradient():
    base = BASE.clone().requires_grad_()
    done = repair(GeometricRepair(), base, PLAN, BOTH, torch.zeros_like(MASK), 7.0)
    done.loss.backward()
    assert done.loss.item() == 0.0
    assert torch.equal(base.grad, torch.zeros_like(BASE))


@pytest.mark.parametrize("weight", [torch.full((2, 3), -1.0), torch.full((2, 3), math.nan), torch.ones(2)])
def test_a_rule_that_breaks_its_protocol_is_named(weight):
    class Broken:
        needs_plan = False

        def __call__(self, *_):
            return weight

    with pytest.raises(ContractError, match=r"Broken must return weights >= 0 of shape \(2, 3\)"):
        repair(Broken(), BASE, None, BOTH, MASK, 1.0)


@pytest.mark.parametrize("side", ["without", "with"])
def test_a_policy_that_gives_nan_is_named_and_not_the_rule(side):
    bad = BASE.clone()
    bad[MASK.nonzero()[0].tolist()[0], MASK.nonzero()[0].tolist()[1]] = math.nan
    base, plan = (bad, PLAN) if side == "without" else (BASE, bad)
    with pytest.raises(ContractError, match=f"of 1 of 5 reference tokens, {side} a plan .* the policy itself"):
        repair(GeometricRepair(), base, plan, BOTH, MASK, 5.0)
    padded = torch.where(MASK, BASE, math.nan)
    assert repair(GeometricRepair(), padded, PLAN, BOTH, MASK, 5.0).loss.isfinite()


def test_metrics_are_means_over_the_tokens_that_count():
    done = repair(GeometricRepair(), BASE, PLAN, BOTH, MASK, 5.0)
    numbers = {name: float(stat.result()) for name, stat in repair_metrics(done, MASK).items()}
    saliences = [math.log(16), 0.0, 0.0, math.log(4), 0.0]
    assert numbers["sort/weight_mean"] == pytest.approx((0.16 + 0.9 + 0.5 + 0.5 + 0.5) / 5)
    assert numbers["sort/salience_mean"] == pytest.approx(sum(saliences) / 5)
    assert numbers["sort/lift_mean"] == pytest.approx((4 + 1 + 1 + 2 + 1) / 5)
    assert numbers["sort/loss"] == pytest.approx(float(done.loss))
    assert numbers["sort/nll_mean"] == pytest.approx(-math.log(0.04 * 0.9 * 0.5 * 0.25 * 0.5) / 5)
