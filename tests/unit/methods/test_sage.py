import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from killick.errors import ConfigError, ContractError
from killick.methods.guides.branch import BranchGuide
from killick.methods.guides.constant import ConstantGuide
from killick.methods.guides.surprisal import SurprisalGuide
from killick.methods.sage import KL_FORMS, AnchorShaper, check_combination
from killick.methods.slots import RolloutView

NAN, INF = float("nan"), float("inf")
MASK = torch.tensor([[True, True, False], [True, True, True]])


def view(**changes):
    fields = {
        "logp": torch.tensor([[-1.0, -2.0, NAN], [-0.5, -1.5, -3.0]]),
        "logp_ref": torch.tensor([[-1.5, -1.0, -INF], [-0.5, -2.0, -2.0]]),
        "entropy": torch.tensor([[2.2, 0.4, INF], [1.0, 3.0, 1.7]]),
        "mask": MASK,
        "step": 0,
        "num_steps": 8,
    }
    return RolloutView(**(fields | changes))


@dataclass(frozen=True)
class Given:
    """A guide that returns what it was given; says nothing about whether it reads the token."""

    q: tuple[tuple[float, ...], ...]
    needs_noise: ClassVar[frozenset[str]] = frozenset()
    reads_later: ClassVar[bool] = False
    q_min: float = 0.5
    q_max: float = 2.0

    def __call__(self, view):
        return torch.tensor(self.q, requires_grad=True) * 1.0


Q = ((1.0, 1.2, NAN), (9.0, 0.1, 0.8))


# check_combination -------------------------------------------------------------------------------------------------


def test_the_table_states_the_hosts_switch():
    assert {name: form.bias_correction for name, form in KL_FORMS.items()} == {
        "k3_loss": False,
        "k3_ratio": True,
        "k2_loss": None,
        "k1_reward_to_go": None,
        "forward_exact": None,
        "none": None,
    }
    assert {name for name, form in KL_FORMS.items() if form.host_kl} == {"k3_loss", "k3_ratio"}
    assert {name for name, form in KL_FORMS.items() if not form.takes_guide} == {"forward_exact", "none"}


@pytest.mark.parametrize(
    ("kl_form", "guide", "beta", "message"),
    [
        ("k3_loss", "branch", 0.0, "SAGE needs a reference policy, but beta = 0"),
        ("k2_loss", None, 0.0, "'k2_loss' needs a reference policy, but beta = 0"),
        ("forward_exact", None, 0.0, "needs a reference"),
        ("forward_exact", "branch", 0.1, "nothing to guide"),
        ("none", "branch", 0.0, "nothing to guide"),
        ("none", "branch", 0.1, "nothing to guide"),
        ("none", None, 0.1, "has no anchor"),
        ("k3_los", None, 0.1, "Did you mean 'k3_loss'"),
        ("k3_loss", "brunch", 0.1, "Did you mean 'branch'"),
        ("k3_loss", None, -0.1, "finite number >= 0"),
        ("k3_loss", None, NAN, "finite number >= 0"),
        ("k3_loss", None, INF, "finite number >= 0"),
    ],
)
def test_combinations_refused(kl_form, guide, beta, message):
    with pytest.raises(ConfigError, match=message):
        check_combination(kl_form, guide, beta)


@pytest.mark.parametrize("kl_form", sorted(KL_FORMS))
def test_combinations_accepted(kl_form):
    form = KL_FORMS[kl_form]
    beta = 0.05 if form.needs_reference else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_combination(kl_form, None, beta) is form
        if form.takes_guide:
            check_combination(kl_form, "token", beta)
            check_combination(kl_form, SurprisalGuide(), beta)
            check_combination(kl_form, Given(Q), beta)
            if not form.state_wise_reverse:
                check_combination(kl_form, BranchGuide(), beta)


@pytest.mark.parametrize("kl_form", ["k2_loss", "k3_ratio"])
@pytest.mark.parametrize("guide", ["branch", BranchGuide(), "random", ConstantGuide(c=1.2)])
def test_a_guide_that_cancels_is_warned_about(kl_form, guide):
    with pytest.warns(UserWarning, match="no effect in expectation"):
        check_combination(kl_form, guide, 0.05)


def test_the_warning_is_shown_once_by_pythons_own_filter():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            AnchorShaper(BranchGuide(), "k2_loss", 0.05)
    assert len(caught) == 1


def test_a_shaper_cannot_be_built_from_a_refused_combination():
    with pytest.raises(ConfigError):
        AnchorShaper(BranchGuide(), "none", 0.0)


# log q -------------------------------------------------------------------------------------------------------------


def test_log_q_is_clamped_detached_and_zero_where_masked():
    log_q = AnchorShaper(Given(Q), "k3_loss", 0.1).log_q(view())
    expected = [[0.0, math.log(1.2), 0.0], [math.log(2.0), math.log(0.5), math.log(0.8)]]
    torch.testing.assert_close(log_q, torch.tensor(expected))
    assert log_q.dtype == torch.float32
    assert not log_q.requires_grad


