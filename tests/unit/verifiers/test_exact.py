"""Texts as answers, and where a final answer stands."""

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.exact import ExactVerifier
from killick.verifiers.final import final_answer, plain

CASES = [
    (r"\boxed{Paris}", "Paris", "right"),
    (r"\boxed{\text{ paris. }}", "Paris", "right"),
    ("The answer is **Paris**.", "Paris", "right"),
    ("<answer>Paris</answer>", "paris", "right"),
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
]


@pytest.mark.parametrize(("text", "gold", "reason"), CASES)
def test_table(text: str, gold: str, reason: str) -> None:
    verdict = ExactVerifier()(text, gold)
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


def test_where_an_answer_is_found() -> None:
    assert final_answer("x \\boxed{1} <answer>2</answer>") == ("2", "tag")
    assert final_answer("the answer is 1, \\boxed{2}") == ("2", "box")
    assert final_answer("the answer is 1\nthe answer: 2\n3") == ("2", "marker")
    assert final_answer("nothing") is None


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (r"\textbf{A b}", "a  B", True),
        ("$x$", "x", True),
        (r"\frac{1}{23}", r"\frac{12}{3}", False),
        ("x_1", "x1", False),
        ("-1", "1", False),
    ],
)
def test_dressing_goes_and_formulas_stay(one: str, two: str, same: bool) -> None:
    assert (plain(one) == plain(two)) is same


def test_wrong_use() -> None:
    with pytest.raises(DataError, match="no text"):
        ExactVerifier().check_gold(" $.$ ")
    with pytest.raises(ConfigError):
        ExactVerifier(max_chars=0)
