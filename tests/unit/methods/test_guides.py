"""The four guides on numbers small enough to check by hand."""

import math

import pytest
import torch

from killick.errors import ConfigError, ContractError
from killick.methods.guides import GUIDES
from killick.methods.guides.branch import BranchGuide
from killick.methods.guides.constant import ConstantGuide
from killick.methods.guides.noise import NoiseGuide
from killick.methods.guides.surprisal import SurprisalGuide
from killick.methods.sage import AnchorShaper
from killick.methods.slots import Guide, RolloutView

NAN = float("nan")


def view(rows, mask=None, *, step=0, num_steps=80, **changes):
    """A view whose surprisals and entropies are both `rows`."""
    values = torch.tensor(rows)
    mask = torch.ones_like(values, dtype=torch.bool) if mask is None else torch.tensor(mask)
    fields = {"logp": -values, "entropy": values, "mask": mask, "logp_ref": None, "step": step, "num_steps": num_steps}
    return RolloutView(**(fields | changes))


def quiet(**settings):
    """The token guide with a constant alpha of 1 and no noise, so that q − 1 is the weight."""
    return SurprisalGuide(
        **({"alpha_upper": 1.0, "alpha_lower": 1.0, "sigma_upper": 0.0, "sigma_lower": 0.0} | settings)
    )


def test_names_and_protocol():
    assert GUIDES.names() == ["branch", "constant", "random", "token"]
    for name in GUIDES.names():
        assert isinstance(GUIDES.build(name), Guide)


def test_shipped_settings():
    assert (BranchGuide().gamma, BranchGuide().tau, BranchGuide().tau_quantile) == (0.3, 1.2, None)
    token = SurprisalGuide()
    assert (token.alpha_upper, token.alpha_lower, token.sigma_upper, token.sigma_lower) == (0.3, 0.1, 0.25, 0.1)
    assert (token.normalisation, token.source, token.cycles, token.decay) == ("minmax", "current", 8, 0.9)
    noise = NoiseGuide()
    assert (noise.e_upper, noise.e_lower, noise.sigma_upper, noise.sigma_lower) == (0.1, 0.0, 0.15, 0.05)
    assert ConstantGuide().c == 1.0
    assert {(GUIDES.build(name).q_min, GUIDES.build(name).q_max) for name in GUIDES.names()} == {(0.6, 1.4)}


def test_branch_by_hand():
    # H = 2: 1 + 0.3·(2 − 1.2) = 1.24. H = 1.2 and below: 1. H = 4: 1.84 before the clamp.
    assert BranchGuide()(view([[2.0, 1.2, 0.5, 4.0]]))[0].tolist() == pytest.approx([1.24, 1.0, 1.0, 1.84])


def test_branch_quantile_counts_only_unmasked_entropies():
    # Unmasked 0, 1, 2, 3, 4: the 0.75 quantile is 3.
    rows, mask = [[0.0, 1.0, 9.0], [2.0, 3.0, 4.0]], [[True, True, False], [True, True, True]]
    q = BranchGuide(gamma=0.2, tau_quantile=0.75)(view(rows, mask))
    assert q[1].tolist() == pytest.approx([1.0, 1.0, 1.2])


@pytest.mark.parametrize("padding", [[], [NAN, NAN]])
def test_branch_quantile_is_taken_over_all_processes(padding):
    # This process holds 0 and 1, another 2, 3, 4; an engine may pad ragged slices with NaN.
    def gather(mine):
        return torch.cat([mine, torch.tensor([*padding, 2.0, 3.0, 4.0])])

    q = BranchGuide(gamma=0.2, tau_quantile=0.125)(view([[0.0, 1.0]], gather=gather))
    assert q[0].tolist() == pytest.approx([1.0, 1.1])  # threshold 0.5


# Surprisals 1, 2, 3, 4, 5 in another order. Quantiles 5% and 95% are at positions 0.2 and 3.8: 1.2 and 4.8.
ROW = [3.0, 1.0, 5.0, 2.0, 4.0]
SIGMOID = [1 / (1 + math.exp(-(x - 3) / math.sqrt(2))) for x in ROW]  # mean 3, population variance 2
WEIGHTS = {
    "minmax": [0.5, 0.0, 1.0, 0.8 / 3.6, 2.8 / 3.6],
    "rank": [0.5, 0.0, 1.0, 0.25, 0.75],
    "zscore": SIGMOID,
}


@pytest.mark.parametrize("normalisation", sorted(WEIGHTS))
def test_surprisal_weights_by_hand(normalisation):
    rows, mask = [[*ROW, 99.0], [NAN, *ROW]], [[True] * 5 + [False], [False] + [True] * 5]
    w = quiet(normalisation=normalisation)(view(rows, mask)) - 1.0
    assert w[0, :5].tolist() == pytest.approx(WEIGHTS[normalisation], abs=1e-6)
    assert w[1, 1:].tolist() == pytest.approx(WEIGHTS[normalisation], abs=1e-6)


