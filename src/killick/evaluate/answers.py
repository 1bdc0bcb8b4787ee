"""The final answer of each sample as a number, equal for equal answers: what a vote counts.

A verifier that can say what a completion answers has a method `answer_key(completion, answer)`: a text, equal for
equivalent answers, or None when there is none. All right samples of a problem share one number, since each equals the
gold. Two wrong answers share one when their keys are equal; wrong answers that are equal in a way the keys do not show
count as different, which takes votes from the wrong side. Where there are many right answers by nature (countdown), a
vote has no meaning and no verifier has keys.
"""

import hashlib
from typing import Any

import numpy as np
from jaxtyping import Int

from killick.errors import ConfigError
from killick.evaluate.folder import Evaluation
from killick.evaluate.majority import NO_ANSWER, RIGHT_ANSWER
from killick.evaluate.records import Record
from killick.tasks import TASKS

_LONGEST = 64  # characters of a key that is kept as it is


class AnswerCoder:
    """Collects the answers of one evaluation, record by record (a visitor of `texts.visit`).

    Raises:
        ConfigError: the task is unknown, or its problems have no single right answer to vote for.
        DataError: the problems, whose golds the verifier needs for its keys, cannot be read.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        spec = evaluation.spec
        task = TASKS.build(spec.task, **spec.task_settings)
        verifier: Any = task.verifier
        if not hasattr(verifier, "answer_key"):
            raise ConfigError(
                f"maj@k: the verifier of the task {spec.task!r} ({type(verifier).__name__}) does not say which answer "
                "a completion gives, so votes cannot be counted. Use pass@k, or give the verifier a method answer_key."
            )
        self._key = verifier.answer_key
        needs_gold = getattr(verifier, "key_needs_gold", True)
        self._gold = {row.uid: row.answer for row in task.rows(spec.split, spec.num_problems)} if needs_gold else {}
        for gold in list(self._gold.values())[:1]:
            self._key("", gold)  # a verifier that has no keys for these problems says so before anything is counted
        self._seen: list[dict[str, int]] = [{} for _ in evaluation.table.uids]
        self.answer_QN: Int[np.ndarray, "Q N"] = np.full(evaluation.table.correct_QN.shape, NO_ANSWER, dtype=np.int64)

    def __call__(self, q: int, n: int, record: Record) -> None:
        """Note the answer of one record."""
        if record.correct:
            self.answer_QN[q, n] = RIGHT_ANSWER
        elif record.reason != "no_answer":
            key = self._key(record.text, self._gold.get(record.uid, ""))
            if key is not None:
                self.answer_QN[q, n] = self._seen[q].setdefault(_short(key), len(self._seen[q]) + 1)


def _short(key: str) -> str:
    return key if len(key) <= _LONGEST else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
