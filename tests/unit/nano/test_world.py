"""The countdown world against a search written another way, and its splits."""

import itertools
import random
import statistics

import pytest

from killick.errors import ConfigError
from killick.nano import world
from killick.verifiers.countdown import CountdownVerifier

OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def brute_force(numbers: tuple[int, ...], target: int) -> set[frozenset]:
    """Solutions by trying every ordered pair of every state, as sets of counted steps with sorted + and * operands."""
    found = set()
    states = [(list(numbers), [])]
    while states:
        values, steps = states.pop()
        if len(values) == 1:
            if values[0] == target:
                found.add(frozenset((step, steps.count(step)) for step in steps))
            continue
        for i, j in itertools.permutations(range(len(values)), 2):
            rest = [value for k, value in enumerate(values) if k not in (i, j)]
            a, b = values[i], values[j]
            results = {op: f(a, b) for op, f in OPERATORS.items()}
            if a / b == a // b:
                results["/"] = a // b
            for op, value in results.items():
                if 0 < value <= 200:
                    operands = tuple(sorted((a, b))) if op in "+*" else (a, b)
                    states.append(([*rest, value], [*steps, (op, operands, value)]))
    return found


@pytest.mark.parametrize("num_numbers", [2, 3])
def test_solutions_equal_brute_force_on_small_problems(num_numbers: int) -> None:
    for numbers in itertools.combinations_with_replacement((1, 2, 3, 6, 12), num_numbers):
        for target in (1, 2, 5, 6, 12, 24):
            found = world.solutions((numbers, target))
            as_sets = {
                frozenset((op, tuple(sorted((a, b))) if op in "+*" else (a, b), value) for a, op, b, value in way)
                for way in found
            }
            expected = {frozenset(step for step, _ in way) for way in brute_force(numbers, target)}
            assert as_sets == expected
            assert len(found) == len(brute_force(numbers, target))


def test_solutions_equal_brute_force_on_four_numbers() -> None:
    rng = random.Random(5)
    for _ in range(4):
        numbers = tuple(sorted(rng.choices(range(1, 13), k=4)))
        target = rng.randint(10, 99)
        assert len(world.solutions((numbers, target))) == len(brute_force(numbers, target))


def test_counts_that_can_be_checked_by_hand() -> None:
    # {1, 2} -> 2: 2*1 and 2/1. {1, 2} -> 3: 2+1. {1, 1, 1} -> 3: 1+1=2, 2+1=3, one solution in spite of three ones.
    assert len(world.solutions(((1, 2), 2))) == 2
    assert len(world.solutions(((1, 2), 3))) == 1
    assert len(world.solutions(((1, 1, 1), 3))) == 1
    # {1, 2, 3, 4} -> 21 = 3*7: the two sums may come in either order, which is still one solution.
    sums = sorted([world.Step(2, "+", 1, 3), world.Step(4, "+", 3, 7), world.Step(7, "*", 3, 21)])
    assert [sorted(way) for way in world.solutions(((1, 2, 3, 4), 21))].count(sums) == 1


def test_every_solution_is_judged_right() -> None:
    judge = CountdownVerifier(max_value=world.MAX_VALUE)
    for problem in world.problems("validation")[:60]:
        for way in world.solutions(problem.key):
            assert judge(world.write(way), problem.text).correct


def test_splits_are_disjoint_from_each_other_and_from_pretraining() -> None:
    keys = {split: {problem.key for problem in world.problems(split)} for split in world.SPLITS}
    for split, spec in world.SPLITS.items():
        assert len(keys[split]) == len(world.problems(split)) == spec.size
    assert sum(map(len, keys.values())) == len(set().union(*keys.values()))
    stream = world.pretraining_stream(seed=0)
    seen = {next(stream).problem.key for _ in range(30_000)}
    assert not seen & set().union(*keys.values())
    # The test can fail: without the partition the same walk meets problems of the splits.
    rng = random.Random(0)
    assert {world.walk(rng).problem.key for _ in range(5_000)} & set().union(*keys.values())


def test_splits_are_ordered_by_difficulty() -> None:
    counts = {
        split: [len(world.solutions(problem.key)) for problem in world.problems(split)]
        for split in ("easy", "mixed", "hard", "validation", "train")
    }
    assert min(counts["easy"]) == 12
    assert set(counts["hard"]) == {1}
    for split in ("train", "validation", "mixed"):
        hard = [count for count in counts[split] if count == 1]
        easy = [count for count in counts[split] if count >= 12]
        assert len(hard) == len(easy) == len(counts[split]) / 2
        assert 14 <= statistics.median(easy) <= 20  # drawn alike
    # Any head of a split is a fair sample of it: 64 rows, half easy, standard deviation sqrt(64) / 2 = 4.
    for split in ("train", "validation", "mixed"):
        assert abs(sum(count == 1 for count in counts[split][:64]) - 32) <= 12


def test_a_split_that_cannot_be_filled_is_an_error_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    # No problem has 1000 solutions.
    monkeypatch.setitem(world.SPLITS, "empty", world.Split(range(0, 1), size=1, seed=0, strata=((1000, None),)))
    monkeypatch.setattr(world, "MAX_DRAWS", 2000)
    with pytest.raises(AssertionError, match="more problems than its buckets hold"):
        world.problems("empty")


def test_values_stay_inside_the_world() -> None:
    for split, spec in world.SPLITS.items():
        for problem in world.problems(split):
            assert len(problem.numbers) == 4
            assert min(problem.numbers) >= 1
            assert max(problem.numbers) <= spec.max_number
            assert 10 <= problem.target <= 99
            assert (max(problem.numbers) > 12) == (split == "ood")


def test_first_problems_are_pinned() -> None:
    # Recorded results name problems by index: a change of the generator must be seen.
    pinned = {
        "train": ["10,4,11,7>43", "10,8,5,9>70", "6,3,8,11>10"],
        "mixed": ["7,6,1,10>39", "6,1,7,8>50", "4,3,6,10>16"],
        "hard": ["9,8,11,9>25", "8,5,5,6>74", "10,9,7,3>43"],
    }
    assert {split: [problem.text for problem in world.problems(split)[:3]] for split in pinned} == pinned


def test_bucket_ignores_the_order_of_numbers() -> None:
    buckets = {world.bucket_of(world.Problem(p, 24)) for p in itertools.permutations((3, 5, 7, 2))}
    assert len(buckets) == 1
    spread = {world.bucket_of(world.Problem((1, 2, 3, 4), target)) for target in range(10, 100)}
    assert len(spread) > world.NUM_BUCKETS / 2


def test_unknown_split_is_refused() -> None:
    with pytest.raises(ConfigError, match="no split"):
        world.problems("test")