@pytest.mark.parametrize(
    ("normalisation", "one_token", "constant"), [("minmax", 0.0, 0.0), ("rank", 0.0, 0.5), ("zscore", 0.5, 0.5)]
)
def test_rows_without_spread(normalisation, one_token, constant):
    rows, mask = [[2.0, NAN, NAN], [0.7, 0.7, 0.7]], [[True, False, False], [True, True, True]]
    w = quiet(normalisation=normalisation)(view(rows, mask)) - 1.0
    assert w[0, 0].item() == one_token
    assert w[1].tolist() == [constant] * 3


def test_equal_surprisals_share_their_rank():
    w = quiet(normalisation="rank")(view([[1.0, 2.0, 2.0, 3.0]])) - 1.0
    assert w[0].tolist() == pytest.approx([0.0, 0.5, 0.5, 1.0])


def test_surprisal_noise_and_schedule():
    noise = {"normal": torch.tensor([[0.0, 1.0, -2.0]])}
    rows = [[1.0, 2.0, 3.0]]  # ranks 0, ½, 1
    guide = SurprisalGuide(normalisation="rank")
    # Step 0: α = 0.3, σ = 0.25. At the end: α = σ = 0.1.
    assert guide(view(rows, noise=noise))[0].tolist() == pytest.approx([1.0, 1.15 + 0.125, 1.3 - 0.5])
    assert guide(view(rows, noise=noise, step=80))[0].tolist() == pytest.approx([1.0, 1.05 + 0.05, 1.1 - 0.2])
    # Start of the second of eight cycles: 0.9 times the upper values.
    assert guide(view(rows, noise=noise, step=10))[0, 1].item() == pytest.approx(1 + 0.135 + 0.1125)


def test_surprisal_source():
    rows = [[1.0, 2.0, 3.0]]
    reference = torch.tensor([[-3.0, -2.0, -1.0]])
    w = quiet(source="reference", normalisation="rank")(view(rows, logp_ref=reference)) - 1.0
    assert w[0].tolist() == pytest.approx([1.0, 0.5, 0.0])
    with pytest.raises(ContractError, match="logp_ref"):
        quiet(source="reference")(view(rows))


def test_needs_noise_follows_sigma():
    assert SurprisalGuide().needs_noise == {"normal"}
    assert quiet().needs_noise == frozenset()
    assert NoiseGuide().needs_noise == {"normal", "uniform"}
    assert BranchGuide().needs_noise == ConstantGuide().needs_noise == frozenset()


def test_random_by_hand():
    noise = {"uniform": torch.tensor([[0.05, 0.0999, 0.1001, 0.9]]), "normal": torch.tensor([[1.0, -2.0, 1.0, 1.0]])}
    rows = [[0.0] * 4]
    # Step 0: e = 0.1, σ = 0.15.
    assert NoiseGuide()(view(rows, noise=noise))[0].tolist() == pytest.approx([1.15, 0.7, 1.0, 1.0])
    # At the end e = 0: nothing is perturbed.
    assert NoiseGuide()(view(rows, noise=noise, step=80))[0].tolist() == [1.0] * 4


def test_missing_noise_is_named():
    with pytest.raises(ContractError, match="'normal'"):
        SurprisalGuide()(view([[1.0, 2.0]]))


def test_what_the_bounds_do():
    shaper = AnchorShaper(BranchGuide(), "k3_loss", 0.05)
    assert shaper.log_q(view([[2.0, 9.0]])).exp()[0].tolist() == pytest.approx([1.24, 1.4])


BAD = [
    ("branch", {"gamma": -0.1}, "gamma"),
    ("branch", {"tau": -1.0}, "tau"),
    ("branch", {"tau": 1.0, "tau_quantile": 0.8}, "one of them"),
    ("branch", {"tau_quantile": 1.5}, "tau_quantile"),
    ("branch", {"source": "reference"}, "no setting 'source'"),
    ("token", {"normalisation": "softmax"}, "minmax, rank, zscore"),
    ("token", {"source": "teacher"}, "current, reference"),
    ("token", {"alpha_upper": 0.05}, "alpha_lower"),
    ("token", {"sigma_lower": -0.1}, "sigma"),
    ("token", {"cycles": 0}, "cycles"),
    ("token", {"decay": 0.0}, "decay"),
    ("random", {"e_upper": 1.1}, "e must"),
    ("random", {"sigma_upper": 0.01}, "sigma"),
    ("constant", {"c": 1.5}, "q_min, q_max"),
    ("constant", {"c": 0.0}, "q_min, q_max"),
]


@pytest.mark.parametrize(("name", "settings", "message"), BAD)
def test_bad_settings_are_refused_with_the_rule(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        GUIDES.build(name, **settings)


def test_a_quantile_replaces_the_shipped_threshold():
    guide = BranchGuide(tau_quantile=0.8)
    assert (guide.tau, guide.tau_quantile) == (None, 0.8)
