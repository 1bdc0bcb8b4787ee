"""Drawing problems from reasoning-gym for the tasks that use it.

reasoning-gym draws problem number i of a data set from `Random(seed + i)`, so data sets of neighbouring seeds are the
same problems shifted by one. Splits are therefore ranges of one index line, far apart, and every question of the test
split is left out of training as well (small ranges repeat).
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from killick.errors import ConfigError, DataError
from killick.registry import nearest

_STRIDE = 10_000_000  # index line of one seed; training starts at its beginning, testing in its middle
_TRIES = 50  # draws per row wanted before the settings are called too narrow

Drawn = tuple[dict[str, Any], str]  # a reasoning-gym entry and the question as it is asked


@dataclass(frozen=True)
class Drawing:
    """Which problems are drawn.

    Attributes:
        dataset: name of a reasoning-gym data set.
        settings: its own settings.
        train_num: rows of the training split.
        test_num: rows of the test split.
        seed: other seeds give other problems.

    Raises:
        ConfigError: numbers that are not whole or cannot be drawn.
    """

    dataset: str
    settings: Mapping[str, Any]
    train_num: int
    test_num: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("train_num", "test_num", "seed"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ConfigError(f"{name} = {value!r}: give a whole number of at least 0.")
        if min(self.train_num, self.test_num) < 1 or max(self.train_num, self.test_num) > _STRIDE // 100:
            raise ConfigError(
                f"train_num = {self.train_num} and test_num = {self.test_num}; each must be 1 to {_STRIDE // 100:,}."
            )
        if {"seed", "size"} & set(self.settings):
            raise ConfigError(
                "seed and size are set by the task (seed, train_num, test_num); take them out of settings."
            )


def draw(task: Drawing, split: str, ask: Callable[[dict[str, Any]], str | None]) -> list[Drawn]:
    """The problems of a split, all different, none in both splits.

    Args:
        task: what to draw.
        split: "train" or "test".
        ask: the question of an entry, as the model sees it; None leaves the entry out.

    Raises:
        ConfigError: unknown data set or setting.
        DataError: the settings allow too few different problems.
    """
    test = _draw(task, "test", ask, frozenset())
    return test if split == "test" else _draw(task, "train", ask, frozenset(question for _, question in test))


def _draw(task: Drawing, split: str, ask: Callable[[dict[str, Any]], str | None], taken: frozenset[str]) -> list[Drawn]:
    num = task.test_num if split == "test" else task.train_num
    drawn: list[Drawn] = []
    seen = set(taken)
    for tried, entry in enumerate(_entries(task, split)):
        if len(drawn) == num:
            return drawn
        if tried == _TRIES * num:
            break
        question = ask(entry)
        if question is not None and question not in seen:
            seen.add(question)
            drawn.append((entry, question))
    raise DataError(
        f"{task.dataset} with settings {dict(task.settings)} gave only {len(drawn)} different problems for the {split} "
        f"split in {_TRIES * num} draws, {num} are wanted. Allow more terms or digits, or lower train_num and test_num."
    )


def _entries(task: Drawing, split: str) -> Iterator[dict[str, Any]]:
    """Problems along the split's half of the index line, in pieces: some data sets draw all theirs when created."""
    num = 2 * (task.test_num if split == "test" else task.train_num)
    start = task.seed * _STRIDE + (0 if split == "train" else _STRIDE // 2)
    for piece in range(_STRIDE // 2 // num):
        data = create(task.dataset, dict(task.settings), seed=start + piece * num, size=num)
        for index in range(num):
            try:
                entry = data[index]
            except Exception as error:  # a range or type only the drawing trips over; each data set has its own
                raise ConfigError(
                    f"reasoning-gym's {task.dataset} cannot draw a problem with the settings {dict(task.settings)}: "
                    f"{type(error).__name__}: {error}. Correct the settings."
                ) from error
            yield entry


def create(name: str, settings: dict[str, Any], seed: int, size: int) -> Any:
    """A reasoning-gym data set.

    Raises:
        ConfigError: unknown data set or setting, or a value it refuses.
    """
    from reasoning_gym.factory import DATASETS, create_dataset

    if name not in DATASETS:
        raise ConfigError(f"reasoning-gym has no data set {name!r}. {nearest(name, DATASETS)}")
    allowed = {entry.name for entry in dataclasses.fields(DATASETS[name][1])}
    for key in settings:
        if key not in allowed:
            raise ConfigError(f"reasoning-gym's {name} has no setting {key!r}. {nearest(key, allowed)}")
    try:
        return create_dataset(name, seed=seed, size=size, **settings)
    except Exception as error:  # each data set checks its settings in its own way, or trips over them
        raise ConfigError(f"reasoning-gym's {name} refuses the settings {settings}: {error}") from error
