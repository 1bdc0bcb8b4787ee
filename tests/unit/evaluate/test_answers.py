"""Equal answers share a key, different ones do not; through the verifiers' own extraction."""

from types import SimpleNamespace

import pytest

from killick.errors import ConfigError
from killick.evaluate.answers import _reader, mathematical_key
from killick.verifiers.choice import ChoiceVerifier
from killick.verifiers.countdown import CountdownVerifier
from killick.verifiers.exact import ExactVerifier
from killick.verifiers.integer import IntegerVerifier
from killick.verifiers.latex import LatexVerifier
from killick.verifiers.number import NumberVerifier


def key(verifier, completion, answer=""):
    reader, _ = _reader("task", SimpleNamespace(verifier=verifier))
    return reader(completion, answer)


@pytest.mark.parametrize(
    ("verifier", "same", "other", "none"),
    [
        (NumberVerifier(), ["#### 1,000", "so \\boxed{1000.0}"], "#### 1001", "no number"),
        (IntegerVerifier(), ["\\boxed{073}", "Answer: 73"], "\\boxed{74}", "73 is what I see"),
        (LatexVerifier(), ["\\boxed{\\frac{1}{2}}", "\\boxed{0.5}", "\\boxed{x = 1/2}"], "\\boxed{2}", "0.5"),
        (ExactVerifier(), ["<answer>Red</answer>", "The answer is red."], "<answer>blue</answer>", "red"),
    ],
)
def test_equal_answers_share_a_key(verifier, same, other, none):
    keys = {key(verifier, text) for text in same}
    assert len(keys) == 1
    assert None not in keys
    assert key(verifier, other) not in keys | {None}
    assert key(verifier, none) is None


def test_a_choice_may_be_given_by_its_text():
    gold = ChoiceVerifier.gold("A", ["a cat", "a dog"])
    assert key(ChoiceVerifier(), "The answer is a dog.", gold) == key(ChoiceVerifier(), "Answer: B", gold) == "B"
    assert key(ChoiceVerifier(), "A or B, who knows", gold) is None


def test_a_verifier_may_say_it_itself():
    own = SimpleNamespace(answer_key=lambda completion, answer: completion[:1] + answer)
    assert key(own, "xyz", "!") == "x!"


def test_many_right_answers_have_no_vote():
    with pytest.raises(ConfigError, match="CountdownVerifier"):
        key(CountdownVerifier(), "1+2=3")


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        ("\\sqrt{8}", "2\\sqrt{2}", True),
        ("\\frac{2}{4}", "0.50", True),
        ("50\\%", "50", False),
        ("3\\text{ cm}", "3\\text{ km}", False),
        ("x+1", "x + 1", True),
        ("(1,2)", "(2,1)", False),
        ("9^{9^{9^9}}", "1", False),
        ("\\pi", "3.14", False),
    ],
)
def test_mathematical_keys(one, two, equal):
    assert (mathematical_key(one) == mathematical_key(two)) is equal
