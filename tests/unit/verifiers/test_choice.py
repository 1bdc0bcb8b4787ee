"""Multiple choice: a table of (text, gold letter, verdict), golds, and what is ambiguous."""

import json

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.choice import ChoiceVerifier, choice_gold

COLOURS = ("red", "green", "blue", "Both A and B")
TEN = tuple(f"option number {n}" for n in range(10))

# Gold is C ("blue") throughout: right must be C, wrong another option, anything else no answer at all.
CASES = [
    # letters, however they are dressed
    ("The answer is C", "right"),
    ("the answer is (C).", "right"),
    ("**Answer: C**", "right"),
    ("Answer: **C**", "right"),
    ("ANSWER: C", "right"),
    ("Answer: c", "right"),
    ("Answer:\n\nC", "right"),
    ("Final Answer: $C$", "right"),
    ("The correct option is C.", "right"),
    ("The best answer is therefore (C)", "right"),
    ("The answer to this question is C", "right"),
    ("The answer should be C.", "right"),
    ("the answer is option C", "right"),
    ("So the correct choice is: [C]", "right"),
    ("The answer is “C”.", "right"),
    ("<answer>C</answer>", "right"),
    ("<answer>\\boxed{C}</answer>", "right"),
    ("<answer>B</answer> no: <answer>C</answer>", "right"),
    (r"\boxed{C}", "right"),
    (r"\boxed{c}", "right"),
    (r"\boxed{(C)}", "right"),
    (r"\boxed{\text{C}}", "right"),
    (r"\boxed{\textbf{(C)}}", "right"),
    (r"\boxed{\text{Option C}}", "right"),
    (r"$\boxed{\mathrm{C}}$", "right"),
    (r"\boxed{B} is wrong, it is \boxed{C}", "right"),
    ("C", "right"),
    ("(C)", "right"),
    ("**C**", "right"),
    ("c", "right"),
    ("It absorbs red and green.\n\nC", "right"),
    ("It absorbs red and green.\n\nOption C", "right"),
    ("So C is correct.", "right"),
    ("Option (C) is the best choice by far", "right"),
    # with the option's text, or the text alone
    ("The correct option is C: blue", "right"),
    ("Answer: C) blue", "right"),
    ("Answer: C. Blue.", "right"),
    (r"\boxed{\text{C. blue}}", "right"),
    (r"\boxed{blue}", "right"),
    ("The answer is blue.", "right"),
    ("Answer: **Blue**", "right"),
    ("C. blue", "right"),
    ("I think of the sea.\nblue", "right"),
    # a reason may follow
    ("The answer is C because the others are warm", "right"),
    ("The answer is C, since A and B are warm", "right"),
    ("Answer: C - see above", "right"),
    ("The answer is B. I mean: the answer is C.", "right"),
    # another option
    ("The answer is B", "wrong"),
    (r"\boxed{A}", "wrong"),
    ("Answer: Both A and B", "wrong"),
    ("The answer is red", "wrong"),
    ("The answer is C. Wrong, the answer is D.", "wrong"),
    ("The answer is E", "wrong"),  # beyond the options
    ("D", "wrong"),
    # ambiguous: never right
    ("The answer is B or C", "unparsable"),
    ("The answer is C or B", "unparsable"),
    ("The answer is C/D", "unparsable"),
    ("The answer is C and D", "unparsable"),
    ("Answer: C, D", "unparsable"),
    ("Answer: C, or maybe B", "unparsable"),
    ("The answer is C. Wait, actually it is B", "unparsable"),
    (r"\boxed{B, C}", "unparsable"),
    (r"\boxed{B} and \boxed{C}", "unparsable"),
    ("Answer: C) red", "unparsable"),
    (r"\boxed{\text{C. green}}", "unparsable"),
    ("The answer is not C", "unparsable"),
    ("The answer is C. Wait, D", "unparsable"),
    ("The answer is C, but it could be D", "unparsable"),
    ("The answer is C, as well as D", "unparsable"),
    ("The answer is C-E", "unparsable"),
    ("The answer is C: incorrect", "unparsable"),
    ("The answer is C, no", "unparsable"),
    ("It is false that C is correct", "no_answer"),
    ("Is it so that C is correct?", "no_answer"),
    ("The answer is C combined with something", "unparsable"),
    ("The answer is A matter of taste", "unparsable"),
    ("The answer is a colour", "unparsable"),
    ("The answer is C's opposite", "unparsable"),
    ("The answer is Cyan", "unparsable"),
    ("B is correct. C is correct.", "unparsable"),
    (r"\boxed{C} but then the answer is B.", "unparsable"),
    # no answer
    ("", "no_answer"),
    ("A. red\nB. green\nC. blue", "no_answer"),
    ("C is not correct", "no_answer"),
    ("I would say C, but who knows", "no_answer"),
    ("blue is a colour", "no_answer"),
    (r"\boxed{", "no_answer"),
    (r"\boxed{}", "no_answer"),
    (r"The answer is C. \boxed{", "no_answer"),  # an unfinished box decides, as it does for other verifiers
]


