"""Any data set of reasoning-gym: endless problems of adjustable size, judged by the data set's own scorer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.tasks.gym import Drawing, draw
from killick.tasks.reading import ask, check_gold, check_limit
from killick.tasks.types import Row
from killick.verifiers.reasoning_gym import ReasoningGymVerifier, harmless, pack, scorer, unpack

# Where a data set without one answer keeps an example of a right one.
_EXAMPLES = ("example_correct_answer", "example_answer", "possible_answer")


@dataclass(frozen=True)
class ReasoningGym:
    """Problems of one reasoning-gym data set.

    Attributes:
        dataset: its name, e.g. "spell_backward", "knights_knaves", "sudoku".
        settings: that data set's own settings; `seed` and `size` are set by this task.
        train_num: rows of the training split.
        test_num: rows of the test split.
        seed: other seeds give other problems.
        threshold: score of the data set's scorer from which a completion is right, in (0, 1].
        instruction: follows the problem.
        system: system message, or "" for none (a model's chat template may then add its own).
    """

    dataset: str = "spell_backward"
    settings: Mapping[str, Any] = field(default_factory=dict)
    train_num: int = 128
    test_num: int = 48
    seed: int = 0
    threshold: float = 1.0
    instruction: str = (
        "Reason step by step. Then give the final answer, and nothing else, between <answer> and </answer>."
    )
    system: str = ""

    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Mapping):
            raise ConfigError(f"settings must be a table; found {self.settings!r}.")
        self._drawing()
        ReasoningGymVerifier(threshold=self.threshold)

    def _drawing(self) -> Drawing:
        return Drawing(self.dataset, self.settings, self.train_num, self.test_num, self.seed)

    @property
    def verifier(self) -> ReasoningGymVerifier:
        """The data set's own scorer."""
        return ReasoningGymVerifier(threshold=self.threshold)

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        """Problems of a split, all different, none in both splits.

        Raises:
            ConfigError: unknown split, data set or setting, or a limit below 1.
            DataError: the settings allow too few different problems, or an entry that JSON cannot hold.
        """
        check_limit(limit)
        if split not in self.splits:
            raise ConfigError(f"The task reasoning_gym has no split {split!r}. {nearest(split, self.splits)}")
        scorer(self.dataset, json.dumps(dict(self.settings), sort_keys=True))
        drawn = draw(self._drawing(), split, self._question)[:limit]
        rows = [self._row(entry, question, f"{split}-{number}") for number, (entry, question) in enumerate(drawn)]
        for row in rows:
            check_gold(self.verifier, row)
        return rows

    def _question(self, entry: dict[str, Any]) -> str | None:
        """The question; None leaves out an entry whose own answer the verifier would not pass on to the scorer."""
        answer = entry["answer"]
        usable = not isinstance(answer, str) or harmless(self.dataset, answer.strip())
        return str(entry["question"]) if usable else None

    def _row(self, entry: dict[str, Any], question: str, uid: str) -> Row:
        difficulty = entry["metadata"].get("difficulty")
        return Row(
            uid=uid,
            prompt=ask(question, self.instruction, self.system),
            answer=pack(self.dataset, self.settings, entry),
            source=f"reasoning-gym {self.dataset}",
            meta={"difficulty": str(difficulty)} if difficulty else {},
            problem=question,
        )

    def gold_completion(self, row: Row) -> str:
        """The entry's answer, or the example some data sets keep instead, between the tags.

        Raises:
            DataError: the data set gives neither; its problems can still be trained on and scored.
        """
        entry = unpack(row.answer)[2]
        found = [entry["answer"], *(entry["metadata"].get(key) for key in _EXAMPLES)]
        text = next((value for value in found if value), None)
        if text is None:
            raise DataError(
                f"reasoning-gym's {self.dataset} gives no answer with its problems, only a way to score one."
            )
        return f"<answer>{text if isinstance(text, str) else json.dumps(text)}</answer>"

    def mode(self, completion: str) -> str | None:
        """Unknown: scorers tell how good an answer is, not how it was found."""
        return None
