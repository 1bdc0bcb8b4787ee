"""Arithmetic: splits that cannot overlap, settings that are refused, answers checked against the expression."""

import re

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks.arithmetic import Arithmetic


def question(row) -> str:
    return row.prompt[-1]["content"]


def evaluate(expression: str) -> int:
    """Left to right, + and - only; independent of reasoning-gym."""
    tokens = expression.split()
    total = int(tokens[0])
    for sign, number in zip(tokens[1::2], tokens[2::2], strict=True):
        total += int(number) if sign == "+" else -int(number)
    return total


def test_answers_are_right() -> None:
    for row in Arithmetic(settings={"min_terms": 2, "max_terms": 4}).rows("test", 50):
        assert int(row.answer) == evaluate(row.meta["expression"])


def test_rows_are_the_same_every_time_and_limits_are_prefixes() -> None:
    task = Arithmetic(train_num=40, test_num=20)
    assert task.rows("train") == task.rows("train")
    assert task.rows("train", 7) == task.rows("train")[:7]
    assert len({row.uid for row in task.rows("train")}) == 40


def test_splits_share_no_question_even_where_repeats_abound() -> None:
    # One-digit sums of two terms: 200 different questions, so 80 + 60 drawn independently would overlap.
    task = Arithmetic(
        settings={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}, train_num=80, test_num=60
    )
    train, test = ([question(row) for row in task.rows(split)] for split in task.splits)
    assert len(set(train)) == 80
    assert len(set(test)) == 60
    assert not set(train) & set(test)


def test_neighbouring_seeds_are_not_one_shifted_sequence() -> None:
    first, second = (
        {question(r) for r in Arithmetic(seed=s, settings={"min_digits": 4}).rows("train", 100)} for s in (0, 1)
    )
    assert len(first & second) <= 1


def test_too_narrow_settings_are_an_error_not_an_endless_loop() -> None:
    settings = {"min_terms": 2, "max_terms": 2, "max_digits": 1}
    with pytest.raises(DataError, match=r"only 1\d\d different"):
        Arithmetic(settings=settings, train_num=300, test_num=10).rows("train")


def test_a_data_set_with_words_as_answers_is_refused() -> None:
    with pytest.raises(DataError, match="plain number"):
        Arithmetic(dataset="calendar_arithmetic", settings={}, wording="{question}").rows("test", 20)


def test_other_data_sets_work_with_their_own_question() -> None:
    row = Arithmetic(dataset="gcd", settings={}, wording="{question}").rows("test", 1)[0]
    assert "Greatest Common Divisor" in question(row)
    assert re.fullmatch(r"[0-9]+", row.answer)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "chain_sums"}, "chain_sum"),
        ({"settings": {"max_digit": 2}}, "max_digits"),
        ({"settings": {"min_terms": 5, "max_terms": 2}}, "max_terms"),
        ({"dataset": "gcd", "settings": {}}, "no bare expression"),
        ({"settings": {"min_terms": 1.5, "max_terms": 2.5}}, "settings"),
        ({"settings": {"min_terms": "2"}}, "refuses the settings"),
    ],
)
def test_wrong_settings_name_the_way_out(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Arithmetic(**settings).rows("test", 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"train_num": 0},
        {"test_num": 10_000_000},
        {"wording": "Compute."},
        {"settings": {"seed": 3}},
        {"train_num": "4"},
        {"test_num": True},
        {"seed": -1},  # the generator takes absolute values: another seed's problems, mirrored
        {"seed": 0.5},
        {"wording": 3},
        {"settings": [1]},
        {"settings": {"max_terms": 10**9}},
    ],
)
def test_impossible_settings_are_refused_at_once(settings: dict) -> None:
    with pytest.raises(ConfigError):
        Arithmetic(**settings)


def test_unknown_split_and_limit() -> None:
    with pytest.raises(ConfigError, match="train"):
        Arithmetic().rows("dev")
    with pytest.raises(ConfigError, match="at least 1"):
        Arithmetic().rows("test", 0)
