"""The countdown task: rows, plans, modes."""

import json

import pytest

from killick.errors import ConfigError, DataError
from killick.nano import world
from killick.registry import Registry
from killick.tasks import TASKS
from killick.tasks.countdown import Countdown, guided_messages, plan_messages, plan_of, uses_division
from killick.tasks.types import Row

SPLITS = ("train", "validation", "easy", "mixed", "hard", "ood")


def test_registered_and_split_names() -> None:
    assert isinstance(TASKS, Registry)
    assert TASKS.build("countdown") == Countdown()
    assert Countdown().splits == SPLITS


@pytest.mark.parametrize("split", SPLITS)
def test_every_reference_is_judged_right_and_another_target_wrong(split: str) -> None:
    task = Countdown()
    rows = task.rows(split)
    assert len({row.uid for row in rows}) == len(rows) == world.SPLITS[split].size
    for row in rows:
        task.verifier.check_gold(row.answer)
        assert task.verifier(task.gold_completion(row), row.answer).correct
        numbers, target = row.meta["numbers"], row.meta["target"]
        assert row.answer == f"{','.join(map(str, numbers))}>{target}"
        assert row.prompt == [{"role": "user", "content": f"{row.answer}:"}]
        assert not task.verifier(task.gold_completion(row), f"{','.join(map(str, numbers))}>{target + 1}").correct
        assert row.meta["plan"] == plan_of(row.solution or "")
        assert json.loads(json.dumps(row.meta)) == row.meta


def test_rows_are_stable_under_limit_and_repetition() -> None:
    task = Countdown()
    assert task.rows("mixed", 20) == task.rows("mixed")[:20] == Countdown().rows("mixed", 20)


def test_references_are_spread_over_the_solutions() -> None:
    # A fixed choice such as the first solution would give one index only.
    rows = Countdown().rows("easy")
    places = []
    for row in rows:
        ways = [world.write(way) for way in world.solutions((tuple(sorted(row.meta["numbers"])), row.meta["target"]))]
        places.append(ways.index(row.solution or "") / (len(ways) - 1))
    assert 0.4 < sum(places) / len(places) < 0.6
    assert min(places) == 0.0
    assert max(places) == 1.0


def test_wrong_use_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'mixed'"):
        Countdown().rows("mixd")
    with pytest.raises(ConfigError, match="at least 1"):
        Countdown().rows("mixed", 0)
    with pytest.raises(DataError, match="no solution"):
        Countdown().gold_completion(Row(uid="x", prompt=[], answer="3,5>8"))


def test_plan_is_operators_with_the_values_between() -> None:
    assert plan_of("7-3=4;4*5=20;20+2=22") == "-4*20+"
    assert plan_of("12/4=3;3*8=24") == "/3*"
    with pytest.raises(DataError, match="not a chain"):
        plan_of("7-3")


def test_turns_carry_their_kind_in_the_first_character() -> None:
    problem, solution = "3,5,7,2>22:", "7-3=4;4*5=20;20+2=22"
    assert plan_messages(problem, solution) == [{"role": "user", "content": f"?{problem}{solution}"}]
    assert guided_messages(problem, "-4*20+") == [{"role": "user", "content": "!3,5,7,2>22:-4*20+"}]


@pytest.mark.parametrize(
    ("text", "mode", "division"),
    [
        ("7-3=4;4*5=20;20+2=22", "-*+", False),
        ("12/4=3;3*8=24", "/*", True),
        ("8*3=24;24/2=12;12+1=13", "*/+", True),
        ("7-3", None, False),
        ("", None, False),
        ("7/", None, False),
    ],
)
def test_mode_and_division(text: str, mode: str | None, division: bool) -> None:
    assert Countdown().mode(text) == mode
    assert uses_division(text) == division
