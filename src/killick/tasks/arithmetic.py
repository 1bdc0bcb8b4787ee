"""Procedural arithmetic from reasoning-gym: endless problems with one exact number as the answer, no download.

Splits are drawn as `killick.tasks.gym` says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from killick.errors import ConfigError
from killick.registry import nearest
from killick.tasks.gym import Drawing, draw
from killick.tasks.reading import ask, check_gold, check_limit
from killick.tasks.types import Row
from killick.verifiers.number import NumberVerifier
from killick.verifiers.types import Verifier

_LARGEST = 1000  # terms or digits; far beyond any use, and still drawn in no time


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
        if not isinstance(self.settings, Mapping) or not isinstance(self.wording, str):
            raise ConfigError(
                f"settings must be a table and wording a text; found {self.settings!r} and {self.wording!r}."
            )
        if "{question}" not in self.wording and "{expression}" not in self.wording:
            raise ConfigError(
                f"The wording {self.wording!r} shows no problem: put {{question}} or {{expression}} in it."
            )
        self._drawing()
        for name, value in self.settings.items():
            sized = name.endswith(("_terms", "_digits")) and isinstance(value, int | float)
            if sized and not 0 <= value <= _LARGEST:
                raise ConfigError(f"settings.{name} = {value!r}: allowed are 0 to {_LARGEST}.")

    def _drawing(self) -> Drawing:
        return Drawing(self.dataset, self.settings, self.train_num, self.test_num, self.seed)

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
        drawn = draw(self._drawing(), split, self._fill)[:limit]
        rows = [self._row(entry, question, f"{split}-{number}") for number, (entry, question) in enumerate(drawn)]
        for row in rows:
            check_gold(self.verifier, row)
        return rows

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
