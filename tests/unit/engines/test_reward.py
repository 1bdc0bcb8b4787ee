"""Rewards of a verifier: the values, the recorded shares of the reasons, crashes and unreadable golds."""

import pytest

from killick.engines.trl.reward import VerifierReward
from killick.errors import DataError
from killick.verifiers.number import NumberVerifier
from killick.verifiers.types import Verdict


class CrashesOnLongTexts(NumberVerifier):
    def __call__(self, completion: str, answer: str) -> Verdict:
        if len(completion) > 10:
            raise ZeroDivisionError
        return super().__call__(completion, answer)


def test_rewards_follow_the_rows_and_reasons_are_recorded() -> None:
    logged: dict[str, float] = {}
    messages = [{"role": "assistant", "content": "#### 18"}]
    texts = ["18", "17", messages, "none", []]
    rewards = VerifierReward(NumberVerifier())(texts, ["18"] * 5, log_metric=logged.__setitem__)
    assert rewards == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert logged == {
        "verify/wrong_frac": 0.2,
        "verify/no_answer_frac": 0.4,
        "verify/unparsable_frac": 0.0,
        "verify/timeout_frac": 0.0,
        "verify/error_frac": 0.0,
    }


def test_a_crash_of_the_verifier_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    logged: dict[str, float] = {}
    rewards = VerifierReward(CrashesOnLongTexts())(["18", "it must be 18"], ["18", "18"], logged.__setitem__)
    assert rewards == [1.0, 0.0]
    assert logged["verify/error_frac"] == 0.5
    assert "ZeroDivisionError" in caplog.text


def test_an_unreadable_gold_stops_training() -> None:
    with pytest.raises(DataError, match="not a plain number"):
        VerifierReward(NumberVerifier())(["18"], ["eighteen"])


def test_without_a_log_and_without_rows() -> None:
    assert VerifierReward(NumberVerifier())(["18"], ["18"]) == [1.0]
    assert VerifierReward(NumberVerifier())([], [], log_metric=lambda name, value: None) == []


def test_messages_without_text_are_empty_answers() -> None:
    odd = [[{"role": "assistant", "tool_calls": []}], [{"role": "assistant", "content": None}], ["text"], None, {}]
    logged: dict[str, float] = {}
    assert VerifierReward(NumberVerifier())(odd, ["18"] * 5, logged.__setitem__) == [0.0] * 5
    assert logged["verify/no_answer_frac"] == 1.0
