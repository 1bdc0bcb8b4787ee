"""The steps that are told are those the verifiers take."""

import pytest

from killick.verifiers.choice import ChoiceVerifier
from killick.verifiers.countdown import CountdownVerifier
from killick.verifiers.exact import ExactVerifier
from killick.verifiers.explain import _PLACES, explain, only_by_fallback
from killick.verifiers.final import ANSWER, BOX, CONCLUSION, HASHES, OPTION, TAG
from killick.verifiers.integer import IntegerVerifier
from killick.verifiers.knights import KnightsVerifier
from killick.verifiers.latex import LatexVerifier
from killick.verifiers.number import NumberVerifier

IN_PLACE = {
    BOX: r"\boxed{@}",
    TAG: "<answer>@</answer>",
    HASHES: "#### @",
    ANSWER: "The answer is @",
    OPTION: "The option is @",
    CONCLUSION: "Conclusion: @",
}
GOLDS = {
    NumberVerifier: "5",
    IntegerVerifier: "5",
    ExactVerifier: "blue",
    ChoiceVerifier: "C",
    KnightsVerifier: "Zoey is a knight, Mia is a knave",
}
FOUND = [(cls, place) for cls in GOLDS for place in IN_PLACE if place in _PLACES[cls][0]]


@pytest.mark.parametrize(("cls", "place"), FOUND)
def test_a_named_place_is_where_the_verifier_looks(cls, place):
    gold = GOLDS[cls]
    verdict, told = explain(cls(), f"{IN_PLACE[place].replace('@', gold)}\nThat took me 7 tries.", gold)
    assert verdict.correct
    assert f"({place})" in dict(told)["extraction"]
    assert dict(told)["answer read as"] == dict(told)["gold read as"]


@pytest.mark.parametrize(
    ("verifier", "text", "gold"),
    [
        (ExactVerifier(), "#### blue", "blue"),
        (ExactVerifier(), "Conclusion: blue", "blue"),
        (NumberVerifier(last_number=False), "Conclusion: 5", "5"),
        (IntegerVerifier(), "Conclusion: 5", "5"),
    ],
)
def test_other_places_are_not(verifier, text, gold):
    verdict, told = explain(verifier, text, gold)
    assert verdict.reason == "no_answer"
    assert dict(told)["extraction"].startswith("nothing in: last box, answer tag")
    assert "taken instead" not in dict(told)["extraction"]
    assert "answer read as" not in dict(told)


def test_what_is_taken_without_a_place():
    assert explain(NumberVerifier(), "9 + 9 = 18", "18")[1][1:] == [
        ("extraction", "nothing in: last box, answer tag, ####, answer is; taken instead: the last number"),
        ("gold read as", "18"),
        ("answer read as", "18"),
        ("verdict", "right"),
    ]


def test_knights_may_pass_over_a_place():
    text = "Zoey: \\boxed{knight}\nConclusion: Zoey is a knight and Mia is a knave"
    _, told = explain(KnightsVerifier(), text, "Zoey is a knight, Mia is a knave")
    assert [shown for step, shown in told if step == "extraction"] == [
        "knight (last box)",
        "Zoey is a knight and Mia is a knave (conclusion)",
    ]
    assert dict(told)["answer read as"] == "Mia: knave, Zoey: knight"


def test_a_verifier_of_another_kind_tells_its_verdict():
    verdict, told = explain(CountdownVerifier(), "1+2=3", "1,2>3")
    assert verdict.correct
    assert told == [("gold", "1,2>3"), ("verdict", "right")]


@pytest.mark.parametrize(
    ("gold", "answer", "reading"),
    [
        ("(1,2)", "(1,3)", "tuple in ( ), 2 items: value; value"),
        (r"\{1,2,3,4,5\}", r"\{1,2\}", "set, 5 items: value; value; value; value; …"),
        ("12 cm", "12", "value, unit cm"),
    ],
)
def test_readings_are_told_in_words(gold, answer, reading):
    _, told = explain(LatexVerifier(), rf"\boxed{{{answer}}}", gold)
    assert dict(told)["gold read as"] == reading


@pytest.mark.parametrize(
    "text",
    [
        "the answer is 5",
        "5",
        "so $5$",
        "#### 5",
        "the final answer is 5",
        r"\boxed{5}",
        r"\boxed{} 5",
        "dear me, no.",
        "",
    ],
)
def test_only_by_fallback_means_that_the_verdicts_differ(text):
    anywhere = LatexVerifier(fallback=True)
    differ = anywhere(text, "5").reason != LatexVerifier()(text, "5").reason
    assert only_by_fallback(anywhere, text) == differ
    assert not only_by_fallback(LatexVerifier(), text)


@pytest.mark.parametrize(
    ("gold", "answer", "rule"),
    [
        (r"\frac13", "5", "different values"),
        (r"\frac13", "0.333333", "a decimal of six digits or more that rounds the exact value"),
        (r"\frac13", "0.33", "a decimal of fewer than six digits"),
        ("0.33", r"\frac13", "a decimal of fewer than six digits"),
        (r"\sqrt2", "1.41", "a decimal of fewer than six digits"),
        (r"\frac13", "0.35", "different values"),  # 0.0167 away, more than its last place
        (r"\frac13", "0.333334", "different values"),  # long, but it does not round
        ("5", "4.9", "different values"),  # nothing of a whole number is cut off
        ("0.34", "0.33", "different values"),
    ],
)
def test_the_rule_that_decided_is_named(gold, answer, rule):
    _, told = explain(LatexVerifier(), rf"\boxed{{{answer}}}", gold)
    assert dict(told)["rule"] == rule