@pytest.mark.parametrize(("text", "reason"), CASES)
def test_table(text: str, reason: str) -> None:
    verdict = ChoiceVerifier()(text, ChoiceVerifier.gold("C", COLOURS))
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


@pytest.mark.parametrize(("text", "reason"), [case for case in CASES if case[1] == "right"])
def test_what_is_right_for_c_is_wrong_for_d(text: str, reason: str) -> None:
    assert ChoiceVerifier()(text, ChoiceVerifier.gold("D", COLOURS)).reason == "wrong"


@pytest.mark.parametrize("letter", "ABCDEFGHIJ")
def test_ten_options(letter: str) -> None:
    gold = ChoiceVerifier.gold(letter, TEN)
    number = "ABCDEFGHIJ".index(letter)
    for text in (
        f"Answer: {letter}",
        f"\\boxed{{{letter}}}",
        f"The answer is ({letter}) option number {number}",
        TEN[number],
    ):
        assert ChoiceVerifier()(text, gold).correct, text
    other = "ABCDEFGHIJ"[(number + 1) % 10]
    assert ChoiceVerifier()(f"Answer: {other}", gold).reason == "wrong"


def test_the_pronoun_and_the_article_are_no_letters() -> None:
    gold_i, gold_a = ChoiceVerifier.gold("I", TEN), ChoiceVerifier.gold("A", TEN)
    assert ChoiceVerifier()("The answer is I think unclear", gold_i).reason == "unparsable"
    assert ChoiceVerifier()("The answer is A very long story", gold_a).reason == "unparsable"
    assert ChoiceVerifier()("The answer is I.", gold_i).correct


def test_equal_options_and_letters_as_options() -> None:
    twice = ChoiceVerifier.gold("A", ("same", "Same.", "other"))
    assert ChoiceVerifier()("The answer is same", twice).reason == "unparsable"
    assert ChoiceVerifier()("The answer is A", twice).correct
    letters = ChoiceVerifier.gold("A", ("B", "A"))  # the prompt asks for the letter, so letters win
    assert ChoiceVerifier()(r"\boxed{A}", letters).correct
    assert ChoiceVerifier()(r"\boxed{B}", letters).reason == "wrong"


def test_formulas_are_not_simplified_into_each_other() -> None:
    gold = ChoiceVerifier.gold("A", (r"\frac{1}{23}", r"x^{2}", "-1"))
    assert ChoiceVerifier()(r"\boxed{\frac{1}{23}}", gold).correct
    assert not ChoiceVerifier()(r"\boxed{\frac{12}{3}}", gold).correct
    assert ChoiceVerifier()(r"\boxed{$-1$}", gold).reason == "wrong"


def test_a_bare_letter_is_a_gold_too() -> None:
    assert ChoiceVerifier()("Answer: C", "C").correct
    assert ChoiceVerifier()("Answer: C, blue", "C").correct
    assert ChoiceVerifier()("Answer: blue", "C").reason == "unparsable"
    assert ChoiceVerifier().other("J") == "A"


@pytest.mark.parametrize(
    "gold",
    ["", "K", "c", "AB", "{", "{}", '{"letter": "D", "choices": ["a", "b"]}', '{"letter": "A", "choices": [1]}',
     '{"letter": "A", "choices": ["", "b"]}', json.dumps({"letter": "A", "choices": ["x"] * 11}), "[" * 10_000],
)  # fmt: skip
def test_golds_that_are_none(gold: str) -> None:
    with pytest.raises(DataError, match="is no choice"):
        ChoiceVerifier().check_gold(gold)


def test_the_other_gold_is_the_next_option() -> None:
    other = choice_gold(ChoiceVerifier().other(ChoiceVerifier.gold("D", COLOURS)))
    assert other == ("A", COLOURS)
    with pytest.raises(ConfigError):
        ChoiceVerifier(max_chars=0)


def test_the_key_is_the_letter_also_of_an_option_named_by_its_text() -> None:
    gold = ChoiceVerifier.gold("A", COLOURS)
    texts = ["The answer is green.", "Answer: B", r"\boxed{C}", "B or C", "who knows"]
    assert [ChoiceVerifier().answer_key(text, gold) for text in texts] == ["B", "B", "C", None, None]
