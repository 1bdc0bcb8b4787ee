"""The numbers of repairs and recovery, derived by hand."""

import json

import numpy as np
import pytest

from killick.report import load_study, study_summary
from killick.report.repairs import history, recovery, repair_summary
from killick.report.study import Run


@pytest.fixture
def run(tmp_path):
    return Run(0, {}, {}, [], {}, tmp_path)


CHAIN = [*"3+4=7", "<eos>"]  # operand, operator, forced, separator, result, end of turn


def test_repairs_in_numbers(synthetic, run):
    first = synthetic.repair_row(1, "a", CHAIN, [0.1, 0.2, 0.8, 0.9, 0.9, 0.8], [0.4, 0.8, 0.8, 0.9, 0.9, 0.8])
    second = synthetic.repair_row(
        2, "a", CHAIN, [0.5] * 6, [0.5] * 6, plan="wrong plan", fallback="truncated", failed_at=2
    )
    synthetic.write_rows(run.folder / "repairs.jsonl", [first, second])
    found = repair_summary(run)
    assert (found["num_repairs"], found["num_prompts"], found["num_tokens"]) == (2, 1, 12)
    # weights 0.2, 0.4, 0.8, 0.9, 0.9, 0.8 (sum 4.0), then six times 0.5; lifts 2, 2, 1 ... 1
    assert found["weight_mean"] == pytest.approx(7.0 / 12)
    assert found["lift_mean"] == pytest.approx(14 / 12)
    assert found["salience_mean"] == pytest.approx(2 * np.log(4) / 12)
    assert found["lift_high_frac"] == pytest.approx(2 / 12)
    assert found["plan_fallback_frac"] == 0.5
    assert found["plan_chars_mean"] == (len("-4*20+") + len("wrong plan")) / 2
    # decisions: the first operand and the operator: 0.2 + 0.4 and 0.5 + 0.5 of 7.0
    assert found["decision_weight_frac"] == pytest.approx(1.6 / 7.0)
    assert list(found["roles"]) == ["operand", "operator", "forced", "result", "separator", "end of turn"]
    operator = {"num_tokens": 2, "lift_mean": 1.5, "salience_mean": np.log(4) / 2, "p_base_mean": 0.35}
    assert found["roles"]["operator"] == pytest.approx(operator | {"weight_mean": 0.45})


def test_without_plan_the_lift_is_one_and_nothing_fell_back(synthetic, run):
    p = [0.3, 0.6]
    synthetic.write_rows(run.folder / "repairs.jsonl", [synthetic.repair_row(0, "a", ["x", "y"], p, p, plan=None)])
    found = repair_summary(run)
    assert found["lift_mean"] == pytest.approx(1.0)
    assert found["salience_mean"] == 0.0
    names = ("plan_fallback_frac", "plan_chars_mean", "decision_weight_frac", "roles")
    assert [found[name] for name in names] == [None] * 4


def test_an_empty_plan_was_asked_for(synthetic, run):
    rows = [
        synthetic.repair_row(0, "a", ["x"], [0.5], [0.5], plan=plan, fallback=fallback)
        for plan, fallback in ((None, "empty"), ("abcd", None), ("ab", "truncated"), ("ab", None))
    ]
    synthetic.write_rows(run.folder / "repairs.jsonl", rows)
    found = repair_summary(run)
    assert found["plan_fallback_frac"] == 2 / 4
    assert found["plan_chars_mean"] == pytest.approx((4 + 2 + 2) / 3)  # an empty plan has no length


GROUPS = [
    # (step, prompt, right): a fails at 0, is seen again at 2 and 5, solved at 5; b fails at 1 and at 4, never solved;
    # c never fails before 5, so the failure has no later visit; d fails twice within step 3: no later visit either;
    # e was solved before it failed at 2, and again at 3.
    (0, "a", 0), (0, "e", 4), (1, "b", 0), (1, "c", 3), (2, "a", 0), (2, "e", 0), (3, "d", 0), (3, "d", 0),
    (3, "e", 1), (4, "b", 0), (5, "a", 2), (5, "c", 0),
]  # fmt: skip


def write_groups(synthetic, folder, groups=GROUPS):
    keys = ("step", "uid", "num_right", "num_rows")
    return synthetic.write_rows(folder / "groups.jsonl", [dict(zip(keys, (*g, 4), strict=True)) for g in groups])


def test_recovery_in_numbers(synthetic, run):
    write_groups(synthetic, run.folder)
    assert recovery(run) == pytest.approx({
        "num_groups": 12,
        "num_prompts": 5,
        "failed_frac": 8 / 12,
        "failed_first_third_frac": 2 / 4,  # steps 0 and 1
        "failed_last_third_frac": 2 / 3,  # steps 4 and 5
        "num_failed_prompts": 5,
        "num_seen_again": 3,  # a, b, e
        "num_recovered": 2,  # a, e
        "recovered_frac": 2 / 3,
        "later_visits_mean": (2 + 1 + 1) / 3,
    })  # fmt: skip


def test_recovery_does_not_depend_on_the_order_of_lines(synthetic, run, tmp_path):
    write_groups(synthetic, run.folder)
    (tmp_path / "other").mkdir()
    write_groups(synthetic, tmp_path / "other", GROUPS[::-1])
    assert recovery(Run(0, {}, {}, [], {}, tmp_path / "other")) == recovery(run)


def test_recovered_so_far(synthetic, run):
    write_groups(synthetic, run.folder)
    found = history(run.groups)
    shares = [(r.num.sum(), r.den.sum()) for r in map(found.recovered, range(6))]
    # seen again: a at 2, e at 3, b at 4; recovered: e at 3, a at 5
    assert shares == [(0, 0), (0, 0), (0, 1), (1, 2), (1, 3), (2, 3)]


def test_no_failure_and_no_files(synthetic, run):
    assert recovery(run) is None
    assert repair_summary(run) is None
    fresh = Run(0, {}, {}, [], {}, run.folder)
    write_groups(synthetic, run.folder, [(0, "a", 1), (1, "a", 4)])
    found = recovery(fresh)
    assert (found["failed_frac"], found["num_failed_prompts"], found["recovered_frac"]) == (0.0, 0, None)


def test_the_summary_of_a_study_holds_them(synthetic, tmp_path):
    synthetic.write_run(tmp_path / "r", seed=3, beta=0.02, method="grpo")
    write_groups(synthetic, tmp_path / "r")
    (runs,) = [model["runs"] for model in study_summary(load_study(tmp_path / "r"))["models"].values()]
    assert [list(entry) for entry in runs] == [["seed", "recovery"]]
    assert runs[0]["seed"] == 3
    synthetic.write_journal(tmp_path / "r", seed=0, rule="sort")
    summary = study_summary(load_study(tmp_path / "r"))
    json.dumps(summary, allow_nan=False)
    (entry,) = summary["models"]["grpo"]["runs"]
    assert entry["repairs"]["num_repairs"] == len(load_study(tmp_path / "r").arms[0].runs[0].repairs)
