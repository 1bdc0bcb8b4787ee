"""Any data set of reasoning-gym, judged by its own scorer.

A row's gold is JSON with the data set's name, its settings and the whole entry (see `pack`), because most scorers need
more than an answer. The completion's answer is its last box, else its last answer tag.

Some scorers evaluate the answer as Python (`eval`, or sympy's `parse_expr`, which does the same). They are only given
answers in which there is nothing to run: see `harmless`. Data sets whose scorer accepts what is wrong are refused.
"""

import ast
import functools
import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from killick.errors import ConfigError, DataError
from killick.registry import nearest
from killick.verifiers.final import BOX, TAG, ending, find
from killick.verifiers.service import Outcome, Service
from killick.verifiers.types import RIGHT, Verdict, wrong

_SCORE = "killick.verifiers.reasoning_gym:score"
_log = logging.getLogger(__name__)
# Scorers of reasoning-gym 0.1.25 that evaluate the answer, and how; a test looks for others in the installed version.
LITERAL = frozenset(("binary_matrix", "n_queens", "spiral_matrix", "string_insertion"))
ARITHMETIC = frozenset(("countdown",))
ALGEBRA = frozenset(("intermediate_integration", "polynomial_multiplication", "simple_integration"))

UNSOUND = {
    "game_of_life_halting": "its scorer accepts every answer that is not empty",
    "puzzle24": "its scorer does not compare the numbers used with those given, so one expression is always right",
}

# Data sets whose scorer takes several answers for right: moves, paths, puzzles with many solutions ("composite": it
# depends on the entry). A test looks for others in the installed version.
MANY_RIGHT = frozenset(
    (
        "boxnet", "composite", "countdown", "cryptarithm", "graph_color", "jugs", "kakurasu", "knight_swap", "n_queens",
        "palindrome_generation", "propositional_logic", "quantum_lock", "rubiks_cube", "rush_hour", "shortest_path",
        "sokoban", "tower_of_hanoi", "word_ladder",
    )
)  # fmt: skip

_NO_CODE = re.compile(r"[\w\s,-]*")
_ARITHMETIC = re.compile(r"(?:[0-9\s()+-]|(?<!\*)\*(?!\*)|(?<!/)/(?!/)|(?<=[0-9])\.(?=[0-9]))*")
_ALGEBRA = re.compile(
    r"(?:[0-9\s()+*-]|(?<!/)/(?!/)|(?<=[0-9])\.(?=[0-9])|\b(?:exp|log|ln|sin|cos|tan|sqrt|asin|acos|atan|[A-Za-z](?![\s(]*\())\b)*"
)
_POWER = re.compile(
    r"(\)?)\s?\*\*\s?(?:-?([0-9]{1,4})|\(\s?-?([0-9]{1,4})(?:\s?/\s?[0-9]{1,4})?\s?\))(?![0-9.])(?!\s?\*\*)"
)
_LARGEST_POWER = 1000  # of a number or name
_LARGEST_OUTER = 100  # product of the powers of brackets, which may hold powers themselves
_LONGEST_NUMBER = re.compile(r"[0-9]{30}")


def pack(name: str, settings: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """The gold of a row, as JSON; tuples and tables with other keys than texts survive the way back.

    Raises:
        DataError: the entry holds something JSON has no form for.
    """
    try:
        return json.dumps({"dataset": name, "settings": dict(settings), "entry": _to_json(entry)}, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"A problem of reasoning-gym's {name} cannot be kept as JSON: {error}.") from error


@functools.lru_cache(maxsize=1024)
def unpack(answer: str) -> tuple[str, str, dict[str, Any]]:
    """Data set, its settings as JSON, and the entry of a packed gold. Do not change the entry: it is shared.

    Raises:
        DataError: not such a text.
    """
    try:
        data = json.loads(answer)
        name, settings, entry = data["dataset"], data["settings"], _from_json(data["entry"])
        if not (isinstance(name, str) and isinstance(settings, dict) and isinstance(entry, dict)):
            raise TypeError("dataset must be a text, settings and entry objects")
        return name, json.dumps(settings, sort_keys=True), entry
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"The gold {answer[:80]!r} is not JSON with dataset, settings and entry ({error}). The task reasoning_gym "
            "writes such golds."
        ) from error


@functools.lru_cache(maxsize=64)
def scorer(name: str, settings: str) -> Callable[[str, dict[str, Any]], float]:
    """The scoring function of a data set with these settings (JSON).

    Raises:
        ConfigError: no such data set, settings it refuses, or a scorer that cannot be trusted.
    """
    from reasoning_gym.factory import DATASETS, create_dataset

    if name not in DATASETS:
        raise ConfigError(f"reasoning-gym has no data set {name!r}. {nearest(name, DATASETS)}")
    if name in UNSOUND:
        raise ConfigError(f"reasoning-gym's {name} cannot be used: {UNSOUND[name]}. Choose another data set.")
    try:
        score: Callable[[str, dict[str, Any]], float] = create_dataset(
            name, seed=0, size=1, **json.loads(settings)
        ).score_answer
    except Exception as error:  # each data set checks its settings in its own way
        raise ConfigError(f"reasoning-gym's {name} refuses the settings {settings}: {error}") from error
    return score


