"""Any reasoning-gym data set as a task."""

import pytest

from killick.errors import ConfigError, DataError
from killick.tasks.reasoning_gym import ReasoningGym
from killick.tasks.validate import validate


@pytest.mark.parametrize(
    ("dataset", "settings"),
    [
        ("spell_backward", {"min_word_len": 3}),
        ("knights_knaves", {}),
        ("countdown", {"max_numbers": 4}),
        ("gsm_symbolic", {}),  # fractions in its entries
        ("arc_1d", {}),
        ("acre", {}),  # draws all its problems when created
        ("word_ladder", {}),  # refuses an index beyond its size
        ("graph_color", {}),  # no answer, but an example of one
        ("simple_integration", {}),
    ],
)
def test_golds_score_1_and_wrong_ones_do_not(dataset: str, settings: dict) -> None:
    task = ReasoningGym(dataset=dataset, settings=settings, train_num=4, test_num=4)
    train, test = task.rows("train"), task.rows("test")
    assert train == task.rows("train")
    assert len({row.problem for row in train + test}) == 8
    found = validate(task, "test", test)
    assert found.rejected == []
    assert found.no_gold == []
    if dataset != "graph_color":  # a colouring of one graph may be one of another as well
        assert found.accepted == []


def test_seeds_give_other_problems() -> None:
    one, two = (ReasoningGym(seed=seed, train_num=8, test_num=2).rows("train") for seed in (0, 1))
    assert not {row.problem for row in one} & {row.problem for row in two}


def test_a_data_set_without_answers_can_be_trained_on_but_not_validated() -> None:
    task = ReasoningGym(dataset="rush_hour", train_num=2, test_num=2)
    rows = task.rows("test")
    with pytest.raises(DataError, match="only a way to score one"):
        task.gold_completion(rows[0])
    assert validate(task, "test", rows).no_gold == ["test-0", "test-1"]
    assert not task.verifier("<answer>F+1</answer>", rows[0].answer).correct


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "no_such"}, "no data set"),
        ({"dataset": "puzzle24"}, "cannot be used"),
        ({"settings": {"min_word": 3}}, "refuses the settings"),
        ({"settings": {"seed": 3}}, "set by the task"),
        ({"settings": 3}, "must be a table"),
        ({"threshold": 0}, "threshold"),
        ({"train_num": 0}, "train_num"),
    ],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReasoningGym(**settings).rows("train")
