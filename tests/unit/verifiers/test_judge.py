"""What the shared call of a verifier does with verdicts, crashes and unreadable golds."""

import pytest

from killick.errors import DataError, VerifierError
from killick.verifiers.judge import judge, judge_all
from killick.verifiers.latex import LatexVerifier
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


class CrashesOnLong(NumberVerifier):
    """Judges one by one; `judge_many` of a batch with a guilty completion fails as a whole."""

    def __call__(self, completion: str, answer: str) -> Verdict:
        if len(completion) > 10:
            raise ZeroDivisionError
        return super().__call__(completion, answer)

    def judge_many(self, completions: list[str], answers: list[str]) -> list[Verdict]:
        return [self(completion, answer) for completion, answer in zip(completions, answers, strict=True)]


@pytest.mark.parametrize("verifier", [NumberVerifier(), LatexVerifier(fallback=True)])
def test_many_verdicts_are_those_of_one_by_one(verifier: NumberVerifier | LatexVerifier) -> None:
    texts, golds = ["18", "17", "", "so it is 18", "0.5"], ["18", "18", "18", "18", "1/2"]
    verdicts = judge_all(verifier, texts, golds)
    assert verdicts == [judge(verifier, text, gold) for text, gold in zip(texts, golds, strict=True)]
    assert [verdict.reason for verdict in verdicts] == ["right", "wrong", "no_answer", "right", "right"]


def test_of_many_only_the_guilty_one_is_an_error() -> None:
    verdicts = judge_all(CrashesOnLong(), ["18", "so it must be 18", "17"], ["18"] * 3)
    assert [verdict.reason for verdict in verdicts] == ["right", "error", "wrong"]


def test_many_with_something_that_is_no_text() -> None:
    verdicts = judge_all(LatexVerifier(fallback=True), ["18", None], ["18", "18"])  # type: ignore[list-item]
    assert [verdict.reason for verdict in verdicts] == ["right", "error"]


def test_many_stop_at_an_unreadable_gold_and_refuse_unequal_lengths() -> None:
    with pytest.raises(DataError, match="never be matched"):
        judge_all(LatexVerifier(), [r"\boxed{1}", r"\boxed{1}"], ["1", ""])
    with pytest.raises(ValueError, match="zip"):
        judge_all(LatexVerifier(), ["1"], [])
    assert judge_all(LatexVerifier(), [], []) == []
