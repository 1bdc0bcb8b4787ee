"""Every table and every statement of docs/lab.md, recomputed by the lab with the settings the page names."""

import re
from pathlib import Path

import pytest
import torch

from killick.lab import anchors, repair, shrinkage, support
from killick.lab.anchors import mean
from killick.lab.objective import shaper
from killick.lab.theory import log_q_of, stationary

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lab.md").read_text("utf-8")


def table(first, heading):
    """Rows below the heading line that starts with these two cells, as lists of texts without backticks."""
    lines = PAGE.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} | {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def number(text):
    return float(text.replace("−", "-"))


# ---- anchors --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ends():
    rows = anchors.run(anchors.AnchorsSettings())["rows"]
    return {(row["kl_form"], row["guide"]): row for row in rows}


def test_anchor_table(ends):
    rows = table("kl_form", "guide")
    assert len(rows) == 14
    for form, guide, *shown in rows:
        row = ends[form, guide]
        found = [*(mean(row[key]) for key in ("success", "entropy", "coverage")), max(row["tv_closed_form"])]
        assert [number(cell) for cell in shown] == pytest.approx(found, abs=6e-4), (form, guide)


def test_training_ends_at_the_forms_own_point(ends):
    assert all(max(row["tv_stationary"]) < 1e-5 for (form, _), row in ends.items() if form != "none")
    assert ends["none", "none"]["tv_stationary"] is None


def test_only_the_return_to_go_reaches_the_closed_form(ends):
    reaching = {key for key, row in ends.items() if row["agrees_closed_form"]}
    assert reaching == {("k1_reward_to_go", guide) for guide in ("none", "branch", "token", "oracle")}


def test_forms_that_end_at_one_point(ends):
    for guide in anchors.GUIDE_NAMES:
        for key in anchors.MEASURES:
            assert ends["k2_loss", guide][key] == pytest.approx(ends["k3_ratio", guide][key], abs=1e-5)
    for key in anchors.MEASURES:
        assert ends["k3_loss", "none"][key] == pytest.approx(ends["forward_exact", "none"][key], abs=1e-5)


def test_where_branch_acts(ends):
    for form in ("k2_loss", "k3_ratio"):
        assert max(ends[form, "branch"]["tv_unguided"]) < 1e-6
    for form in ("k3_loss", "k1_reward_to_go"):
        guided, free = ends[form, "branch"], ends[form, "none"]
        assert max(guided["tv_unguided"]) > 1e-2
        assert mean(guided["success"]) < mean(free["success"])
        assert mean(guided["entropy"]) > mean(free["entropy"])


def test_order_of_the_forms(ends):
    success = {form: mean(ends[form, "none"]["success"]) for form in ("k3_loss", "k1_reward_to_go", "k3_ratio", "none")}
    assert sorted(success, key=success.get) == ["k3_loss", "k1_reward_to_go", "k3_ratio", "none"]
    assert success["none"] > 0.9999
    assert mean(ends["k3_loss", "none"]["entropy"]) > mean(ends["k1_reward_to_go", "none"]["entropy"])
    for form in ("k3_loss", "k3_ratio", "k2_loss", "k1_reward_to_go"):
        for key in ("success", "coverage"):
            others = [mean(ends[form, guide][key]) for guide in ("branch", "token")]
            assert mean(ends[form, "oracle"][key]) > max(others)


def test_tails_of_the_forward_kl():
    problems, beta = anchors.AnchorsSettings().problems(), 0.3
    left = stationary(problems, shaper("k3_loss", None, beta)).softmax(-1) / problems.reference_SNV.softmax(-1)
    assert left.min() >= beta / (beta + 1) - 1e-9
    reverse = stationary(problems, shaper("k1_reward_to_go", None, beta)).softmax(-1)
    odds = (reverse / problems.reference_SNV.softmax(-1))[:, problems.tree.level(2)].flatten(0, 1)
    right = problems.reward_SY.reshape(-1, 3) > 0
    mixed = right.any(-1) & ~right.all(-1)
    ratio = odds.where(~right, 0.0).amax(-1)[mixed] / odds.where(right, 0.0).amax(-1)[mixed]
    assert ratio.tolist() == pytest.approx([float(torch.tensor(-1 / beta).exp())] * int(mixed.sum()), rel=1e-4)


def test_the_shipped_threshold_is_above_the_entropy_of_three_branches():
    settings = anchors.AnchorsSettings(tau=1.2)
    problems = settings.problems()
    anchor = shaper("k3_loss", anchors.make_guide("branch", problems, settings), 0.3)
    assert f"{torch.tensor(3.0).log():.4f}" == "1.0986"
    assert "1.0986" in PAGE
    assert not log_q_of(problems, torch.zeros_like(problems.reference_SNV), anchor).any()


# ---- support --------------------------------------------------------------------------------------------------------


def test_support():
    data = support.run(support.SupportSettings(points=3))
    rows = table("π_ref(y*)", "theorem")
    assert len(rows) == len(data["thresholds"]) == 5
    for (mass, *shown), row in zip(rows, data["thresholds"], strict=True):
        found = [row[key] for key in ("theorem", "trained", "k3_loss", "k3_ratio")]
        assert float(mass) == pytest.approx(row["mass"])
        expected = [float("inf") if cell == "never" else float(cell) for cell in shown]
        assert expected == pytest.approx(found, rel=6e-4)
        if row["mass"] > 0:
            assert row["trained"] == pytest.approx(row["theorem"], rel=1e-5)
    problems, answer = support.rare_problem(support.SupportSettings(), [1e-3])
    largest = torch.tensor([support.Q_LARGEST], dtype=torch.float64)
    assert f"{support.stationary_mass(problems, answer, largest, 'k3_ratio', 0.3).item():.3f}" == "0.048"
    assert f"{data['shipped_q_answer']:.2f}" == "2.74"
    assert all(series == [0.0] * 3 for series in data["sweep"]["zero"].values())


# ---- repair ---------------------------------------------------------------------------------------------------------


def test_repair():
    data = repair.run(repair.RepairSettings())
    kinds = {row["method"]: row for row in data["kinds"]}
    rows = table("method", "decisions")
    assert len(rows) == len(kinds)
    for method, *shown in rows:
        assert [number(cell) for cell in shown] == pytest.approx(
            [kinds[method]["decisions"], kinds[method]["routine"]], abs=6e-4
        )
    found = {(row["corruption"], row["gamma"]): row for row in data["rows"]}
    assert found["missing", 1.0]["equals_dft"]
    assert f"{found['missing', 0.0]['lift_decisions']:.2f}" == "3.94"
    assert f"{found['wrong', 1.0]['lift_decisions']:.2f}" == "0.22"
    row = found["wrong", 0.1]
    shown = [f"{row[key]:.4f}" for key in ("error_mean", "bound_mean", "regret", "regret_bound")]
    assert shown == ["0.0035", "0.2538", "0.0074", "0.0610"]
    assert all(text in PAGE for text in ("3.94", "0.22 of it", *shown))
    for row in data["rows"]:
        assert row["within_bound"]
        assert row["regret"] <= row["regret_bound"]
        assert row["drawn_error_mean"] <= row["bound_mean"]
    assert found["wrong", 0.1]["drawn_broken_frac"] > 0
    assert found["wrong", 0.0]["error_max"] == 0.0


# ---- shrinkage ------------------------------------------------------------------------------------------------------


def test_shrinkage(monkeypatch):
    rows = table("kl_form", "coverage@8, expected")
    monkeypatch.setattr(shrinkage, "ARMS", [(row[0], "none") for row in rows])
    found = {row["kl_form"]: row for row in shrinkage.run(shrinkage.ShrinkageSettings(groups=(4,)))["rows"]}
    assert len(rows) == len(found) == 4
    for form, *shown in rows:
        row = found[form]
        quantiles = [row["coverage_quantiles"][0], row["coverage_quantiles"][-1]]
        sampled = [mean(row["sampled_coverage"]), *quantiles, row["noise_effect"], row["sampled_success"]]
        assert number(shown[0]) == pytest.approx(mean(row["expected_coverage"]), abs=6e-3)
        # Sampled runs may part ways where another processor rounds differently.
        assert [number(cell) for cell in shown[1:]] == pytest.approx(sampled, abs=0.04)
    noise = {form: row["noise_effect"] for form, row in found.items()}
    assert sorted(noise, key=noise.get) == ["none", "k3_ratio", "k1_reward_to_go", "k3_loss"]


def test_an_uneven_reference_collapses_by_the_objective(monkeypatch):
    monkeypatch.setattr(shrinkage, "ARMS", [("none", "none")])
    (row,) = shrinkage.run(shrinkage.ShrinkageSettings(groups=(4,), spread=1.0))["rows"]
    assert mean(row["expected_coverage"]) < 0.4
    assert abs(row["noise_effect"]) < 0.05


def test_a_group_of_four_scales_the_reward_by_three_quarters():
    success = torch.tensor([0.3], dtype=torch.float64)
    wrong, right = shrinkage.group_advantage(shrinkage.centred, 4)(success)[0].tolist()
    assert right - wrong == pytest.approx(3 / 4)
