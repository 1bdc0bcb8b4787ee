"""What multiple-choice tasks share: options shown with letters, shuffled on request; the gold letter follows."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from killick.errors import DataError
from killick.tasks.dataset import DataSetTask, Posed
from killick.tasks.reading import column, gold_of, text_of, uid_of
from killick.tasks.types import Row
from killick.verifiers.choice import LETTERS, ChoiceVerifier, choice_gold


@dataclass(frozen=True)
class ChoiceTask(DataSetTask):
    """Base of a multiple-choice task.

    Attributes:
        shuffle_seed: None shows options as the data has them; a number shuffles each problem's options, in an order
            that depends on that number and the problem's id only.
    """

    shuffle_seed: int | None = None

    wording: ClassVar[str] = r"Reason step by step and put the letter of the right option within \boxed{}."

    @property
    def verifier(self) -> ChoiceVerifier:
        """Letter or text of the option."""
        return ChoiceVerifier()

    def pose(self, record: Mapping[str, Any], where: str) -> Posed:
        """Question and lettered options; the gold carries the options, so that their texts count as answers."""
        return pose_choices(
            text_of(record, "problem", where),
            column(record, "choices", where),
            gold_of(record, "answer", where),
            where,
            None if self.shuffle_seed is None else f"{self.shuffle_seed}/{uid_of(record, 'id', where)}",
        )

    def gold_completion(self, row: Row) -> str:
        """The letter in a box."""
        return f"The answer is \\boxed{{{choice_gold(row.answer).letter}}}."


def pose_choices(problem: str, choices: Any, letter: str, where: str, seed: str | None) -> Posed:
    """A question with its options, shuffled when there is a seed.

    Raises:
        DataError: no list of 2 to 10 texts, or a letter beyond it.
    """
    if not isinstance(choices, list) or not all(isinstance(text, str) and text.strip() for text in choices):
        raise DataError(f"{where}: the options are {choices!r}, not a list of texts.")
    letters = LETTERS[: len(choices)]
    if not 2 <= len(choices) <= len(LETTERS) or len(letter) != 1 or letter not in letters:
        raise DataError(
            f"{where}: the answer {letter!r} must be a letter of its {len(choices)} options; 2 to {len(LETTERS)} are "
            "allowed, A is the first."
        )
    order = list(range(len(choices)))
    if seed is not None:
        random.Random(seed).shuffle(order)
    shown = [choices[index] for index in order]
    gold = LETTERS[order.index(letters.index(letter))]
    text = "\n".join(f"{name}. {option}" for name, option in zip(LETTERS, shown, strict=False))
    extras = {"letter": gold, "choices": shown}
    return Posed(f"{problem}\n\n{text}", ChoiceVerifier.gold(gold, shown), extras)
