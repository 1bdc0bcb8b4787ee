"""A user's function as the judge: what it may return, how it may fail, and when it cannot be loaded."""

import sys
import time

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.python_function import PythonFunctionVerifier
from killick.verifiers.types import Verdict, wrong

SOURCE = """
from killick.verifiers.types import Verdict

VALUE = 3

def judge(completion, gold):
    results = {"yes": True, "no": False, "one": 1, "half": 0.5, "more": 1.5, "nan": float("nan"), "none": None,
               "text": "1.0", "list": [1.0], "verdict": Verdict(False, "no_answer")}
    if completion == "crash":
        raise RuntimeError("odd text")
    if completion == "loop":
        while True:
            pass
    if completion == "gold":
        return completion == gold
    return results[completion]

def key(completion, gold):
    if completion == "crash":
        raise RuntimeError("odd text")
    return {"five": gold + "5", "none": None, "number": 5}[completion]

class Judges:
    @staticmethod
    def always(completion, gold):
        return True
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder, name = tmp_path_factory.mktemp("judges"), "judges_of_the_test"
    (folder / f"{name}.py").write_text(SOURCE)
    (folder / f"{name}_broken.py").write_text("1 / 0")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("yes", "right"),
        ("one", "right"),
        ("more", "right"),
        ("gold", "right"),
        ("no", "wrong"),
        ("half", "wrong"),
        ("verdict", "no_answer"),
        ("nan", "error"),
        ("none", "error"),
        ("text", "error"),
        ("list", "error"),
        ("crash", "error"),
        ("unknown key", "error"),
    ],
)
def test_what_a_function_may_return(module: str, completion: str, reason: str) -> None:
    verdict = PythonFunctionVerifier(f"{module}:judge")(completion, "gold")
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


def test_threshold_and_nested_names(module: str) -> None:
    assert PythonFunctionVerifier(f"{module}:judge", threshold=0.5)("half", "x").correct
    assert PythonFunctionVerifier(f"{module}:Judges.always")("", "x").correct


def test_an_endless_function_is_stopped(module: str) -> None:
    start = time.perf_counter()
    assert PythonFunctionVerifier(f"{module}:judge", timeout_s=0.3)("loop", "x") == wrong("timeout")
    assert time.perf_counter() - start < 60  # the start of a process on a loaded machine included


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "is not"),
        ("judges", "is not"),
        (":judge", "is not"),
        ("no_such_module_xyz:judge", "No module named"),
        ("{module}:no_such", "no attribute"),
        ("{module}_broken:judge", "ZeroDivisionError"),
        ("{module}:VALUE", "is a int, not a function"),
    ],
)
def test_what_cannot_be_loaded_stops_at_the_start(module: str, path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PythonFunctionVerifier(path.format(module=module))


def test_keys(module: str) -> None:
    own = PythonFunctionVerifier(f"{module}:judge", key_function=f"{module}:key")
    assert [own.answer_key(text, "=") for text in ("five", "none", "number", "crash")] == ["=5", None, None, None]
    default = PythonFunctionVerifier(f"{module}:judge")
    texts = ["so \\boxed{Red}", "The answer is red.", "blue  sky", "blue\nsky", " "]
    assert [default.answer_key(text, "") for text in texts] == ["red", "red", "blue sky", "blue sky", None]
    with pytest.raises(ConfigError, match="no attribute"):
        PythonFunctionVerifier(f"{module}:judge", key_function=f"{module}:no_such")


def test_defaults_compare_texts() -> None:
    verifier = PythonFunctionVerifier()
    assert verifier("a", "a") == Verdict(True, "right")
    assert verifier("a", "b") == wrong()
    with pytest.raises(DataError, match="blank"):
        verifier.check_gold(" ")
    with pytest.raises(ConfigError, match="timeout_s"):
        PythonFunctionVerifier(timeout_s=0)
