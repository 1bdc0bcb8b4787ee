"""The places of a final answer: how each is found, and that all verifiers keep one order."""

import time

import pytest

from killick.verifiers.choice import ChoiceVerifier
from killick.verifiers.exact import ExactVerifier
from killick.verifiers.final import ANSWER, BOX, CONCLUSION, FINAL, HASHES, OPTION, TAG, find, places, plain
from killick.verifiers.integer import IntegerVerifier
from killick.verifiers.knights import KnightsVerifier
from killick.verifiers.latex import LatexVerifier
from killick.verifiers.number import NumberVerifier
from killick.verifiers.reasoning_gym import ReasoningGymVerifier, pack

ALL = (BOX, TAG, FINAL, HASHES, ANSWER, OPTION, CONCLUSION)


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        (r"\boxed{1} or rather \boxed{2}", BOX, "2"),
        (r"\boxed{1} and \boxed{2}", BOX, "1, 2"),
        (r"\boxed{1} and \boxed{", BOX, ""),
        ("<answer>1</answer> <ANSWER>2\n3</ANSWER>", TAG, "2\n3"),
        ("<solution>1</solution>", TAG, "1"),
        ("<final_answer>1</final_answer>", TAG, "1"),
        ("<answer>1</answer> <answer>2", TAG, "1"),
        ("<answer>1<answer>2</answer>", TAG, "2"),
        ("<answer>1</solution>", TAG, None),
        ("#### 1\n####2 apples\n3", HASHES, "2 apples"),
        ("The final answer is 1. Final answer: 2\n3", FINAL, "2"),
        ("**Final Answer:** 2", FINAL, "2"),
        ("**Final Answer**: 2", FINAL, "2"),
        ("The answer is 2", FINAL, None),
        ("The answer is 1\nAnswer:\n\n**2**\n3", ANSWER, "2**"),
        ("the final answer is 2", ANSWER, "2"),
        ("The answer to this question must be 2", ANSWER, "2"),
        ("answer = 2", ANSWER, "2"),
        ("so the answer $2$", ANSWER, "$2$"),
        ("答案是2", ANSWER, "2"),
        ("The answers differ", ANSWER, None),
        ("The correct option is 2", ANSWER, None),
        ("The correct option is 2", OPTION, "2"),
        ("my choice: 2", OPTION, "2"),
        ("the adoption is 2", OPTION, None),
        ("In conclusion, 2", CONCLUSION, "2"),
        ("Conclusion:\n2\n3", CONCLUSION, "2"),
    ],
)
def test_how_a_place_is_found(text: str, place: str, line: str | None) -> None:
    found = find(text, place)
    assert (None if found is None else found.line) == line


def test_the_order() -> None:
    """Each text holds one place more, written behind the others, and the places come out in the order of the list."""
    pieces = [
        "Conclusion: c",
        "The option is o",
        "The answer is a",
        "#### h",
        "The final answer is f",
        "<answer>t</answer>",
    ]
    text = "\n".join([*pieces, r"\boxed{b}"])
    # "answer is" takes a final answer as well, "option is" both, and "conclusion" any answer
    found = [(place.place, place.line) for place in places(text, *ALL)]
    assert found == [
        (BOX, "b"),
        (TAG, "t"),
        (FINAL, "f"),
        (HASHES, "h"),
        (ANSWER, "f"),
        (OPTION, "f"),
        (CONCLUSION, "f"),
    ]
    assert find(text, CONCLUSION, HASHES) == ("h\nThe final answer is f\n<answer>t</answer>\n\\boxed{b}", HASHES)
    assert find("nothing", *ALL) is None


GOLD, OTHER = "Zoey is a knight, Mia is a knave", "Zoey is a knave, Mia is a knight"
VERIFIERS = {
    "number": (NumberVerifier(), "7", "7", "8"),
    "integer": (IntegerVerifier(), "7", "7", "8"),
    "latex": (LatexVerifier(), "7", "7", "8"),
    "exact": (ExactVerifier(), "red", "red", "blue"),
    "knights": (KnightsVerifier(), GOLD, GOLD, OTHER),
    "reasoning_gym": (
        ReasoningGymVerifier(),
        pack("spell_backward", {}, {"question": "", "answer": "pots", "metadata": {"word": "stop"}}),
        "pots",
        "spot",
    ),
}


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_box_goes_before_a_tag_and_a_tag_before_a_sentence(name: str) -> None:
    verifier, gold, right, wrong = VERIFIERS[name]
    box, tag, sentence = "so \\boxed{%s}.\n", "<answer>%s</answer>\n", "The final answer is %s\n"
    for first, second in ((box, tag), (box, sentence), (tag, sentence)):
        for text in (first % right + second % wrong, second % wrong + first % right):
            assert verifier(text, gold).correct, text
        for text in (first % wrong + second % right, second % right + first % wrong):
            assert verifier(text, gold).reason == "wrong", text


def test_a_choice_too_but_a_box_that_is_contradicted_later_is_none() -> None:
    choice = ChoiceVerifier()
    assert choice(r"<answer>B</answer> no, \boxed{C}", "C").correct
    assert choice("The answer is B. <answer>C</answer>", "C").correct
    assert choice(r"\boxed{C} <answer>B</answer>", "C").reason == "unparsable"
    assert choice(r"\boxed{C} <answer>C</answer>", "C").correct


@pytest.mark.parametrize(
    "piece",
    ["<answer>", "<answer><solution>", "</answer>", "answer ", "answer is ", "answer to this question ", "final answer",
     "####", "\\boxed{", "\\boxed 1", "conclusion", "*", "`"],
)  # fmt: skip
def test_every_look_up_is_linear(piece: str) -> None:
    start = time.perf_counter()
    list(places(piece * (1_000_000 // len(piece)), *ALL))
    assert time.perf_counter() - start < 5.0


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
