"""Whole numbers in a range: a table of (text, gold, reason)."""

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.integer import IntegerVerifier

CASES = [
    (r"\boxed{73}", "73", "right"),
    (r"\boxed{073}", "73", "right"),
    (r"\boxed{73}", "073", "right"),
    (r"\boxed{0}", "000", "right"),
    (r"\boxed{m+n = 73}", "73", "right"),
    (r"\boxed{73^\circ}", "73", "right"),
    (r"\boxed{73^{\circ}}", "73", "right"),
    (r"\boxed{73\text{ ways}}", "73", "right"),
    (r"\boxed{73.0}", "73", "right"),
    (r"\boxed{72} no, \boxed{73}", "73", "right"),
    ("The answer is 073.", "73", "right"),
    ("#### 73", "73", "right"),
    ("<answer>73</answer>", "73", "right"),
    ("<answer> 072 </answer>", "73", "wrong"),
    ("<answer>73, 74</answer>", "73", "unparsable"),
    ("**Final answer**: 73", "73", "right"),
    ("**Answer:** **73**", "73", "right"),
    ("<answer>73^\\circ</answer>", "73", "right"),
    (r"\boxed{74}", "73", "wrong"),
    (r"\boxed{-73}", "73", "wrong"),
    (r"\boxed{1073}", "73", "wrong"),
    (r"\boxed{73.5}", "73", "wrong"),
    (r"\boxed{73} no, \boxed{72}", "73", "wrong"),
    (r"\boxed{25+48}", "73", "unparsable"),
    (r"\boxed{73, 74}", "73", "unparsable"),
    (r"\boxed{73 \text{ or } 74}", "73", "unparsable"),
    (r"\boxed{9^{9^{9^9}}}", "9", "unparsable"),
    (r"\boxed{73^{2}}", "73", "unparsable"),
    ("so we get 73", "73", "no_answer"),  # the last number of a proof is right too often by accident
    ("", "73", "no_answer"),
    (r"\boxed{", "73", "no_answer"),
]


@pytest.mark.parametrize(("text", "gold", "reason"), CASES)
def test_table(text: str, gold: str, reason: str) -> None:
    verdict = IntegerVerifier()(text, gold)
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


def test_the_last_number_on_request() -> None:
    assert IntegerVerifier(last_number=True)("so we get 73", "73").correct


@pytest.mark.parametrize("gold", ["", "x", "1000", "-1", "1/2", "73 or 74"])
def test_golds_outside_the_range(gold: str) -> None:
    with pytest.raises(DataError, match="from 0 to 999"):
        IntegerVerifier().check_gold(gold)
    IntegerVerifier(low=-5, high=5000).check_gold("1000")


def test_the_other_gold_stays_in_the_range() -> None:
    assert [IntegerVerifier().other(gold) for gold in ("73", "999", "007")] == ["74", "0", "8"]


def test_settings() -> None:
    with pytest.raises(ConfigError, match="above"):
        IntegerVerifier(low=3, high=2)
    with pytest.raises(ConfigError, match="max_chars"):
        IntegerVerifier(max_chars=0)


def test_equal_numbers_share_a_key() -> None:
    texts = [r"\boxed{073}", "Answer: 73", r"\boxed{74}", "73 is what I see"]
    assert [IntegerVerifier().answer_key(text, "") for text in texts] == ["73", "73", "74", None]
