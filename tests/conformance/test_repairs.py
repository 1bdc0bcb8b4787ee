"""Every registered repair rule keeps its protocol, and so does the one shown in the documentation.

Nothing below knows a rule by name. Values under the mask are poisoned throughout.
"""

import dataclasses
import importlib.util
import math
import re
from pathlib import Path

import pytest
import torch

from killick.maths import weighted_nll
from killick.methods.repairs import REPAIRS
from killick.methods.slots import RepairRule

B, R = 6, 9
SHOWN = "the one in docs/extending.md"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


@pytest.fixture(params=[*REPAIRS.names(), SHOWN])
def rule(request, tmp_path):
    if request.param != SHOWN:
        return REPAIRS.build(request.param)
    (code,) = re.findall(
        r'title="src/killick/methods/repairs/[a-z]+\.py"\n(.*?)^```$', PAGE.read_text("utf-8"), re.M | re.S
    )
    (tmp_path / "shown.py").write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("shown", tmp_path / "shown.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (component,) = [value for value in vars(module).values() if getattr(value, "__module__", None) == "shown"]
    return component()


def scores(dtype=torch.float32):
    """(logp_base, logp_plan, mask): rows of length 9, 5, 1 and 0, a masked token inside, impossible and sure tokens."""
    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(R) < torch.tensor([9, 5, 1, 0, 9, 9]).unsqueeze(1)
    mask[4, 3] = False
    holes = torch.tensor([math.nan, math.inf, -math.inf])[torch.arange(B * R).view(B, R) % 3]
    base, plan = (torch.rand(B, R, generator=generator).log() for _ in range(2))
    base[5, :4], plan[5, :4] = (
        torch.tensor([-math.inf, -1.0, -math.inf, 0.0]),
        torch.tensor([-1.0, -math.inf, -math.inf, 0]),
    )
    return *(torch.where(mask, values, holes).to(dtype) for values in (base, plan)), mask


def test_it_is_a_frozen_dataclass_that_fits_the_protocol(rule):
    assert isinstance(rule, RepairRule)
    assert dataclasses.is_dataclass(rule)
    assert isinstance(rule.needs_plan, bool)
    assert type(rule).needs_plan is rule.needs_plan, "needs_plan is known before the rule is built"
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.needs_plan = not rule.needs_plan
    assert rule == dataclasses.replace(rule)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_finite_non_negative_wide_and_0_where_masked(rule, dtype):
    base, plan, mask = scores(dtype)
    weight = rule(base, plan, mask)
    assert weight.shape == (B, R)
    assert weight.dtype in (torch.float32, torch.float64)
    assert weight.isfinite().all()
    assert (weight >= 0).all()
    assert weight[~mask].eq(0).all()
    assert weight[mask].gt(0).any()


def test_half_precision_is_computed_in_float32(rule):
    base, plan, mask = scores(torch.bfloat16)
    torch.testing.assert_close(rule(base, plan, mask), rule(base.float(), plan.float(), mask), rtol=1e-6, atol=0)


def test_detached(rule):
    base, plan, mask = scores()
    assert not rule(base.requires_grad_(), plan.requires_grad_(), mask).requires_grad


def test_the_loss_it_makes_has_a_finite_gradient(rule):
    base, plan, mask = scores()
    base.requires_grad_()
    weighted_nll(base, rule(base, plan, mask), mask, 7.0).backward()
    assert base.grad.isfinite().all()
    assert base.grad[~mask].eq(0).all()


def test_deterministic_and_without_side_effects(rule):
    (base, plan, mask), copies = scores(), scores()
    state = torch.random.get_rng_state()
    assert torch.equal(rule(base, plan, mask), rule(base, plan, mask))
    assert torch.equal(torch.random.get_rng_state(), state)
    for now, before in zip((base, plan, mask), copies, strict=True):
        torch.testing.assert_close(now, before, rtol=0, atol=0, equal_nan=True)


def test_a_row_takes_its_weights_along(rule):
    order = torch.tensor([3, 5, 0, 4, 1, 2])
    assert torch.equal(rule(*(values[order] for values in scores())), rule(*scores())[order])


def test_padding_changes_nothing(rule):
    base, plan, mask = scores()
    longer = rule(*(torch.cat([values, torch.zeros(B, 4, dtype=values.dtype)], dim=1) for values in (base, plan, mask)))
    torch.testing.assert_close(longer[:, :R], rule(base, plan, mask))
    assert longer[:, R:].eq(0).all()


def test_what_is_under_the_mask_changes_nothing(rule):
    base, plan, mask = scores()
    clean = [torch.where(mask, values, -1.0) for values in (base, plan)]
    assert torch.equal(rule(*clean, mask), rule(base, plan, mask))


def test_nothing_unmasked_and_no_rows(rule):
    base, plan, mask = scores()
    assert rule(base, plan, torch.zeros_like(mask)).eq(0).all()
    assert rule(base[:0], plan[:0], mask[:0]).shape == (0, R)


def test_needs_plan_tells_the_truth(rule):
    """A plan costs a generation and a forward pass: it is asked for if and only if it is read."""
    base, plan, mask = scores()
    assert torch.equal(rule(base, plan, mask), rule(base, base, mask)) is not rule.needs_plan
