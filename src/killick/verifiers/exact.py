r"""Answers that are a word or a short text: the final answer must read the same as the gold.

The final answer is the last complete `<answer>…</answer>`, else the last `\boxed{…}`, else what follows the last
"answer is" or "answer:" on its line. Case, blanks, bold print, dollars, `\text{}` and a closing full stop do not count.
"""

from dataclasses import dataclass

from killick.errors import ConfigError, DataError
from killick.verifiers.final import final_answer, plain
from killick.verifiers.types import RIGHT, Verdict, wrong


@dataclass(frozen=True)
class ExactVerifier:
    """Compares the completion's final answer with the gold as text.

    Attributes:
        max_chars: only the end of a longer completion is read.
    """

    max_chars: int = 20_000

    def __post_init__(self) -> None:
        if self.max_chars < 1:
            raise ConfigError(f"max_chars = {self.max_chars} must be at least 1.")

    def check_gold(self, answer: str) -> None:
        """Refuse a gold without text.

        Raises:
            DataError: nothing is left of it once blanks and marks are gone.
        """
        if not plain(answer):
            raise DataError(f"The gold answer {answer[:80]!r} holds no text to compare with. Correct or drop the row.")

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion; the time is linear in its length.

        Raises:
            DataError: the gold is empty.
        """
        self.check_gold(answer)
        found = final_answer(completion[-self.max_chars :])
        if found is None or not plain(found.text):
            return wrong("no_answer")
        return RIGHT if plain(found.text) == plain(answer) else wrong()
