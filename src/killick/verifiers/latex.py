r"""Mathematical answers: extraction, normalisation, exact comparison, and math-verify for what is beyond that.

The final answer is taken from the completion (`extract`), both sides are brought to one spelling (`normalise`) and read
as values, lists, intervals and so on (`forms`). Two readable answers are compared here, by exact arithmetic or to as
many digits as it takes (`quick`). Infinite sums, integrals, matrix arithmetic go to math-verify, in a worker with a
bound on time and memory (`service`). What neither can read is `unparsable`; when in doubt the answer is not accepted.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from killick.errors import ConfigError, DataError, VerifierError
from killick.verifiers import service
from killick.verifiers.answers import backend, quick
from killick.verifiers.answers.extract import extract
from killick.verifiers.answers.forms import Named
from killick.verifiers.answers.keys import mathematical_key
from killick.verifiers.answers.limits import TooLarge, Undefined, budget
from killick.verifiers.answers.normalise import normalise
from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.values import same
from killick.verifiers.types import RIGHT, Verdict, wrong

_DECIDE = "killick.verifiers.answers.backend:decide"


@dataclass(frozen=True)
class Ruling:
    """A verdict and the rule behind it; `ask` holds the two texts that only math-verify can compare."""

    verdict: Verdict
    rule: str
    ask: tuple[str, str] | None = None


@dataclass(frozen=True)
class LatexVerifier:
    r"""Mathematical equivalence of the completion's final answer and the gold.

    The answer is the last complete box, else the last answer tag, else what follows "final answer is".

    Attributes:
        fallback: without those, take the line after "####", the whole text when it is nothing but an answer, what
            follows "answer is", the last formula, or else the last number. Off by default: with long proofs the last
            number is often right by accident. GSM8K-like tasks switch it on.
        timeout_s: wall-clock seconds for one comparison in a worker process.
        max_answer_chars: longer answers are `unparsable`.
        max_chars: only the end of a longer completion is read.
    """

    fallback: bool = False
    timeout_s: float = 5.0
    max_answer_chars: int = 400
    max_chars: int = 50_000

    key_needs_gold: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if min(self.timeout_s, self.max_answer_chars, self.max_chars) <= 0:
            raise ConfigError('timeout_s, max_answer_chars and max_chars of the verifier "latex" must be above 0.')
        if importlib.util.find_spec("math_verify") is None:
            raise VerifierError('The verifier "latex" needs the package math-verify, which is not installed.')

    def check_gold(self, answer: str) -> None:
        """Refuse a gold that can never be matched.

        Raises:
            DataError: empty, too long, without any letter or digit, or too large to compute with.
        """
        problem = self._gold_problem(answer)
        if problem:
            raise DataError(
                f"The gold answer {answer[:80]!r} can never be matched: {problem}. Correct or drop the row."
            )

    def _gold_problem(self, answer: str) -> str:
        text = gold_text(answer)
        if not text:
            return "it is empty"
        if len(text) > self.max_answer_chars:
            return f"it has {len(text)} characters, more than max_answer_chars = {self.max_answer_chars}"
        reading = quick.reading(text)
        if reading.form is None:
            says_something = any(c.isalnum() for c in quick.without_commands(reading.text))
            return "" if says_something or "\\infty" in reading.text else "there is nothing in it to compare"
        form = reading.form.form if isinstance(reading.form, Named) else reading.form
        try:
            if isinstance(form, Value):
                with budget():
                    same(form.node, form.node)
        except TooLarge:
            return "it is too large to compute with (towers of powers, factorials)"
        except Undefined as error:
            return f"it has no value ({error})"
        return ""

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion in bounded time.

        Raises:
            DataError: the gold can never be matched (never because of the completion).
        """
        return self.judge_many([completion], [answer])[0]

    def judge_many(self, completions: Sequence[str], answers: Sequence[str]) -> list[Verdict]:
        """Judge many completions, in order; those for math-verify are shared out among the worker processes.

        Raises:
            DataError: as `__call__`.
        """
        rulings = [self.rule(text, answer) for text, answer in zip(completions, answers, strict=True)]
        asked = [place for place, ruling in enumerate(rulings) if ruling.ask]
        verdicts = [ruling.verdict for ruling in rulings]
        if asked:
            outcomes = service.shared().call(_DECIDE, [rulings[place].ask or () for place in asked], self.timeout_s)
            for place, outcome in zip(asked, outcomes, strict=True):
                verdicts[place] = _verdict(outcome)
        return verdicts

    def answer_key(self, completion: str, answer: str) -> str | None:
        """What a completion answers, as a text that is equal for most equal answers; None when it gives no answer."""
        found = extract(completion[-self.max_chars :], self.fallback)
        if found is None or not found.text:
            return None
        return found.text if len(found.text) > self.max_answer_chars else mathematical_key(found.text)

    def rule(self, completion: str, answer: str) -> Ruling:
        """What can be said of a completion in this process.

        Raises:
            DataError: as `__call__`.
        """
        found = extract(completion[-self.max_chars :], self.fallback)
        if found is None or not found.text:
            return Ruling(wrong("no_answer"), "no answer found" if found is None else f"empty answer in: {found.place}")
        if len(found.text) > self.max_answer_chars:
            return Ruling(wrong("unparsable"), "longer than max_answer_chars")
        gold = gold_text(answer)
        ruling = _ruling(gold, found.text) if len(gold) <= self.max_answer_chars else None
        if ruling is None or not ruling.verdict.correct:
            self._check_once(answer)
        assert ruling, "a gold that is too long is refused"
        return ruling

    def _check_once(self, answer: str) -> None:
        if not _gold_is_fine(self, answer):
            self.check_gold(answer)


@lru_cache(maxsize=16_384)
def _gold_is_fine(verifier: LatexVerifier, answer: str) -> bool:
    return not verifier._gold_problem(answer)


@lru_cache(maxsize=16_384)
def gold_text(answer: str) -> str:
    """The answer in a gold: its last box if it has one, else all of it."""
    found = extract(answer)
    return found.text if found and found.place == "last box" and found.text else answer.strip(" $\n\t")


@lru_cache(maxsize=65_536)
def _ruling(gold: str, found: str) -> Ruling:
    """The comparison of two answers, as far as it goes without math-verify."""
    try:
        decision = quick.decide(gold, found)
    except TooLarge as error:
        return Ruling(wrong("unparsable"), f"not computed: {error}")
    except Undefined as error:
        return Ruling(wrong("unparsable"), f"no value: {error}")
    if decision is not None:
        return Ruling(RIGHT if decision.same else wrong(), decision.rule)
    texts = normalise(gold), normalise(found)
    readable = [quick.reading(text).form is not None for text in (gold, found)]
    suited = [backend.is_suited(text) for text in texts]
    if not (readable[1] or suited[1]):
        return Ruling(wrong("unparsable"), "the answer cannot be read")
    if not (readable[0] or suited[0]):
        return Ruling(wrong(), "the gold cannot be read, and the texts differ")
    if not all(backend.is_safe(text) for text in texts):
        return Ruling(wrong(), "not comparable with a sum, an integral or a matrix product")
    return Ruling(wrong(), "math-verify", texts)


def _verdict(outcome: service.Outcome) -> Verdict:
    if outcome.problem:
        return wrong(outcome.problem)
    if outcome.value is None:
        return wrong("unparsable")
    return RIGHT if outcome.value else wrong()
