"""Every registered verifier keeps the protocol on hostile completions: a verdict, quickly, and never "right"."""

import dataclasses
import threading
import time

import pytest

from killick.errors import DataError
from killick.tasks import TASKS
from killick.verifiers import VERIFIERS
from killick.verifiers.types import Verdict

REASONS = {"right", "wrong", "no_answer", "unparsable", "timeout", "error"}
HOSTILE = {
    "empty": "",
    "blank": " \n\t ",
    "null bytes": "\x00" * 1000,
    "lone surrogates": "\ud800\udfff" * 100,
    "zero width": "\u200b\u200d\ufeff" * 100,
    "right to left": "\u202e 5 = x",
    "open brackets": "(" * 1_000_000,
    "nested boxes": "\\boxed{" * 20_000 + "1" + "}" * 20_000,
    "tower": "9**9**9**9",
    "tower in a box": "\\boxed{9^{9^{9^{9}}}}",
    "huge number": "1" * 1_000_000,
    "huge exponent": "\\boxed{1e999999999}",
    "factorial": "\\boxed{999999999!}",
    "division by zero": "\\boxed{1/0} 1/0=0;",
    "code": "__import__('os').system('true')",
    "format string": "{0.__class__} %s %n",
    "file inclusion": "\\boxed{\\input{/etc/passwd}}",
    "megabyte of text": "word 7 " * 150_000,
    "semicolons": "1+1=2;" * 100_000,
}
# A gold each verifier can read; a new verifier is found here by its failing look-up, with a task as the other source.
GOLDS = {
    "number": "123456789",
    "latex": "\\frac{123456789}{7}",
    "integer": "731",
    "exact": "photosynthesis",
    "choice": '{"letter": "C", "choices": ["one", "two", "three", "four"]}',
    "knights": "Zoey is a knight, Oliver is a knave",
    "python_function": "photosynthesis",
}


def gold(name: str) -> str:
    if name in GOLDS:
        return GOLDS[name]
    if name in TASKS.names():
        task = TASKS.build(name)
        return task.rows(task.splits[0], 1)[0].answer
    pytest.fail(f"the verifier {name} has no sample gold: add one to GOLDS")


@pytest.fixture(params=VERIFIERS.names())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_it_is_a_frozen_dataclass_with_defaults(name: str) -> None:
    verifier = VERIFIERS.build(name)
    assert dataclasses.is_dataclass(verifier)
    assert type(verifier).__dataclass_params__.frozen
    verifier.check_gold(gold(name))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_completions_get_a_verdict_in_bounded_time(name: str, text: str) -> None:
    verifier, answer = VERIFIERS.build(name), gold(name)
    start = time.perf_counter()
    verdict = verifier(text, answer)
    assert time.perf_counter() - start < 10.0
    assert isinstance(verdict, Verdict)
    assert verdict.reason in REASONS - {"right"}
    assert verdict.correct is False


def test_a_gold_that_cannot_be_read_is_refused(name: str) -> None:
    for answer in ("", "   "):
        with pytest.raises(DataError):
            VERIFIERS.build(name).check_gold(answer)


def test_it_works_off_the_main_thread(name: str) -> None:
    verifier, answer, verdicts = VERIFIERS.build(name), gold(name), []
    texts = ["", "x+1", "\\boxed{x+1}", "5"]
    threads = [threading.Thread(target=lambda: verdicts.extend(verifier(t, answer) for t in texts)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(verdicts) == 3 * len(texts)
    assert all(verdict.reason not in ("error", "right") for verdict in verdicts)
