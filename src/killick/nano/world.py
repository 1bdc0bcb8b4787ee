"""Countdown in steps: problems, their solutions by full search, and splits that cannot leak into pretraining.

A problem is a few numbers and a target. A solution takes two of the values still available, writes one step
such as `7-3=4`, puts the result back, and ends when one value, the target, is left: n numbers need n - 1 steps.
Every value is a positive integer of at most `MAX_VALUE`, and a division must be exact.

**Distinct solutions.** Operands of `+` and `*` are written larger first, equal numbers are indistinguishable, and
two solutions are the same when they consist of the same steps in any order. So `3+7=10` and `7+3=10` are one step,
and the order of two independent steps does not make a second solution; `(a+b)+c` and `a+(b+c)` stay two.

**Partition.** Every problem belongs to one of 32 buckets by a checksum of its sorted numbers and target. Each split
owns buckets of its own and pretraining owns the rest: two splits, or a split and the pretraining text, never share
a problem, however many problems are drawn.

**Distribution.** Problems are drawn by a random walk (`walk`), so a problem is as likely as its solutions together,
without repetition, into equal strata by the number of distinct solutions. `train`, `validation` and `mixed` are half
easy, half hard problems, and take the same number from each bucket they own, so they have the same distribution.
"""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from killick.errors import ConfigError

NUM_NUMBERS = 4
MIN_NUMBER, MAX_NUMBER = 1, 12
MIN_TARGET, MAX_TARGET = 10, 99
MAX_VALUE = 200
NUM_BUCKETS = 32
# The hungriest split needs an eighth of this; more means that a split asks for problems that do not exist.
MAX_DRAWS = 1_000_000


class Step(NamedTuple):
    """One step `a op b = value`; a >= b for the commutative operators, and always for `-` and `/` here."""

    a: int
    op: str
    b: int
    value: int


Solution = tuple[Step, ...]


class Problem(NamedTuple):
    """Numbers in the order shown, and the target."""

    numbers: tuple[int, ...]
    target: int

    @property
    def text(self) -> str:
        """The form read by the verifier, e.g. `3,5,7,2>24`."""
        return f"{','.join(map(str, self.numbers))}>{self.target}"

    @property
    def key(self) -> tuple[tuple[int, ...], int]:
        """What makes two problems the same: the number multiset and the target."""
        return tuple(sorted(self.numbers)), self.target


class Solved(NamedTuple):
    """A problem with one of its solutions, steps in the order they were made."""

    problem: Problem
    solution: Solution


@dataclass(frozen=True)
class Split:
    """How a split is drawn.

    Attributes:
        buckets: owners of its problems; empty for problems outside the pretraining distribution.
        size: number of problems.
        seed: of the generator.
        strata: bounds on the number of distinct solutions (fewest, most or None); equal shares of the split.
        max_number: largest number; above `MAX_NUMBER` every problem holds at least one number pretraining never shows.
    """

    buckets: range
    size: int
    seed: int
    strata: tuple[tuple[int, int | None], ...]
    max_number: int = MAX_NUMBER


# 12 is the largest bound every split can fill: only 68 problems of the bucket of `mixed` have 20 solutions or more.
_EASY, _HARD, _ANY = (12, None), (1, 1), (1, None)
SPLITS: dict[str, Split] = {
    "train": Split(range(0, 8), size=2000, seed=100, strata=(_EASY, _HARD)),
    "validation": Split(range(8, 9), size=250, seed=101, strata=(_EASY, _HARD)),
    "easy": Split(range(9, 11), size=200, seed=102, strata=(_EASY,)),
    "mixed": Split(range(11, 12), size=250, seed=103, strata=(_EASY, _HARD)),
    "hard": Split(range(12, 14), size=200, seed=104, strata=(_HARD,)),
    "ood": Split(range(0), size=200, seed=105, strata=(_ANY,), max_number=15),
}
_OWNED = frozenset(bucket for split in SPLITS.values() for bucket in split.buckets)


def write(solution: Solution) -> str:
    """The text of a solution, e.g. `7-3=4;5*4=20;20+2=22`."""
    return ";".join(f"{a}{op}{b}={value}" for a, op, b, value in solution)


def bucket_of(problem: Problem) -> int:
    """The owner of a problem in [0, NUM_BUCKETS): equal for every order of its numbers, stable across versions."""
    numbers, target = problem.key
    return zlib.crc32(f"{','.join(map(str, numbers))}>{target}".encode("ascii")) % NUM_BUCKETS


def is_pretraining(problem: Problem) -> bool:
    """True when the problem may appear in pretraining text."""
    return bucket_of(problem) not in _OWNED


