"""What the shared call of a verifier does with verdicts, crashes and unreadable golds."""

import pytest

from killick.errors import DataError, VerifierError
from killick.verifiers.judge import judge
from killick.verifiers.number import NumberVerifier
from killick.verifiers.types import Verdict


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def check_gold(self, answer: str) -> None:
        pass

    def __call__(self, completion: str, answer: str) -> Verdict:
        raise self.error


def test_a_verdict_is_passed_on() -> None:
    assert judge(NumberVerifier(), "18", "18").reason == "right"
    assert judge(NumberVerifier(), "17", "18").reason == "wrong"


@pytest.mark.parametrize("error", [ZeroDivisionError("deep inside"), ValueError("x"), RecursionError()])
def test_a_crash_is_logged_and_counted(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    verdict = judge(Raising(error), "some text", "18")
    assert (verdict.correct, verdict.reason) == (False, "error")
    assert type(error).__name__ in caplog.text
    assert "Raising crashed on a completion of 9 characters (gold '18')" in caplog.text


@pytest.mark.parametrize("error", [DataError("bad gold"), VerifierError("no package"), KeyboardInterrupt()])
def test_what_is_no_fault_of_the_completion_stops_the_work(error: BaseException) -> None:
    with pytest.raises(type(error)):
        judge(Raising(error), "some text", "18")


def test_an_unreadable_gold_of_a_real_verifier_stops_the_work() -> None:
    with pytest.raises(DataError, match="not a plain number"):
        judge(NumberVerifier(), "18", "eighteen")


def test_a_completion_that_is_no_text_is_an_error_of_its_own_row(caplog: pytest.LogCaptureFixture) -> None:
    assert judge(NumberVerifier(), None, "18").reason == "error"  # type: ignore[arg-type]
    assert "NumberVerifier crashed on a completion of type NoneType" in caplog.text
