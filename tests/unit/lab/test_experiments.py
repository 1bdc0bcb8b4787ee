"""The experiments on small settings: what they must show, that they repeat, and what they refuse."""

import math

import pytest
import torch

from killick.errors import ConfigError
from killick.lab import anchors, repair, shrinkage, support
from killick.lab.objective import shaper
from killick.lab.theory import log_q_of

SMALL = {
    "anchors": anchors.AnchorsSettings(branching=2, correct=2, seeds=1, tau=0.3),
    "support": support.SupportSettings(depth=1, correct=1, points=3),
    "repair": repair.RepairSettings(texts=8, length=12, plans=20),
    "shrinkage": shrinkage.ShrinkageSettings(depth=2, correct=2, groups=(4,), steps=5, trees=2, seeds=3),
}
MODULES = {"anchors": anchors, "support": support, "repair": repair, "shrinkage": shrinkage}


@pytest.mark.parametrize("name", SMALL)
def test_same_seed_same_numbers(name, monkeypatch):
    monkeypatch.setattr(anchors, "arms", lambda: [("k3_loss", "none"), ("k1_reward_to_go", "token")])
    monkeypatch.setattr(shrinkage, "ARMS", [("k3_loss", "branch"), ("forward_exact", "none")])
    first, second = (MODULES[name].run(SMALL[name]) for _ in range(2))
    assert first == second


def test_measures_by_hand():
    problems = SMALL["anchors"].problems()
    right_Y = problems.reward_SY[0]
    p_Y = torch.where(right_Y > 0, torch.tensor(0.5, dtype=torch.float64), 0.0)  # both right answers, half each
    found = anchors.measures(problems, problems.tree.policy_of(p_Y.log()[None]), k=3)
    assert found["success"] == pytest.approx([1.0])
    assert found["entropy"] == pytest.approx([math.log(2)])
    assert found["coverage"] == pytest.approx([1 - 0.5**3])


def test_the_oracle_turns_the_reference_into_the_even_policy():
    problems = SMALL["anchors"].problems()
    q_SNV = anchors.equalising_q(problems)
    even = problems.tree.answer_logp((problems.reference_SNV.softmax(-1) * q_SNV).log()).exp()
    torch.testing.assert_close(even, problems.reward_SY / problems.reward_SY.sum(-1, keepdim=True))


def test_branch_is_silent_above_the_largest_entropy():
    settings = anchors.AnchorsSettings(correct=2, seeds=1, tau=1.2)  # log 3 = 1.0986
    problems = settings.problems()
    anchor = shaper("k3_loss", anchors.make_guide("branch", problems, settings), 0.3)
    for policy in (problems.reference_SNV, torch.zeros_like(problems.reference_SNV)):  # uniform: the largest there is
        assert not log_q_of(problems, policy, anchor).any()


def test_trained_threshold_is_the_theorem():
    data = support.run(SMALL["support"])
    for row in data["thresholds"]:
        if row["mass"] > 0:
            assert row["trained"] == pytest.approx(row["theorem"], rel=1e-5)
        else:
            assert [row[key] for key in ("theorem", "trained", "k3_loss", "k3_ratio")] == [math.inf] * 4
    assert data["sweep"]["mass"]["k1_reward_to_go"] == pytest.approx(data["sweep"]["mass"]["closed_form"], abs=1e-5)
    # The middle of the sweep is the threshold itself: there y* holds exactly δ.
    assert data["sweep"]["mass"]["closed_form"][1] == pytest.approx(0.05)
    for series in data["sweep"]["zero"].values():
        assert series == [0.0, 0.0, 0.0]


def test_rare_problem_has_the_mass_asked_for():
    problems, answer = support.rare_problem(SMALL["support"], [0.01, 0.0])
    p_SY = problems.tree.answer_logp(problems.reference_SNV).exp()
    assert p_SY[:, answer].tolist() == pytest.approx([0.01, 0.0])
    assert p_SY.sum(-1).tolist() == pytest.approx([1.0, 1.0])
    assert problems.reward_SY[:, answer].tolist() == [1.0, 1.0]


def texts_of(b, decision):
    """One text given by hand, with c = 0.95."""
    p, at = torch.tensor([b], dtype=torch.float64), torch.tensor([decision])
    true = torch.where(at, 0.95 + 0.05 * p, p)
    corrupt = {"missing": p, "wrong": torch.where(at, 0.05 * p, p)}
    return repair.Texts(p, true, corrupt, at, torch.ones_like(at))


