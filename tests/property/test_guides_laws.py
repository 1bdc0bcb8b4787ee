"""Laws of the guides that are particular to one of them; what all share is in tests/conformance/test_guides.py."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from killick.methods.guides.branch import BranchGuide
from killick.methods.guides.noise import NoiseGuide
from killick.methods.guides.surprisal import NORMALISATIONS, SurprisalGuide
from killick.methods.slots import RolloutView


@st.composite
def views(draw):
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 30)))
    return RolloutView(
        logp=torch.rand(shape, generator=generator).log(),
        entropy=3 * torch.rand(shape, generator=generator),
        mask=torch.rand(shape, generator=generator) < draw(st.sampled_from([0.2, 0.8, 1.0])),
        logp_ref=torch.rand(shape, generator=generator).log(),
        step=draw(st.integers(0, 100)),
        num_steps=100,
        noise={
            "normal": torch.randn(shape, generator=generator),
            "uniform": torch.rand(shape, generator=generator),
        },
    )


@given(views(), st.sampled_from(sorted(NORMALISATIONS)))
def test_weights_lie_in_the_unit_interval_and_follow_surprisal(view, normalisation):
    guide = SurprisalGuide(
        alpha_upper=1.0, alpha_lower=1.0, sigma_upper=0.0, sigma_lower=0.0, normalisation=normalisation
    )
    w = guide(view) - 1.0
    assert (w[view.mask] >= 0).all()
    assert (w[view.mask] <= 1).all()
    for weight, logp, keep in zip(w, view.logp, view.mask, strict=True):
        by_surprisal = weight[keep][(-logp[keep]).argsort()]
        assert (by_surprisal.diff() >= -1e-6).all()


@given(views(), st.sampled_from(["minmax", "zscore"]), st.floats(0.1, 5.0), st.floats(-2, 2))
def test_weights_do_not_depend_on_the_unit_or_the_zero_of_surprisal(view, normalisation, scale, shift):
    guide = SurprisalGuide(sigma_upper=0.0, sigma_lower=0.0, normalisation=normalisation)
    other = RolloutView(view.logp * scale + shift, view.entropy, view.mask, None, view.step, view.num_steps)
    torch.testing.assert_close(guide(other), guide(view), rtol=0, atol=2e-3)


@given(views(), st.floats(0, 1))
def test_a_quantile_threshold_leaves_at_most_its_complement_active(view, quantile):
    q = BranchGuide(gamma=1.0, tau_quantile=quantile)(view)
    num = int(view.mask.sum())
    assert int((q[view.mask] > 1 + 1e-6).sum()) <= (1 - quantile) * num + 1


@given(views(), st.floats(0.01, 1.0), st.floats(0, 3))
def test_branch_grows_with_entropy_and_is_silent_below_the_threshold(view, gamma, tau):
    q = BranchGuide(gamma=gamma, tau=tau)(view)
    assert q[view.entropy <= tau].eq(1).all()
    ordered = q.flatten()[view.entropy.flatten().argsort()]
    assert (ordered.diff() >= 0).all()


def test_the_random_guide_perturbs_its_share_without_bias():
    generator = torch.Generator().manual_seed(0)
    shape = (100, 1000)
    blank = torch.zeros(shape)
    view = RolloutView(
        logp=blank,
        entropy=blank,
        mask=blank == 0,
        logp_ref=None,
        step=0,
        num_steps=100,
        noise={
            "normal": torch.randn(shape, generator=generator),
            "uniform": torch.rand(shape, generator=generator),
        },
    )
    q = NoiseGuide()(view)
    # 100 000 tokens at e = 0.1 and σ = 0.15: standard errors 0.00095 of the share and 0.0015 of the mean of the active.
    active = q != 1
    assert abs(active.float().mean().item() - 0.1) < 5 * 0.00095
    assert abs(q[active].mean().item() - 1.0) < 5 * 0.0015
    assert abs(q[active].std().item() - 0.15) < 0.006