class Echo(Given):
    """Hands a tensor of the view back, gradient and all: computed by nobody, so `no_grad` alone does not cut it."""

    def __call__(self, view):
        return view.logp_ref


def test_a_guide_cannot_leak_a_gradient_it_did_not_compute():
    carrying = torch.full((2, 3), 1.2, requires_grad=True)
    log_q = AnchorShaper(Echo(Q), "k3_loss", 0.1).log_q(view(logp_ref=carrying))
    assert not log_q.requires_grad
    assert log_q[0, 0].item() == pytest.approx(math.log(1.2))


@pytest.mark.parametrize("hole", [NAN, INF, -INF])
def test_what_a_guide_returns_under_the_mask_does_not_matter(hole):
    log_q = AnchorShaper(Given(((1.0, 1.2, hole), (1.0, 1.0, 1.0))), "k3_loss", 0.1).log_q(view())
    assert log_q[0, 2].item() == 0.0
    assert log_q.isfinite().all()


def test_nan_for_a_token_that_counts_is_an_error():
    with pytest.raises(ContractError, match="NaN"):
        AnchorShaper(Given(((NAN, 1.0, 1.0), (1.0, 1.0, 1.0))), "k3_loss", 0.1).log_q(view())
    with pytest.raises(ContractError, match="NaN"):
        AnchorShaper(BranchGuide(), "k3_loss", 0.1).log_q(view(entropy=torch.full((2, 3), NAN)))


def test_another_shape_is_an_error():
    with pytest.raises(ContractError, match=r"shape \(1, 2\)"):
        AnchorShaper(Given(((1.0, 1.0),)), "k3_loss", 0.1).log_q(view())


# shape -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kl_form", ["k3_loss", "k3_ratio", "k2_loss"])
def test_forms_in_the_loss_shape_the_reference(kl_form):
    original = view()
    shaped = AnchorShaper(Given(Q), kl_form, 0.1).shape(original)
    expected = torch.where(MASK, original.logp_ref + shaped.log_q, original.logp_ref)
    torch.testing.assert_close(shaped.logp_ref, expected)
    assert shaped.penalty_to_go is None
    assert original.logp_ref[0].tolist() == [-1.5, -1.0, -INF]  # the engine's own tensor is left alone


