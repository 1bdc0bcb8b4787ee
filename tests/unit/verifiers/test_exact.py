"""Texts as answers: a table of (text, gold, reason)."""

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.exact import ExactVerifier

CASES = [
    (r"\boxed{Paris}", "Paris", "right"),
    (r"\boxed{\text{ paris. }}", "Paris", "right"),
    ("The answer is **Paris**.", "Paris", "right"),
    ("<answer>Paris</answer>", "paris", "right"),
    ("<answer>London</answer> or \\boxed{Paris}", "Paris", "right"),
    ("<answer>London</answer>\n<answer>Paris</answer>", "Paris", "right"),
    ("Answer:\nNew  York", "new york", "right"),
    ("“The answer is “Paris””", "Paris", "right"),
    (r"\boxed{London}", "Paris", "wrong"),
    (r"The answer is Paris. \boxed{London}", "Paris", "wrong"),
    ("The answer is Paris, France", "Paris", "wrong"),
    ("The answer is not Paris", "Paris", "wrong"),
    ("Paris", "Paris", "no_answer"),
    ("", "Paris", "no_answer"),
    (r"\boxed{", "Paris", "no_answer"),
    ("<answer>Paris", "Paris", "no_answer"),
    (r"\boxed{2³}", "23", "wrong"),
    (r"\boxed{56}", "5*6", "wrong"),
    (r"\boxed{5}", ".5", "wrong"),
    (r"\boxed{**red**}", "red", "right"),
]


@pytest.mark.parametrize(("text", "gold", "reason"), CASES)
def test_table(text: str, gold: str, reason: str) -> None:
    verdict = ExactVerifier()(text, gold)
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


def test_equal_texts_share_a_key() -> None:
    keys = [ExactVerifier().answer_key(text, "") for text in ("<answer>Red.</answer>", "The answer is **red**", "red")]
    assert keys == ["red", "red", None]


def test_wrong_use() -> None:
    with pytest.raises(DataError, match="no text"):
        ExactVerifier().check_gold(" $.$ ")
    with pytest.raises(ConfigError):
        ExactVerifier(max_chars=0)
