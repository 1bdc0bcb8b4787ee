"""Equal mathematical answers share a key, different ones do not."""

import pytest

from killick.verifiers.answers.keys import mathematical_key
from killick.verifiers.latex import LatexVerifier


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
def test_mathematical_keys(one: str, two: str, equal: bool) -> None:
    assert (mathematical_key(one) == mathematical_key(two)) is equal


def test_the_verifier_looks_where_it_looks_when_it_judges() -> None:
    texts = [r"\boxed{\frac{1}{2}}", r"\boxed{0.5}", r"\boxed{x = 1/2}", r"\boxed{2}", "0.5", r"0.5 \boxed{}"]
    assert [LatexVerifier().answer_key(text, "") for text in texts] == ["1/2", "1/2", "1/2", "2", None, None]
    assert LatexVerifier(fallback=True).answer_key("so 0.5", "") == "1/2"