@pytest.mark.filterwarnings("ignore:The guide")
@pytest.mark.parametrize("guide", [None, ConstantGuide()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_silent_guide_returns_the_reference_itself(guide, dtype):
    logp_ref = view().logp_ref.to(dtype)
    for kl_form in ("k3_loss", "k3_ratio", "k2_loss", "k1_reward_to_go"):
        shaped = AnchorShaper(guide, kl_form, 0.1).shape(view(logp_ref=logp_ref))
        assert shaped.logp_ref.dtype == dtype
        assert torch.equal(shaped.logp_ref, logp_ref)
        assert shaped.log_q.eq(0).all()


def test_return_to_go_by_hand():
    shaped = AnchorShaper(Given(Q), "k1_reward_to_go", 0.1).shape(view())
    # Row 0: k1 = 0.5, −1 − ln 1.2; the masked token adds nothing. Row 1: k1 = −ln 2, 0.5 − ln ½, −1 − ln 0.8.
    a, b = 0.5, -1.0 - math.log(1.2)
    c, d, e = -math.log(2), 0.5 + math.log(2), -1.0 - math.log(0.8)
    expected = 0.1 * torch.tensor([[a + b, b, 0.0], [c + d + e, d + e, e]])
    torch.testing.assert_close(shaped.penalty_to_go, expected)
    assert shaped.penalty_to_go.dtype == torch.float32


@dataclass(frozen=True)
class GivenByTheRow(Given):
    reads_later: ClassVar[bool] = True


@dataclass(frozen=True)
class GivenWithoutAWord:
    """The same, with nothing said about later tokens: taken to read them."""

    q: tuple[tuple[float, ...], ...]
    needs_noise: ClassVar[frozenset[str]] = frozenset()
    q_min: float = 0.5
    q_max: float = 2.0

    def __call__(self, view):
        return torch.tensor(self.q)


@pytest.mark.parametrize("kind", [GivenByTheRow, GivenWithoutAWord])
def test_a_guide_that_reads_later_tokens_credits_earlier_positions(kind):
    """Row 0 is masked inside: what lies there is no part of the row."""
    q, mask = ((1.2, NAN, 0.8), (1.5, 0.9, 1.1)), torch.tensor([[True, False, True], [True, True, True]])
    logp = torch.tensor([[-1.0, NAN, -2.0], [-0.5, -1.5, -3.0]])
    given = view(logp=logp, logp_ref=torch.zeros(2, 3), mask=mask)
    shaped = AnchorShaper(kind(q), "k1_reward_to_go", 0.1).shape(given)
    # Σ_{t'≥t} (logp − log q) − Σ_{t'<t} log q: the log-ratios to go, less log q of the whole row.
    first, second = math.log(1.2 * 0.8), math.log(1.5 * 0.9 * 1.1)
    expected = 0.1 * torch.tensor([[-3.0 - first, 0.0, -2.0 - first], [-5.0 - second, -4.5 - second, -3.0 - second]])
    torch.testing.assert_close(shaped.penalty_to_go, expected)
    assert shaped.penalty_to_go.dtype == torch.float32


def test_the_penalty_is_a_number_not_a_path_for_gradients():
    logp = view().logp.requires_grad_()
    shaped = AnchorShaper(None, "k1_reward_to_go", 0.1).shape(view(logp=logp))
    assert not shaped.penalty_to_go.requires_grad


def test_the_penalty_is_not_rounded_to_the_references_precision():
    # At −8 nats bfloat16 steps by 1/16: log 1.01 would vanish from the shaped log-probability.
    half = torch.full((2, 3), -8.0, dtype=torch.bfloat16)
    guide = Given(((1.01,) * 3,) * 2)
    shaped = AnchorShaper(guide, "k1_reward_to_go", 1.0).shape(view(logp=half, logp_ref=half))
    assert shaped.penalty_to_go[1, 2].item() == pytest.approx(-math.log(1.01), rel=1e-5)


def test_a_missing_reference_is_an_error_only_where_it_is_read():
    for kl_form in ("k3_loss", "k3_ratio", "k2_loss", "k1_reward_to_go"):
        with pytest.raises(ContractError, match="logp_ref"):
            AnchorShaper(None, kl_form, 0.1).shape(view(logp_ref=None))
    assert AnchorShaper(None, "none", 0.0).shape(view(logp_ref=None)).logp_ref is None
    assert AnchorShaper(None, "forward_exact", 0.1).shape(view(logp_ref=None)).penalty_to_go is None


# extra term --------------------------------------------------------------------------------------------------------


def test_the_extra_term_of_k2_loss():
    shaper = AnchorShaper(Given(Q), "k2_loss", 0.1)
    shaped = shaper.shape(view())
    logp = view().logp.requires_grad_()
    term = shaper.extra_per_token(logp, shaped, MASK)
    term.sum().backward()
    # ½d² and gradient d, with d = log π − log(q·π_ref); not weighted by β.
    d = torch.tensor([[0.5, -1.0 - math.log(1.2), 0.0], [-math.log(2), 0.5 + math.log(2), -1.0 - math.log(0.8)]])
    torch.testing.assert_close(term.detach(), 0.5 * d.square())
    torch.testing.assert_close(logp.grad, d)


@pytest.mark.parametrize("kl_form", sorted(set(KL_FORMS) - {"k2_loss"}))
def test_other_forms_add_nothing_here(kl_form):
    shaper = AnchorShaper(None, kl_form, 0.1 if KL_FORMS[kl_form].needs_reference else 0.0)
    assert shaper.extra_per_token(view().logp, shaper.shape(view()), MASK) is None


# metrics -----------------------------------------------------------------------------------------------------------


def metrics(shaper, of):
    return {key: stat.result().item() for key, stat in shaper.metrics(of, shaper.shape(of)).items()}


def test_metrics_by_hand():
    found = metrics(AnchorShaper(Given(Q), "k3_loss", 0.1), view())
    # Five unmasked tokens with q = 1, 1.2, 2 (clamped), 0.5 (clamped), 0.8.
    kl = 0.5 + (-1.0 - math.log(1.2)) - math.log(2) + (0.5 + math.log(2)) + (-1.0 - math.log(0.8))
    assert found == pytest.approx(
        {
            "sage/kl": kl / 5,
            "sage/q_mean": 5.5 / 5,
            "sage/q_min": 0.5,
            "sage/q_max": 2.0,
            "sage/q_active_frac": 0.8,
            "sage/entropy_active": (0.4 + 1.0 + 3.0 + 1.7) / 4,
            "sage/entropy_inactive": 2.2,
        }
    )


def test_metrics_without_a_guide_or_a_reference():
    assert metrics(AnchorShaper(None, "k3_loss", 0.1), view()) == pytest.approx({"sage/kl": -0.2})
    assert metrics(AnchorShaper(None, "none", 0.0), view(logp_ref=None)) == {}


def test_metrics_of_an_empty_slice_are_nan_with_count_zero():
    shaper, empty = AnchorShaper(BranchGuide(), "k3_loss", 0.1), view(mask=torch.zeros_like(MASK))
    stats = shaper.metrics(empty, shaper.shape(empty))
    assert all(stat.num.item() == 0 and stat.result().isnan() for stat in stats.values())