def test_weights_by_hand():
    texts = texts_of([0.04, 0.9], [True, False])
    # sqrt(0.04 · 0.952) and sqrt(0.9 · 0.9)
    assert repair.weights(texts, texts.p_true_BR)[0].tolist() == pytest.approx([math.sqrt(0.04 * 0.952), 0.9])
    found = repair.compare(texts, "wrong", 0.5, 4000, torch.Generator().manual_seed(0))
    # Reader who averages: p = ½·0.952 + ½·0.002 = 0.477; only the decision errs, over two tokens.
    error = math.sqrt(0.04) * (math.sqrt(0.952) - math.sqrt(0.477))
    assert found["error_mean"] == pytest.approx(error / 2)
    assert found["error_max"] == pytest.approx(error)
    assert found["regret"] == pytest.approx(error * -math.log(0.04) / 2)
    assert found["regret_bound"] == pytest.approx(
        (math.sqrt(0.02) * -math.log(0.04) + math.sqrt(0.45) * -math.log(0.9)) / 2
    )
    # One plan: wrong half of the time, then off by sqrt(0.04)·(√0.952 − √0.002) = 0.186, more than sqrt(0.02) = 0.141.
    drawn = math.sqrt(0.04) * (math.sqrt(0.952) - math.sqrt(0.002))
    assert found["drawn_error_mean"] == pytest.approx(0.5 * drawn / 2, rel=0.05)
    assert found["drawn_broken_frac"] == pytest.approx(0.25, abs=0.02)


def test_repair_keeps_its_bounds_and_its_limits():
    data = repair.run(repair.RepairSettings(texts=16, length=24, plans=50))
    for row in data["rows"]:
        assert row["within_bound"]
        assert row["regret"] <= row["regret_bound"] + 1e-12
        assert row["drawn_error_mean"] <= row["bound_mean"] + 1e-12
        assert row["equals_dft"] == (row["corruption"] == "missing" and row["gamma"] == 1.0)
        if row["gamma"] == 0.0:
            assert row["error_max"] == 0.0
    for corruption in repair.CORRUPTIONS:
        errors = [row["error_mean"] for row in data["rows"] if row["corruption"] == corruption]
        assert errors == sorted(errors)


def test_the_bound_can_fail():
    """`within_bound` is false when the premise |p_plan − p*| ≤ γ is: a corruption that changes more than it says."""
    texts = texts_of([0.5], [True])
    texts.p_corrupt_BR["wrong"][:] = -1.0  # p_plan = ½·0.975 − ½ < 0: no probability, NaN
    assert not repair.compare(texts, "wrong", 0.5, 1, torch.Generator().manual_seed(0))["within_bound"]


def test_small_groups_lose_answers_that_the_objective_keeps(monkeypatch):
    """Uniform reference, no anchor: by symmetry the expected run favours no branch of equal worth; sampled runs do."""
    settings = shrinkage.ShrinkageSettings(branching=3, depth=1, correct=2, groups=(2,), steps=150, trees=1, seeds=24)
    monkeypatch.setattr(shrinkage, "ARMS", [("none", "none"), ("k3_loss", "none")])
    rows = {(row["kl_form"], row["guide"]): row for row in shrinkage.run(settings)["rows"]}
    free = rows["none", "none"]
    # Both right answers have probability ½ in the expected run: coverage@8 = 1 − 2⁻⁸.
    assert free["expected_coverage"] == pytest.approx([1 - 0.5**8], abs=2e-3)
    assert free["noise_effect"] < -0.1
    assert rows["k3_loss", "none"]["noise_effect"] > free["noise_effect"] / 2


def test_on_policy_k2_and_ratio_corrected_k3_are_one_update(monkeypatch):
    # R2 and R6: both have the gradient −log u · s, sample by sample.
    monkeypatch.setattr(shrinkage, "ARMS", [("k2_loss", "none"), ("k3_ratio", "none")])
    rows = {(row["kl_form"], row["guide"]): row for row in shrinkage.run(SMALL["shrinkage"])["rows"]}
    one, other = rows["k2_loss", "none"], rows["k3_ratio", "none"]
    assert one["sampled_coverage"] == pytest.approx(other["sampled_coverage"], abs=1e-9)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: anchors.AnchorsSettings(beta=0.0), "beta = 0.0"),
        (lambda: anchors.AnchorsSettings(beta=float("nan")), "beta = nan"),
        (lambda: anchors.AnchorsSettings(k=0), "k = 0"),
        (lambda: anchors.AnchorsSettings(seed=-1), "seed = -1"),
        (lambda: anchors.make_guide("oracel", None, anchors.AnchorsSettings()), "oracel"),
        (lambda: support.SupportSettings(mass=0.1), "Choose a smaller mass"),
        (lambda: support.SupportSettings(delta=0.0), "delta = 0.0"),
        (lambda: repair.RepairSettings(decisions=0.0), "decisions = 0.0"),
        (lambda: repair.RepairSettings(texts=10_000, length=10_000), "texts × length"),
        (lambda: shrinkage.ShrinkageSettings(advantage="centered"), "Did you mean 'centred'"),
        (lambda: shrinkage.ShrinkageSettings(groups=(1,)), "group = 1"),
        (lambda: shrinkage.ShrinkageSettings(seeds=10**6), "trees × seeds"),
    ],
)
def test_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()
