import math

import numpy as np
import pytest

from killick.errors import RecordError
from killick.evaluate.estimators import across_seeds, bootstrap
from killick.report import load_study
from killick.report.estimates import coverage, difference, failed_group_frac, mean_tokens, wall_s
from killick.report.evaluation import Evaluation
from killick.report.study import Arm, Run


def _arm(name, *evaluations, seeds=None, is_base=False):
    seeds = seeds or range(len(evaluations))
    runs = [Run(s, {}, {}, [], {e.split: e}) for s, e in zip(seeds, evaluations, strict=True)]
    return Arm(name, name, name, {}, runs, is_base)


def _logged(*logs):
    return Arm("a", "a", "m", {}, [Run(i, {}, {}, log, {}) for i, log in enumerate(logs)])


@pytest.fixture
def make(synthetic, tmp_path):
    """Evaluations of the same four problems, eight samples each; `seed` changes the verdicts."""

    def write(seed, **settings):
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        settings = {"num_problems": 4, "num_samples": 8} | settings
        synthetic.write_evaluation(place, "mixed", seed=seed, **settings)
        return Evaluation(place, "mixed")

    return write


def _by_hand(evaluation, k):
    """1 - C(n-c, k) / C(n, k) per problem, with exact integers."""
    n = evaluation.num_samples
    return [1 - math.comb(n - c, k) / math.comb(n, k) for c in evaluation.table.correct_QN.sum(axis=1).tolist()]


def test_one_evaluation_equals_the_formula_and_the_stored_summary(make):
    import json

    evaluation = make(1)
    found = coverage(_arm("a", evaluation), "mixed")
    assert list(found.at) == [1, 2, 4, 8]
    for k, interval in found.at.items():
        assert interval.mean == pytest.approx(np.mean(_by_hand(evaluation, k)), abs=1e-12)
    # `killick evaluate` and the report must print the same interval
    stored = json.loads((evaluation.path / "summary.json").read_text())["pass_at"]
    assert {str(k): vars(interval) for k, interval in found.at.items()} == stored
    assert found.num_runs == 1
    assert "seeds" not in found.how


def test_several_seeds_average_and_name_their_method(make):
    first, second = make(1), make(2)
    found = coverage(_arm("a", first, second), "mixed")
    values = np.array([_by_hand(first, 4), _by_hand(second, 4)])
    expected = across_seeds(values, np.random.default_rng(0))
    assert found.at[4].mean == pytest.approx(values.mean(), abs=1e-12)
    assert (found.at[4].low, found.at[4].high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert "training seeds" in found.how


def test_a_split_nobody_evaluated_has_no_coverage(make):
    assert coverage(_arm("a", make(1)), "hard") is None


def test_seeds_evaluated_differently_have_no_mean(make):
    with pytest.raises(RecordError, match=r"sampling.temperature: 1.0 against 0.5"):
        coverage(_arm("a", make(1), make(2, temperature=0.5)), "mixed")


def test_difference_from_the_base_pairs_every_run_with_it(make):
    base, first, second = make(3), make(1), make(2)
    found = difference(_arm("a", first, second), _arm("base", base, is_base=True), "mixed")
    expected = np.mean([_by_hand(first, 2), _by_hand(second, 2)]) - np.mean(_by_hand(base, 2))
    assert found.at[2].mean == pytest.approx(expected, abs=1e-12)
    assert found.num_pairs == 2


def test_difference_between_trained_models_pairs_equal_seeds(make):
    a = [make(1), make(2)]
    b = [make(3), make(4)]
    # b's runs are listed in the other order: pairing by position would subtract the wrong seeds
    found = difference(_arm("a", *a, seeds=[5, 6]), _arm("b", *b, seeds=[6, 5]), "mixed")
    per_pair = np.array(
        [np.subtract(_by_hand(a[0], 1), _by_hand(b[1], 1)), np.subtract(_by_hand(a[1], 1), _by_hand(b[0], 1))]
    )
    expected = across_seeds(per_pair, np.random.default_rng(0))
    assert found.at[1].mean == pytest.approx(expected.mean, abs=1e-12)
    assert (found.at[1].low, found.at[1].high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_one_common_seed_uses_that_pair_alone(make):
    a, b = [make(1), make(2)], [make(3)]
    found = difference(_arm("a", *a, seeds=[0, 1]), _arm("b", *b, seeds=[1]), "mixed", ks=[1, 64])
    expected = bootstrap(np.subtract(_by_hand(a[1], 1), _by_hand(b[0], 1))[:, None], np.random.default_rng(0))[0]
    assert list(found.at) == [1]  # 64 samples were never drawn
    assert vars(found.at[1]) == pytest.approx(vars(expected), abs=1e-12)
    assert found.num_pairs == 1


def test_no_difference_without_a_common_seed_or_question(make):
    a = _arm("a", make(1), seeds=[0])
    assert difference(a, _arm("b", make(2), seeds=[1]), "mixed") is None
    assert difference(a, _arm("b", make(2, temperature=0.5), seeds=[0]), "mixed") is None
    assert difference(a, _arm("b", make(2, num_problems=3), seeds=[0]), "mixed") is None


def test_another_sampler_seed_is_the_same_question(make):
    found = difference(_arm("a", make(1), seeds=[0]), _arm("b", make(2, sampler_seed=9), seeds=[0]), "mixed")
    assert found is not None


def test_mean_tokens(make):
    first, second = make(1), make(2)
    expected = (first.table.tokens_QN.mean() + second.table.tokens_QN.mean()) / 2
    assert mean_tokens(_arm("a", first, second), "mixed").mean == pytest.approx(expected)


def test_failed_groups_average_over_steps_then_seeds():
    key = "group/all_wrong_frac"
    arm = _logged(
        [{"step": s, key: v} for s, v in enumerate([1.0, 0.5, 0.0], start=1)],
        [{"step": 1, key: 0.3}, {"step": 2, key: float("nan")}, {"step": 3}],
    )
    assert failed_group_frac(arm) == pytest.approx((0.5 + 0.3) / 2)
    assert failed_group_frac(arm, last=2) == pytest.approx((0.25 + 0.3) / 2)
    assert failed_group_frac(_logged([{"step": 1}])) is None


def test_wall_time_from_the_host_or_from_step_times():
    # logged every 5 steps: each mean step time stands for five steps
    assert wall_s(_logged([{"step": 5, "step_time": 2.0}, {"step": 10, "step_time": 3.0}])) == 5 * 2.0 + 5 * 3.0
    assert wall_s(_logged([{"step": 1, "step_time": 2.0}, {"step": 1, "train_runtime": 7.5}])) == 7.5
    assert wall_s(_logged([{"step": 1, "loss": 0.0}])) is None


def test_every_coverage_of_a_study_is_there(study_dir):
    study = load_study(study_dir)
    assert set(study.coverage) == {(arm.name, split) for arm in study.arms for split in ("mixed", "hard")}
