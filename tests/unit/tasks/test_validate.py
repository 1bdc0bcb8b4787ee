"""The check of golds: it finds a verifier that refuses a right answer, and one that accepts a wrong one."""

from dataclasses import dataclass
from typing import Any

import pytest

from killick.tasks.dataset import boxed
from killick.tasks.types import Row
from killick.tasks.validate import validate, wrong_completion
from killick.verifiers.latex import LatexVerifier
from killick.verifiers.types import RIGHT, Verdict, wrong


class Says:
    """A verifier with one opinion."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def check_gold(self, answer: str) -> None: ...

    def __call__(self, completion: str, answer: str) -> Verdict:
        return self.verdict


@dataclass
class Fake:
    verifier: Any
    splits = ("test",)

    def gold_completion(self, row: Row) -> str:
        return row.solution or boxed(row.answer)


def rows(*answers: str) -> list[Row]:
    return [Row(f"u{n}", [], answer) for n, answer in enumerate(answers)]


def test_a_good_verifier_passes() -> None:
    found = validate(Fake(LatexVerifier()), "test", rows("1", "x+1", r"\frac{1}{2}", "(1,2)"))  # type: ignore[arg-type]
    assert (found.num, found.num_wrong, found.rejected, found.accepted) == (4, 4, [], [])
    assert found.passed


def test_one_that_refuses_everything_and_one_that_accepts_everything_fail() -> None:
    no = validate(Fake(Says(wrong("unparsable"))), "test", rows("1", "2"))  # type: ignore[arg-type]
    assert no.rejected == [("u0", "unparsable"), ("u1", "unparsable")]
    assert not no.passed
    yes = validate(Fake(Says(RIGHT)), "test", rows("1", "2"))  # type: ignore[arg-type]
    assert [uid for uid, _ in yes.accepted] == ["u0", "u1"]
    assert not yes.passed


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1", "2"),
        ("-1", "0"),
        ("$7$", "8"),
        ("0.5", "3/2"),
        ("1,000,000", "2000001"),
        ("3.3e12", "6600000000001"),
        (r"\sqrt{2}", r"2\left(\sqrt{2}\right)+1"),
        ("x = 5", "x = 5+1"),
        ("1, 2", "1, 2+1"),
        (r"\text{even}", r"\text{even}+1"),
        ("even", "even+1"),
    ],
)
def test_wrong_golds_by_rule(answer: str, expected: str) -> None:
    (row,) = rows(answer)
    assert wrong_completion(Fake(LatexVerifier()), [row], 0, boxed(answer)) == boxed(expected)  # type: ignore[arg-type]


def test_without_a_rule_the_next_gold_that_differs_is_taken() -> None:
    four = [Row(f"u{n}", [], answer, solution=f"text {answer}") for n, answer in enumerate("aaba")]
    task = Fake(Says(RIGHT))
    assert wrong_completion(task, four, 0, "text a") == "text b"  # type: ignore[arg-type]
    assert wrong_completion(task, four, 2, "text b") == "text a"  # type: ignore[arg-type]
    assert wrong_completion(task, four[:2], 0, "text a") is None  # type: ignore[arg-type]
