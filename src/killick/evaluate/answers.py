"""The final answer of each sample as a number, equal for equal answers: what a vote counts.

A verifier that can say what a completion answers offers `answer_key(completion, answer)`: a text, equal for equivalent
answers, or None when there is none. For built-in verifiers without it, this module reads the answer with the verifier's
own extraction. All right samples of a problem share one number, since each equals the gold. Two wrong answers share
one when they read the same once normalised, and numbers when they have the same value; wrong answers that are equal in
another way count as different, which takes votes from the wrong side. Where there are many right answers by nature
(countdown), a vote has no meaning and no reader exists.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Int

from killick.errors import ConfigError
from killick.evaluate.folder import Evaluation
from killick.evaluate.majority import NO_ANSWER, RIGHT_ANSWER
from killick.evaluate.records import Record
from killick.tasks import TASKS
from killick.tasks.types import Task

Reader = Callable[[str, str], str | None]
_LONGEST = 400  # characters of an answer


class AnswerCoder:
    """Collects the answers of one evaluation, record by record (a visitor of `texts.visit`).

    Raises:
        ConfigError: the task is unknown, or its verifier has no notion of a final answer.
        DataError: the problems, whose golds the reader needs, cannot be read.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        spec = evaluation.spec
        task = TASKS.build(spec.task, **spec.task_settings)
        self._reader, needs_gold = _reader(spec.task, task)
        rows = task.rows(spec.split, spec.num_problems) if needs_gold else []
        self._gold = {row.uid: row.answer for row in rows}
        self._seen: list[dict[str, int]] = [{} for _ in evaluation.table.uids]
        self.answer_QN: Int[np.ndarray, "Q N"] = np.full(evaluation.table.correct_QN.shape, NO_ANSWER, dtype=np.int64)

    def __call__(self, q: int, n: int, record: Record) -> None:
        """Note the answer of one record."""
        if record.correct:
            self.answer_QN[q, n] = RIGHT_ANSWER
        elif record.reason != "no_answer":
            key = self._reader(record.text, self._gold.get(record.uid, ""))
            if key is not None:
                self.answer_QN[q, n] = self._seen[q].setdefault(key, len(self._seen[q]) + 1)


def _reader(name: str, task: Task) -> tuple[Reader, bool]:
    """The function that reads an answer, and whether it needs the gold."""
    verifier: Any = task.verifier
    own = getattr(verifier, "answer_key", None)
    if own is not None:
        return own, True
    kind = f"{type(verifier).__module__}:{type(verifier).__qualname__}"
    if kind not in _READERS:
        raise ConfigError(
            f"maj@k: the verifier of the task {name!r} ({type(verifier).__name__}) does not say which answer a "
            "completion gives, so votes cannot be counted. Use pass@k, or give the verifier a method answer_key."
        )
    read = _READERS[kind]
    return lambda completion, answer: read(verifier, completion, answer), kind == _CHOICE


def _number(verifier: Any, completion: str, answer: str) -> str | None:
    found = verifier.extract(completion)
    return None if isinstance(found, str) else str(found)


def _integer(verifier: Any, completion: str, answer: str) -> str | None:
    from killick.verifiers.number import NumberVerifier

    return _number(NumberVerifier(verifier.last_number, max_chars=verifier.max_chars), completion, answer)


def _letter(verifier: Any, completion: str, answer: str) -> str | None:
    from killick.verifiers.choice import choice_gold

    found = verifier.extract(completion, choice_gold(answer).choices)
    return None if found in ("no_answer", "unparsable") else str(found)


def _words(verifier: Any, completion: str, answer: str) -> str | None:
    from killick.verifiers.final import final_answer, plain

    found = final_answer(completion[-verifier.max_chars :])
    return None if found is None else plain(found.text)[:_LONGEST] or None


def _mathematics(verifier: Any, completion: str, answer: str) -> str | None:
    from killick.verifiers.answers.extract import extract

    found = extract(completion[-verifier.max_chars :], verifier.fallback)
    return None if found is None or not found.text else mathematical_key(found.text[:_LONGEST])


@lru_cache(maxsize=65_536)
def mathematical_key(text: str) -> str:
    """A spelling of a mathematical answer: the value of a plain number, else the normalised text without blanks.

    1/2, 0.5 and 50/100 share a key, and so do sqrt(8) and 2 sqrt(2), by their first 15 digits.
    """
    from killick.verifiers.answers import limits, quick, values
    from killick.verifiers.answers.forms import Named, Value

    reading = quick.reading(text)
    spelled = "".join(reading.text.split())
    form = reading.form.form if isinstance(reading.form, Named) else reading.form
    if not isinstance(form, Value) or form.percent or form.unit or values.symbols(form.node):
        return spelled
    try:
        with limits.budget():
            exact = values.exact_value(form.node)
            if exact is not None:
                return str(exact)
            run = values.Evaluation({})
            return str(run.mp.nstr(run.inexact(run.value(form.node)), 15))
    except (limits.TooLarge, limits.Undefined, ValueError):  # ValueError: a whole number too long to print
        return spelled


_CHOICE = "killick.verifiers.choice:ChoiceVerifier"
_READERS: dict[str, Callable[[Any, str, str], str | None]] = {
    "killick.verifiers.number:NumberVerifier": _number,
    "killick.verifiers.integer:IntegerVerifier": _integer,
    "killick.verifiers.latex:LatexVerifier": _mathematics,
    "killick.verifiers.exact:ExactVerifier": _words,
    _CHOICE: _letter,
}
