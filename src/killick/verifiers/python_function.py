"""One's own Python function as the judge, by import path."""

import functools
import importlib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from killick.errors import ConfigError, DataError
from killick.verifiers.exact import final_text
from killick.verifiers.final import ending
from killick.verifiers.service import Outcome, Service
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import RIGHT, Verdict, wrong

_CALL = "killick.verifiers.python_function:call"
_CALL_KEY = "killick.verifiers.python_function:call_key"
_log = logging.getLogger(__name__)


@functools.lru_cache(maxsize=64)
def load_function(path: str) -> Callable[[str, str], Any]:
    """The function behind "package.module:function".

    Raises:
        ConfigError: another form, a module that cannot be imported, or no such function in it.
    """
    module, colon, name = path.partition(":")
    if not (colon and module and name):
        raise ConfigError(f'function = {path!r} is not "package.module:function".')
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except Exception as error:  # importing runs the module, which may fail in any way
        raise ConfigError(
            f"The function {path!r} cannot be imported ({type(error).__name__}: {error}). Install its package or put "
            "its folder on PYTHONPATH."
        ) from error
    if not callable(target):
        raise ConfigError(f"{path!r} is a {type(target).__name__}, not a function.")
    function: Callable[[str, str], Any] = target
    return function


@dataclass(frozen=True)
class PythonFunctionVerifier:
    """Calls `function(completion, gold)`, which returns True or False, a number, or a `Verdict`.

    It runs in worker processes that are ended when they exceed time or memory, so it must not rely on the state of
    this process; equal calls are made once. An exception, or a result that is none of these, is logged and counted as
    reason "error". The function sees hostile text: what it runs, it runs with your rights.

    Attributes:
        function: "package.module:function"; the default compares texts.
        threshold: a number from here on is right.
        timeout_s: seconds for one call.
        key_function: "package.module:function" for maj@k: called alike, it returns what the completion answers as a
            text, equal for equal answers, or None. Without one, that is the final answer as `exact` reads it, else the
            whole completion, so that a wrong completion in an unexpected form does not lose its vote.
    """

    function: str = "operator:eq"
    threshold: float = 1.0
    timeout_s: float = 5.0
    key_function: str = ""

    key_needs_gold: ClassVar[bool] = True  # the function may

    def __post_init__(self) -> None:
        load_function(self.function)
        if self.key_function:
            load_function(self.key_function)
        if self.timeout_s <= 0:
            raise ConfigError(f"timeout_s = {self.timeout_s} must be above 0.")

    def check_gold(self, answer: str) -> None:
        """Refuse an empty gold; what else a gold must be, only the function knows.

        Raises:
            DataError: it is blank.
        """
        if not answer.strip():
            raise DataError(f"The gold answer {answer!r} is blank. Correct or drop the row.")

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion in bounded time."""
        return self.judge_many([completion], [answer])[0]

    def judge_many(self, completions: Sequence[str], answers: Sequence[str]) -> list[Verdict]:
        """Judge many completions, in order, shared out among the worker processes."""
        calls = [(self.function, text, gold) for text, gold in zip(completions, answers, strict=True)]
        return [self._verdict(outcome) for outcome in _service(self.function).call(_CALL, calls, self.timeout_s)]

    def answer_key(self, completion: str, answer: str) -> str | None:
        """What a completion answers, as a text that is equal for equal answers; None when it gives no answer."""
        if not self.key_function:
            text = ending(completion, SingleAnswer.max_chars)
            return final_text(text) or " ".join(text.split()) or None
        call = (self.key_function, completion, answer)
        outcome = _service(self.key_function).call(_CALL_KEY, [call], self.timeout_s)[0]
        if outcome.problem:
            _log.warning("%s failed on a completion: %s. It does not vote.", self.key_function, outcome.detail)
        key: str | None = outcome.value
        return key

    def _verdict(self, outcome: Outcome) -> Verdict:
        if outcome.problem == "timeout":
            return wrong("timeout")
        if outcome.problem:
            _log.warning("%s failed on a completion: %s. Counted as error.", self.function, outcome.detail)
            return wrong("error")
        if isinstance(outcome.value, str):
            return RIGHT if outcome.value == "right" else wrong(outcome.value)  # type: ignore[arg-type]
        return RIGHT if outcome.value >= self.threshold else wrong()


def call(path: str, completion: str, answer: str) -> float | str:
    """What a function gives for a completion, as a number or as the reason of its verdict. Runs in a worker process.

    Raises:
        TypeError: the function returned neither True, False, a number nor a Verdict.
    """
    result = load_function(path)(completion, answer)
    if isinstance(result, Verdict):
        return result.reason
    try:
        score = math.nan if isinstance(result, str) else float(result)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if math.isnan(score):
        raise TypeError(f"it returned {result!r:.80}; expected are True, False, a number or a Verdict")
    return score


def call_key(path: str, completion: str, answer: str) -> str | None:
    """What a function says a completion answers. Runs in a worker process.

    Raises:
        TypeError: the function returned neither a text nor None.
    """
    key = load_function(path)(completion, answer)
    if key is None or isinstance(key, str):
        return key
    raise TypeError(f"it returned {key!r:.80}; expected is a text, or None for no answer")


@functools.lru_cache(maxsize=16)
def _service(function: str) -> Service:
    """One pool of processes for a function: what one function does to its process cannot harm another."""
    return Service()
