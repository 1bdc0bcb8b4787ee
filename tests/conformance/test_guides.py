"""Every registered guide keeps its protocol; a new one is tested here before its author writes a test.

Nothing below knows a guide by name. Values under the mask are poisoned throughout.
"""

import dataclasses

import pytest
import torch

from killick.errors import ConfigError, ContractError
from killick.methods.guides import GUIDES
from killick.methods.sage import AnchorShaper
from killick.methods.slots import Guide, RolloutView

NAMES = GUIDES.names()
NOISES = ("normal", "uniform")
B, T = 6, 9


def make_view(dtype=torch.float32, step=3, seed=0):
    """Rows of length 9, 5, 1 and 0, one with a masked token inside, one with equal values throughout."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(T) < torch.tensor([9, 5, 1, 0, 9, 9]).unsqueeze(1)
    mask[4, 3] = False

    def poisoned(values, constant=None):
        if constant is not None:
            values[5] = constant
        holes = torch.tensor([float("nan"), float("inf"), float("-inf")])[torch.arange(B * T).view(B, T) % 3]
        return torch.where(mask, values, holes).to(dtype)

    def rand():
        return torch.rand(B, T, generator=generator)

    return RolloutView(
        logp=poisoned(rand().log(), -0.7),
        entropy=poisoned(4 * rand(), 1.9),
        mask=mask,
        logp_ref=poisoned(rand().log(), -1.1),
        step=step,
        num_steps=100,
        noise={"normal": torch.randn(B, T, generator=generator), "uniform": rand()},
    )


def on_rows(view, change):
    """The view with `change` applied to every tensor."""
    tensors = {name: change(getattr(view, name)) for name in ("logp", "entropy", "mask", "logp_ref")}
    return dataclasses.replace(view, **tensors, noise={name: change(noise) for name, noise in view.noise.items()})


def log_q(name, view):
    return AnchorShaper(GUIDES.build(name), "k3_loss", 0.05).log_q(view)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_it_is_a_frozen_dataclass_that_fits_the_protocol(name):
    guide = GUIDES.build(name)
    assert isinstance(guide, Guide)
    assert guide.needs_noise <= set(NOISES)
    assert 0 < guide.q_min <= guide.q_max
    with pytest.raises(dataclasses.FrozenInstanceError):
        guide.q_min = 0.9
    assert guide == dataclasses.replace(guide)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_finite_bounded_float32_and_silent_where_masked(name, dtype):
    guide, view = GUIDES.build(name), make_view(dtype)
    result = log_q(name, view)
    assert result.dtype == torch.float32
    assert result.isfinite().all()
    assert result[~view.mask].eq(0).all()
    q = result.exp()[view.mask]
    assert q.min() >= guide.q_min - 1e-6
    assert q.max() <= guide.q_max + 1e-6


def test_detached(name):
    view = make_view()
    result = log_q(name, on_rows(view, lambda x: x.clone().requires_grad_() if x.is_floating_point() else x))
    assert not result.requires_grad


def test_deterministic_and_without_side_effects(name):
    view, copy = make_view(), make_view()
    state = torch.random.get_rng_state()
    first, second = log_q(name, view), log_q(name, view)
    assert torch.equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), state), "draws noise of its own"
    for field in ("logp", "entropy", "logp_ref"):
        torch.testing.assert_close(getattr(view, field), getattr(copy, field), rtol=0, atol=0, equal_nan=True)


def test_a_row_takes_its_q_along(name):
    view, order = make_view(), torch.tensor([3, 5, 0, 4, 1, 2])
    assert torch.equal(log_q(name, on_rows(view, lambda x: x[order])), log_q(name, view)[order])


def test_padding_changes_nothing(name):
    view = make_view()

    def pad(x):
        return torch.cat([x, torch.zeros(B, 4, dtype=x.dtype)], dim=1)

    padded = log_q(name, on_rows(view, pad))
    torch.testing.assert_close(padded[:, :T], log_q(name, view))
    assert padded[:, T:].eq(0).all()


def test_what_is_under_the_mask_changes_nothing(name):
    view = make_view()
    clean = on_rows(view, lambda x: torch.where(view.mask, x, 0.0) if x.is_floating_point() else x)
    assert torch.equal(log_q(name, clean), log_q(name, view))


def test_it_says_whether_q_reads_later_tokens(name):
    """`k1_reward_to_go` is the gradient of its objective only if it does: cut the rows, and look at what is left."""
    view, kept = make_view(), torch.arange(T) < 5
    cut = on_rows(view, lambda x: x & kept if x.dtype == torch.bool else x.flip(0).where(~kept, x))
    unmoved = torch.equal(log_q(name, cut)[:, :5], log_q(name, view)[:, :5])
    assert unmoved != getattr(GUIDES.build(name), "reads_later", True)


def test_nothing_unmasked(name):
    view = make_view()
    empty = dataclasses.replace(view, mask=torch.zeros_like(view.mask))
    assert log_q(name, empty).eq(0).all()


@pytest.mark.parametrize("step", [0, 50, 99, 100, 10_000])
def test_every_step_of_a_run_and_beyond(name, step):
    assert log_q(name, make_view(step=step)).isfinite().all()


def test_noise_it_declares_is_noise_it_demands(name):
    guide, view = GUIDES.build(name), make_view()
    without = dataclasses.replace(view, noise={})
    if guide.needs_noise:
        with pytest.raises(ContractError, match="noise"):
            guide(without)
    else:
        assert torch.equal(log_q(name, without), log_q(name, view))


def numbers_of(name):
    guide = GUIDES.build(name)
    values = {field.name: getattr(guide, field.name) for field in dataclasses.fields(guide)}
    return [key for key, value in values.items() if isinstance(value, float)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), "much"])
def test_settings_that_are_no_numbers_are_refused(name, bad):
    for key in numbers_of(name):
        with pytest.raises(ConfigError):
            GUIDES.build(name, **{key: bad})


@pytest.mark.parametrize("bounds", [{"q_min": 0.0}, {"q_min": -1.0}, {"q_min": 2.0, "q_max": 1.5}, {"q_max": 0.1}])
def test_bounds_that_cannot_work_are_refused(name, bounds):
    with pytest.raises(ConfigError):
        GUIDES.build(name, **bounds)


def test_unknown_settings_are_refused(name):
    with pytest.raises(ConfigError, match="no setting"):
        GUIDES.build(name, no_such_setting=1.0)