@dataclass(frozen=True)
class ReasoningGymVerifier:
    """Right when the data set's own scorer gives at least `threshold`.

    Attributes:
        threshold: in (0, 1]; scorers give 1 for a right answer and parts of it for well-formed or partly right ones.
        timeout_s: seconds for one scoring, in a worker process that is ended when it exceeds them.
        max_answer_chars: longer answers are `unparsable`.
        max_chars: only the end of a longer completion is read.
    """

    threshold: float = 1.0
    timeout_s: float = 5.0
    max_answer_chars: int = 10_000
    max_chars: int = 50_000

    key_needs_gold: ClassVar[bool] = True  # it names the data set

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise ConfigError(f"threshold = {self.threshold}: allowed is above 0, at most 1.")
        if min(self.timeout_s, self.max_answer_chars, self.max_chars) <= 0:
            raise ConfigError("timeout_s, max_answer_chars and max_chars must be above 0.")

    def check_gold(self, answer: str) -> None:
        """Refuse a gold that is not a packed entry of a known data set.

        Raises:
            DataError: it is not.
        """
        name, settings, _ = unpack(answer)
        try:
            scorer(name, settings)
        except ConfigError as error:
            raise DataError(str(error)) from error

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion in bounded time.

        Raises:
            DataError: the gold is unreadable (never because of the completion).
        """
        return self.judge_many([completion], [answer])[0]

    def judge_many(self, completions: Sequence[str], answers: Sequence[str]) -> list[Verdict]:
        """Judge many completions, in order, shared out among the worker processes.

        Raises:
            DataError: as `__call__`.
        """
        texts = [self._answer(text, gold) for text, gold in zip(completions, answers, strict=True)]
        calls = [(gold, text) for text, gold in zip(texts, answers, strict=True) if isinstance(text, str)]
        outcomes = iter(_service().call(_SCORE, calls, self.timeout_s) if calls else ())
        return [self._verdict(next(outcomes)) if isinstance(text, str) else text for text in texts]

    def answer_key(self, completion: str, answer: str) -> str | None:
        """What a completion answers, without regard to case and blanks; None when it gives no answer.

        Raises:
            ConfigError: several answers can be right, so that right completions need not agree.
        """
        name = unpack(answer)[0]
        if name in MANY_RIGHT or self.threshold < 1.0:
            cause = "has problems with several right answers" if name in MANY_RIGHT else "takes answers that are near"
            raise ConfigError(
                f"maj@k: reasoning-gym's {name} with threshold = {self.threshold} {cause}, so votes cannot be counted. "
                "Use pass@k."
            )
        text = self._answer(completion, answer)
        return None if isinstance(text, Verdict) else " ".join(text.split()).casefold()

    def _answer(self, completion: str, answer: str) -> str | Verdict:
        """What is scored, or the verdict on a completion that is not scored."""
        self.check_gold(answer)
        place = find(ending(completion, self.max_chars), BOX, TAG)
        text = place.text.strip() if place else ""
        if not text:
            return wrong("no_answer")
        usable = len(text) <= self.max_answer_chars and harmless(unpack(answer)[0], text)
        return text if usable else wrong("unparsable")

    def _verdict(self, outcome: Outcome) -> Verdict:
        if outcome.problem == "timeout":
            return wrong("timeout")
        if outcome.problem:  # a scorer that trips over an odd answer
            _log.debug("A scorer of reasoning-gym failed: %s", outcome.detail)
            return wrong("error")
        return RIGHT if outcome.value >= self.threshold else wrong()


def score(answer: str, text: str) -> float:
    """The score of an answer under a packed gold; NaN is 0. Runs in a worker process."""
    name, settings, entry = unpack(answer)
    value = float(scorer(name, settings)(text, entry))
    return value if math.isfinite(value) else 0.0


def warm_up() -> None:
    """Load reasoning-gym before the first call, whose time is limited."""
    import reasoning_gym  # noqa: F401


@functools.lru_cache(maxsize=1)
def _service() -> Service:
    return Service(warm_up=["killick.verifiers.reasoning_gym:warm_up"])


def harmless(name: str, text: str) -> bool:
    """Whether a scorer that evaluates its answer may see this one: no call, no name, no power that costs."""
    if name in LITERAL:
        if _NO_CODE.fullmatch(text):
            return True
        try:
            ast.literal_eval(text)
        except Exception:  # any failure means that it is not a plain literal
            return False
        return True
    if name in ARITHMETIC:
        return bool(_ARITHMETIC.fullmatch(text)) and not _LONGEST_NUMBER.search(text)
    if name in ALGEBRA:
        powers = [(bracket, max(int(one or two), 1)) for bracket, one, two in _POWER.findall(text)]
        outer = math.prod(power for bracket, power in powers if bracket)
        costly = outer > _LARGEST_OUTER or any(power > _LARGEST_POWER for _, power in powers)
        plain = bool(_ALGEBRA.fullmatch(text)) and "**" not in _POWER.sub(" ", text)
        return plain and not costly and not _LONGEST_NUMBER.search(text)
    return True


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"!": "tuple", "of": [_to_json(entry) for entry in value]}
    if isinstance(value, Fraction):
        return {"!": "fraction", "of": str(value)}
    if isinstance(value, list):
        return [_to_json(entry) for entry in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value) and "!" not in value:
            return {key: _to_json(entry) for key, entry in value.items()}
        return {"!": "dict", "of": [[_to_json(key), _to_json(entry)] for key, entry in value.items()]}
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("!")
    if kind == "tuple":
        return tuple(_from_json(entry) for entry in value["of"])
    if kind == "fraction":
        return Fraction(value["of"])
    if kind == "dict":
        return {_from_json(key): _from_json(entry) for key, entry in value["of"]}
    return {key: _from_json(entry) for key, entry in value.items()}