def steps_of(x: int, y: int) -> list[Step]:
    """All legal steps with two values, in a fixed order of operators."""
    a, b = (x, y) if x >= y else (y, x)
    steps = []
    if a + b <= MAX_VALUE:
        steps.append(Step(a, "+", b, a + b))
    if a > b:
        steps.append(Step(a, "-", b, a - b))
    if a * b <= MAX_VALUE:
        steps.append(Step(a, "*", b, a * b))
    if a % b == 0:
        steps.append(Step(a, "/", b, a // b))
    return steps


def _chains(values: tuple[int, ...], target: int) -> Iterator[Solution]:
    """Every chain of steps from sorted values to the target; the same solution may come in several orders."""
    if len(values) == 2:
        for step in steps_of(*values):
            if step.value == target:
                yield (step,)
        return
    seen_pairs = set()
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            pair = values[i], values[j]
            if pair in seen_pairs:
                continue
            seen_pairs.add(pair)
            rest = values[:i] + values[i + 1 : j] + values[j + 1 :]
            for step in steps_of(*pair):
                for chain in _chains(tuple(sorted((*rest, step.value))), target):
                    yield (step, *chain)


@lru_cache(maxsize=8192)
def solutions(key: tuple[tuple[int, ...], int]) -> tuple[Solution, ...]:
    """All distinct solutions of the problem with this key (see the head of the module), sorted.

    Each is given in its smallest possible order of steps, so the result does not depend on the search.
    """
    numbers, target = key
    first: dict[Solution, Solution] = {}
    for chain in _chains(numbers, target):
        steps = tuple(sorted(chain))
        first[steps] = min(first.get(steps, chain), chain)
    return tuple(sorted(first.values()))


def _below(rng: random.Random, n: int) -> int:
    # Only random() is promised to stay the same over Python versions; randrange and choice are not.
    return int(rng.random() * n)


def walk(rng: random.Random, max_number: int = MAX_NUMBER) -> Solved:
    """Four random numbers combined by random legal steps until one value is left, which becomes the target."""
    numbers = tuple(MIN_NUMBER + _below(rng, max_number - MIN_NUMBER + 1) for _ in range(NUM_NUMBERS))
    values = list(numbers)
    chain = []
    while len(values) > 1:
        x = values.pop(_below(rng, len(values)))
        y = values.pop(_below(rng, len(values)))
        steps = steps_of(x, y)
        step = steps[_below(rng, len(steps))]
        values.append(step.value)
        chain.append(step)
    return Solved(Problem(numbers, values[0]), tuple(chain))


def pretraining_stream(seed: int) -> Iterator[Solved]:
    """Endless solved problems of the pretraining distribution, none of them owned by a split."""
    rng = random.Random(seed)
    while True:
        solved = walk(rng)
        if MIN_TARGET <= solved.problem.target <= MAX_TARGET and is_pretraining(solved.problem):
            yield solved


@cache
def problems(split: str) -> tuple[Problem, ...]:
    """The problems of a split, no two with the same key, in a fixed order.

    Raises:
        ConfigError: unknown split.
    """
    if split not in SPLITS:
        raise ConfigError(f"The countdown world has no split {split!r}. Known: {', '.join(SPLITS)}.")
    spec = SPLITS[split]
    rng = random.Random(spec.seed)
    chosen: dict[tuple[tuple[int, ...], int], Problem] = {}
    room = [spec.size // len(spec.strata)] * len(spec.strata)  # problems still missing in each stratum
    draws = 0
    while any(room):
        draws += 1
        assert draws <= MAX_DRAWS, f"split {split!r} asks for more problems than its buckets hold: {room} are missing"
        problem = walk(rng, spec.max_number).problem
        if not MIN_TARGET <= problem.target <= MAX_TARGET or problem.key in chosen:
            continue
        if spec.max_number > MAX_NUMBER >= max(problem.numbers):
            continue
        if spec.buckets and bucket_of(problem) not in spec.buckets:
            continue
        count = len(solutions(problem.key))
        for index, (fewest, most) in enumerate(spec.strata):
            if room[index] and fewest <= count and (most is None or count <= most):
                room[index] -= 1
                chosen[problem.key] = problem
                break
    drawn = list(chosen.values())
    # Likelier problems are drawn earlier; shuffled, the first rows of a split are like the rest.
    for i in range(len(drawn) - 1, 0, -1):
        j = _below(rng, i + 1)
        drawn[i], drawn[j] = drawn[j], drawn[i]
    return tuple(drawn)
