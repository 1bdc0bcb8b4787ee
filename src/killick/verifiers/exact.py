r"""Answers that are a word or a short text: the final answer must read the same as the gold.

The final answer is the last box, else the last answer tag, else what follows the last "answer is" on its line. Case,
blanks, bold print, dollars, `\text{}` and a closing full stop do not count.
"""

from dataclasses import dataclass

from killick.errors import DataError
from killick.verifiers.final import ANSWER, BOX, TAG, find, plain
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import Verdict, wrong


def final_text(text: str) -> str | None:
    """The final answer of a `clean` text for comparison; None when there is none or it says nothing."""
    found = find(text, BOX, TAG, ANSWER)
    return None if found is None else plain(found.line) or None


@dataclass(frozen=True)
class ExactVerifier(SingleAnswer[str]):
    """Compares the completion's final answer with the gold as text."""

    def wanted(self, answer: str) -> str:
        """The gold for comparison.

        Raises:
            DataError: nothing is left of it once blanks and marks are gone.
        """
        text = plain(answer)
        if not text:
            raise DataError(f"The gold answer {answer[:80]!r} holds no text to compare with. Correct or drop the row.")
        return text

    def found(self, text: str, answer: str) -> str | Verdict:
        """The final answer for comparison."""
        return final_text(text) or wrong("no_answer")
