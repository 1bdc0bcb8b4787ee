"""Procedural arithmetic from reasoning-gym: endless problems with one exact number as the answer, no download.

reasoning-gym draws problem number i of a data set from `Random(seed + i)`, so data sets of neighbouring seeds are the
same problems shifted by one. Splits are therefore ranges of one index line, far apart, and every question of the test
split is left out of training as well (small ranges repeat).
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.jsonl import ask, check_gold, check_limit
from killick.tasks.types import Row
from killick.verifiers.number import NumberVerifier
from killick.verifiers.types import Verifier

_STRIDE = 10_000_000  # index line of one seed; training starts at its beginning, testing in its middle
_LARGEST = 1000  # terms or digits; far beyond any use, and still drawn in no time
_TRIES = 50  # draws per row wanted before the settings are called too narrow


def _small_sums() -> dict[str, Any]:
    return {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}


@dataclass(frozen=True)
class Arithmetic:
    """Arithmetic problems of adjustable size.

    The defaults (sums and differences of two one-digit numbers, 200 different problems) are for a model of 135 million
    parameters, which solves a tenth of them at the first try and half of them in eight; larger models need more terms
    and digits.

    Attributes:
        dataset: a reasoning-gym data set whose answers are plain numbers, e.g. "chain_sum", "basic_arithmetic",
            "gcd", "lcm", "products", "leg_counting".
        settings: that data set's own settings (terms, digits, …).
        train_num: rows of the training split.
        test_num: rows of the test split.
        seed: other seeds give other problems.
        wording: the user's turn; `{question}` is reasoning-gym's text, `{expression}` the bare expression.
        system: system message, or "" for none (a model's chat template may then add its own).
    """

    dataset: str = "chain_sum"
    settings: Mapping[str, Any] = field(default_factory=_small_sums)
    train_num: int = 128
    test_num: int = 48
    seed: int = 0
    wording: str = "What is {expression}?"
    system: str = ""

    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def __post_init__(self) -> None:
        for name in ("train_num", "test_num", "seed"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ConfigError(f"{name} = {value!r}: give a whole number of at least 0.")
        if not isinstance(self.settings, Mapping) or not isinstance(self.wording, str):
            raise ConfigError(
                f"settings must be a table and wording a text; found {self.settings!r} and {self.wording!r}."
            )
        if min(self.train_num, self.test_num) < 1 or max(self.train_num, self.test_num) > _STRIDE // 100:
            raise ConfigError(
                f"train_num = {self.train_num} and test_num = {self.test_num}; each must be 1 to {_STRIDE // 100:,}."
            )
        if "{question}" not in self.wording and "{expression}" not in self.wording:
            raise ConfigError(
                f"The wording {self.wording!r} shows no problem: put {{question}} or {{expression}} in it."
            )
        if {"seed", "size"} & set(self.settings):
            raise ConfigError(
                "seed and size are set by the task (seed, train_num, test_num); take them out of settings."
            )
        for name, value in self.settings.items():
            sized = name.endswith(("_terms", "_digits")) and isinstance(value, int | float)
            if sized and not 0 <= value <= _LARGEST:
                raise ConfigError(f"settings.{name} = {value!r}: allowed are 0 to {_LARGEST}.")

    @property
    def verifier(self) -> Verifier:
        """Exact comparison of the final number."""
        return NumberVerifier()

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems of a split, all different, none in both splits.

        Raises:
            ConfigError: unknown split, data set or setting, or a limit below 1.
            DataError: the settings allow too few different problems, or answers are not numbers.
        """
        check_limit(limit)
        if split not in self.splits:
            raise ConfigError(f"The task arithmetic has no split {split!r}. {nearest(split, self.splits)}")
        test = self._draw("test", self.test_num, frozenset())
        rows = (
            test
            if split == "test"
            else self._draw("train", self.train_num, frozenset(row.meta["question"] for row in test))
        )
        rows = rows[:limit]
        for row in rows:
            check_gold(self.verifier, row)
        return rows

    def _draw(self, split: str, num: int, taken: frozenset[str]) -> list[Row]:
        """The first `num` different problems of the split's index range that are not `taken`."""
        rows: list[Row] = []
        seen = set(taken)
        for tried, entry in enumerate(self._entries(split)):
            if len(rows) == num:
                return rows
            if tried == _TRIES * num:
                break
            question = self._fill(entry)
            if question not in seen:
                seen.add(question)
                rows.append(self._row(entry, question, f"{split}-{len(rows)}"))
        raise DataError(
            f"{self.dataset} with settings {dict(self.settings)} gave only {len(rows)} different problems for the "
            f"{split} split in {_TRIES * num} draws, {num} are wanted. Allow more terms or digits, or lower "
            "train_num and test_num."
        )

    def _entries(self, split: str) -> Iterator[dict[str, Any]]:
        data = _create(self.dataset, dict(self.settings), seed=self.seed * _STRIDE)
        start = 0 if split == "train" else _STRIDE // 2
        for index in range(start, start + _STRIDE // 2):
            try:
                entry = data[index]
            except Exception as error:  # a range or type only the drawing trips over; each data set has its own
                raise ConfigError(
                    f"reasoning-gym's {self.dataset} cannot draw a problem with the settings {dict(self.settings)}: "
                    f"{type(error).__name__}: {error}. Correct the settings."
                ) from error
            yield entry

    def _fill(self, entry: dict[str, Any]) -> str:
        text = self.wording.replace("{question}", entry["question"])
        if "{expression}" in text:
            expression = entry["metadata"].get("expression")
            if expression is None:
                raise ConfigError(
                    f"reasoning-gym's {self.dataset} gives no bare expression. Use {{question}} in the wording."
                )
            text = text.replace("{expression}", str(expression))
        return text

    def _row(self, entry: dict[str, Any], question: str, uid: str) -> Row:
        metadata = entry["metadata"]
        meta = {key: metadata[key] for key in ("expression", "num_terms", "num_digits") if key in metadata}
        return Row(
            uid=uid,
            prompt=ask(question, "", self.system),
            answer=str(entry["answer"]),
            source=f"reasoning-gym {self.dataset}",
            meta={**meta, "question": question},
        )

    def gold_completion(self, row: Row) -> str:
        """The bare number."""
        return row.answer

    def mode(self, completion: str) -> str | None:
        """Unknown: the answer alone does not show how it was found."""
        return None


def _create(name: str, settings: dict[str, Any], seed: int) -> Any:
    """A reasoning-gym data set over the whole index line of a seed.

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
        return create_dataset(name, seed=seed, size=_STRIDE, **settings)
    except Exception as error:  # each data set checks its settings in its own way, or trips over them
        raise ConfigError(f"reasoning-gym's {name} refuses the settings {settings}: {error}") from error
