"""Means over k samples and over benchmarks, and what `summary.json` says of them."""

import numpy as np
import pytest

from killick.errors import ConfigError
from killick.evaluate.estimators import bootstrap, macro_bootstrap, mean_at_1, mean_at_k
from killick.evaluate.records import read_records
from killick.evaluate.summary import summarise


def rng():
    return np.random.default_rng(0)


def test_mean_at_k_takes_the_first_k_samples():
    correct_QN = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=bool)
    assert mean_at_k(correct_QN, 1, rng()).mean == pytest.approx(2 / 3)
    assert mean_at_k(correct_QN, 2, rng()).mean == pytest.approx((0.5 + 1 + 0) / 3)
    assert mean_at_k(correct_QN, 4, rng()) == mean_at_1(correct_QN.sum(axis=1), 4, rng())
    with pytest.raises(ConfigError, match=r"mean@5 from 4 samples"):
        mean_at_k(correct_QN, 5, rng())


def test_macro_mean_weighs_benchmarks_and_not_problems():
    small, big = np.full((2, 1), 1.0), np.full((1000, 1), 0.0)
    (found,) = macro_bootstrap([small, big], rng())
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)  # nothing varies within a benchmark


def test_macro_interval_resamples_within_benchmarks():
    """One benchmark varies, the other does not: the mean over both varies by half of what the first does."""
    values = np.random.default_rng(3).random((60, 1))
    alone = bootstrap(values, rng(), 20_000)[0]
    (both,) = macro_bootstrap([values, np.full((9, 1), 0.7)], rng(), 20_000)
    assert both.mean == pytest.approx((alone.mean + 0.7) / 2)
    assert both.high - both.low == pytest.approx((alone.high - alone.low) / 2, rel=0.03)


def test_macro_of_two_independent_benchmarks_adds_variances():
    values = np.random.default_rng(4).random((80, 1))
    alone = bootstrap(values, rng(), 20_000)[0]
    (both,) = macro_bootstrap([values, values], rng(), 20_000)
    assert both.high - both.low == pytest.approx((alone.high - alone.low) / np.sqrt(2), rel=0.03)


def test_macro_of_nothing_or_of_unlike_columns_is_refused():
    for values in ([], [np.zeros((3, 1)), np.zeros((3, 2))]):
        with pytest.raises(ConfigError, match="macro average"):
            macro_bootstrap(values, rng())
    with pytest.raises(ConfigError, match="no problems"):
        macro_bootstrap([np.zeros((0, 1))], rng())


def test_summary(tmp_path, make_record):
    """Two problems of two samples: right by modes a and b; right by a, then wrong."""
    records = [
        make_record("p0", 0),
        make_record("p0", 1, mode="b"),
        make_record("p1", 0),
        make_record("p1", 1, correct=False, reason="wrong", mode=None),
    ]
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(record.line() for record in records))
    summary = summarise(read_records(path, 2), rng())
    assert {k: entry["mean"] for k, entry in summary["mean_at"].items()} == {"1": 1.0, "2": 0.75}
    assert {k: entry["mean"] for k, entry in summary["pass_at"].items()} == {"1": 0.75, "2": 1.0}
    assert summary["solved_frac"] == 1.0
    assert summary["modes"]["num_distinct_per_problem_mean"] == 1.5
