"""A task's verifier as a TRL reward function: 1 right, 0 wrong, with the share of each reason recorded."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, get_args

from killick.verifiers.judge import judge_all
from killick.verifiers.types import Reason, Verifier

REASONS: tuple[Reason, ...] = get_args(Reason)


class VerifierReward:
    """Callable of TRL's reward protocol; needs the column `answer`.

    Args:
        verifier: judge of one completion against its gold.
    """

    __name__ = "correct"

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def __call__(
        self,
        completions: list[Any],
        answer: list[str],
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float]:
        """Rewards of the rows, in order; a crash of the verifier is 0, counted in `verify/error_frac`.

        Raises:
            DataError: a gold is unreadable.
        """
        verdicts = judge_all(self._verifier, [_text(c) for c in completions], answer)
        if log_metric is not None and verdicts:
            counts = Counter(verdict.reason for verdict in verdicts)
            for reason in REASONS[1:]:
                log_metric(f"verify/{reason}_frac", counts[reason] / len(verdicts))
        return [float(verdict.correct) for verdict in verdicts]


def _text(completion: Any) -> str:
    """TRL hands over a string, or messages when the prompt is conversational; a message may lack its text."""
    if isinstance(completion, str):
        return completion
    last = completion[-1] if isinstance(completion, list | tuple) and completion else None
    content = last.get("content") if isinstance(last, Mapping) else ""
    return content if isinstance(content, str) else ""
