"""Shared problems between training and evaluation: both tests, their limits, and the speed."""

import time
from dataclasses import dataclass

import pytest

from killick.errors import ConfigError
from killick.tasks.overlap import NGRAM, overlap, question, warn_of_overlap
from killick.tasks.types import Row


def row(uid: str, text: str) -> Row:
    return Row(uid, [{"role": "user", "content": f"{text}\n\nAnswer in a box."}], "1", problem=text)


def words(first: int, num: int) -> str:
    """`num` different words; word n is spelled with the letters of n."""
    return " ".join("w" + "".join(chr(97 + int(digit)) for digit in str(n)) for n in range(first, first + num))


TRAIN = [row("t0", "What is $2 + 3$?"), row("t1", words(0, 40)), row("t2", words(100, 40))]


@pytest.mark.parametrize(
    "text",
    ["what is 2+3", "What is\n$2+3$ ?", "WHAT IS\\, 2 + {3}?", "“What is 2 + 3?”", "What is ２ + 3?"],
)
def test_equal_once_case_blanks_and_marks_are_gone(text: str) -> None:
    (match,) = overlap(TRAIN, [row("e", text)]).matches
    assert (match.train_uid, match.kind, match.share) == ("t0", "text", 1.0)


@pytest.mark.parametrize(
    ("one", "two"), [("3,5,72>22", "3,57,2>22"), ("1.5", "15"), ("1, 2", "12"), ("3:4", "34"), ("1 2", "12")]
)
def test_what_separates_numbers_counts(one: str, two: str) -> None:
    assert overlap([row("t", one)], [row("e", two)]).matches == ()


@pytest.mark.parametrize(("one", "two"), [("1, 2", "1,2"), ("1  2", "1 2"), ("a, b.", "a b"), ("x = 1.", "x=1")])
def test_how_it_is_spaced_does_not(one: str, two: str) -> None:
    assert overlap([row("t", one)], [row("e", two)]).count("text") == 1


def test_brackets_count_and_their_size_does_not() -> None:
    train = [row("t", r"Compute $2 \left( 3 + 4 \right)$")]
    assert len(overlap(train, [row("e", "Compute $2(3+4)$.")]).matches) == 1
    assert overlap(train, [row("e", "Compute $2 3+4$.")]).matches == ()


@pytest.mark.parametrize("text", ["What is $2 - 3$?", "What is $2 + 33$?", "What is $2 + 3^2$?"])
def test_signs_and_numbers_make_another_problem(text: str) -> None:
    assert overlap(TRAIN, [row("e", text)]).matches == ()


def test_the_share_of_13_grams() -> None:
    """22 words of t1 and 8 new ones: 30 words have 18 runs of 13, of which 10 stand in t1, which is 0.556."""
    mixed = row("e", f"{words(0, 22)} {words(900, 8)}")
    (match,) = overlap(TRAIN, [mixed]).matches
    assert (match.train_uid, match.kind) == ("t1", "13-gram")
    assert match.share == pytest.approx(10 / 18)
    assert overlap(TRAIN, [mixed], min_share=0.6).matches == ()
    # 12 words in common are no run of 13
    assert NGRAM == 13
    assert overlap(TRAIN, [row("e", f"{words(0, 12)} {words(900, 1)}")], min_share=0.01).matches == ()


def test_the_share_is_within_one_training_problem() -> None:
    """20 words of t1 and 20 of t2: 28 runs, 8 in each; together they would be more than half."""
    both = row("e", f"{words(0, 20)} {words(100, 20)}")
    assert overlap(TRAIN, [both]).matches == ()
    (match,) = overlap(TRAIN, [both], min_share=0.25).matches
    assert match.share == pytest.approx(8 / 28)
    assert match.train_uid == "t1"  # the first of equals


def test_wording_that_many_rows_repeat_does_not_count() -> None:
    """Twelve rows share the frame; ten would still count as copies of a problem."""
    train = [row(f"t{n}", f"{words(0, 20)} {words(1000 + 10 * n, 3)}") for n in range(12)]
    fresh = row("e", f"{words(0, 20)} {words(5000, 3)}")
    assert overlap(train, [fresh], 0.3).matches == ()
    assert len(overlap(train[:10], [fresh], 0.3).matches) == 1


def test_options_count_and_instructions_do_not() -> None:
    assert question(row("e", "P")) == "P"
    assert question(Row("e", [{"role": "user", "content": "Q"}], "1")) == "Q"
    assert question(Row("e", [], "1")) == ""


def test_the_report() -> None:
    found = overlap(TRAIN, [row("a", "What is 2+3?"), row("b", "Unknown"), row("c", words(0, 30))])
    assert [match.eval_uid for match in found.matches] == ["a", "c"]
    assert (found.num_train, found.num_eval, found.count("text"), found.count("13-gram")) == (3, 3, 1, 1)
    assert str(found).startswith("2 of 3 evaluation problems (66.7%) are in training: 1 with the same text, 1 by")


def test_wrong_use() -> None:
    with pytest.raises(ConfigError, match="nothing to compare"):
        overlap([], TRAIN)
    for share in (0.0, 1.1):
        with pytest.raises(ConfigError, match="min_share"):
            overlap(TRAIN, TRAIN, share)


@dataclass(frozen=True)
class Fixed:
    splits = ("same", "other")

    def rows(self, split: str, limit: int | None = None) -> list[Row]:
        return ([row(f"e{n}", "What is 2 + 3?") for n in range(5)] if split == "same" else [row("o", "New")])[:limit]


def test_training_is_warned(caplog) -> None:
    warn_of_overlap(Fixed(), TRAIN, ["same", "other"], 4)  # type: ignore[arg-type]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "Split 'same': 4 of 4 evaluation problems" in record.getMessage()
    assert "e0 = t0, e1 = t0, e2 = t0, …" in record.getMessage()


def test_thousands_of_problems_take_seconds() -> None:
    train = [row(f"t{n}", words(100 * n, 60)) for n in range(7500)]
    evaluation = [row(f"e{n}", words(100 * n + 50, 60)) for n in range(5000)]  # 10 words of t_n, 50 of none
    start = time.perf_counter()
    assert overlap(train, evaluation).matches == ()
    assert time.perf_counter() - start < 20  # 2 s on a free core
