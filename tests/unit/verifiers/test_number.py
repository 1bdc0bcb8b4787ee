"""The exact number verifier: a table of (text, gold, reason), hostile texts, gold checks."""

import time
from fractions import Fraction

import pytest

from killick.errors import ConfigError, DataError
from killick.verifiers.number import NumberVerifier, exact

CASES = [
    # plain numbers, however they are dressed
    ("18", "18", "right"),
    ("The answer is 18.", "18", "right"),
    ("so she makes **18** dollars", "18", "right"),
    ("$1,234.50", "1234.5", "right"),
    ("1,000,000", "1000000", "right"),
    ("-5", "-5", "right"),
    ("\u22125", "-5", "right"),
    ("-$5", "-5", "right"),
    ("$-5", "-5", "right"),
    ("1/2", "0.5", "right"),
    ("1 1/2", "3/2", "right"),
    (r"1\frac{1}{2}", "1.5", "right"),
    (r"-\frac{1}{2}", "-0.5", "right"),
    ("1e3", "1000", "right"),
    ("007", "7", "right"),
    ("18.00", "18", "right"),
    ("20%", "20", "right"),
    ("5", "-5", "wrong"),
    ("17.999999999999999999", "18", "wrong"),  # a float would call these equal
    # the last number counts, and the last of each kind of marker
    ("5 - 3 = 2", "2", "right"),
    ("first 3, then 4, so 7", "7", "right"),
    ("first 3, then 4, so 7", "3", "wrong"),
    ("#### 5\nno wait\n#### 7", "7", "right"),
    ("#### 72\nThat took 3 steps.", "72", "right"),
    ("#### 5 * 3 = 15", "15", "right"),
    ("The answer is 18. There were 3 ducks.", "18", "right"),
    ("The answer is:\n18", "18", "right"),
    (r"It is \boxed{18}, found in 3 steps", "18", "right"),
    (r"\boxed{3} or rather \boxed{18}", "18", "right"),
    (r"\boxed{x = 18}", "18", "right"),
    (r"\boxed{18\text{ dollars}}", "18", "right"),
    (r"\boxed{\$9{,}000}", "9000", "right"),
    (r"\boxed{3\,000}", "3000", "right"),
    ("<answer>18</answer> There were 3 ducks.", "18", "right"),
    ("<answer>3 * 6 = 18 dollars</answer>", "18", "right"),
    ("<answer>17 or 18</answer>", "18", "unparsable"),
    ("<answer>eighteen</answer> 18", "18", "unparsable"),
    ("<answer></answer> 18", "18", "no_answer"),
    (r"\boxed{x = \boxed{18}}", "18", "right"),
    (r"\boxed{17}, \boxed{18}", "18", "unparsable"),
    ("**Answer:** 18, not 3", "18", "right"),
    ("The answer is: - 18", "18", "unparsable"),
    ("The answer is $n^{2}+1$", "2", "unparsable"),
    # hedging, unevaluated expressions and pieces of something longer are no answer
    ("#### 5 or 7", "5", "unparsable"),
    ("The answer is 5 or 7", "5", "unparsable"),
    ("The answer is 5, 7", "5", "unparsable"),
    ("48 / 2", "2", "unparsable"),
    ("9**9**9**9", "9", "unparsable"),
    (r"2\sqrt{5}", "5", "unparsable"),
    (r"\boxed{2\sqrt{5}}", "2", "unparsable"),
    (r"\boxed{2\sqrt{5}}", "5", "unparsable"),
    ("2^5", "5", "unparsable"),
    ("5x", "5", "unparsable"),
    ("x5", "5", "unparsable"),
    ("12,34", "34", "unparsable"),
    (r"\boxed{0,500}", "500", "unparsable"),
    (r"\boxed{1 234/5}", "1234/5", "unparsable"),
    (r"\boxed{1 234/5}", "239/5", "unparsable"),
    ("1.2.3", "3", "unparsable"),
    ("3:45", "45", "unparsable"),
    ("1e5", "5", "wrong"),
    ("1e9999", "1", "unparsable"),
    ("12/0", "12", "unparsable"),
    ("0x12", "12", "unparsable"),
    ("1\x008", "8", "unparsable"),
    ("1\u200b8", "8", "wrong"),  # a zero-width space: the reader sees 18
    ("1\u200b8", "18", "right"),
    # words and signs that make the number part of something else, or deny it
    ("The answer is not 9.", "9", "unparsable"),
    ("The answer is at most 9", "9", "unparsable"),
    ("#### 9 or more", "9", "unparsable"),
    ("<answer>9 choose 2</answer>", "9", "unparsable"),
    (r"\boxed{9 \text{ factorial}}", "9", "unparsable"),
    (r"\boxed{10 = 9}", "9", "unparsable"),
    (r"\boxed{2x = 9}", "9", "unparsable"),
    (r"\boxed{m + n = 9}", "9", "right"),
    ("It is twice 9", "9", "unparsable"),
    ("so Tom has 9 more apples than Jerry", "9", "right"),
    ("it grew by 9", "9", "right"),
    (r"<think>\boxed{9}</think> 10", "9", "wrong"),
    # nothing there
    ("", "1", "no_answer"),
    (" \n", "1", "no_answer"),
    ("I do not know.", "1", "no_answer"),
    ("####", "1", "no_answer"),
    (r"5 \boxed{}", "5", "no_answer"),
    (r"5 \boxed{5", "5", "no_answer"),
    ("__import__('os').system('true')", "0", "no_answer"),
    (r"\input{/etc/passwd}", "0", "no_answer"),
    ("\ud800 7", "7", "right"),  # a lone surrogate
    ("\u0661\u0668", "18", "no_answer"),  # digits of other scripts are not read
]


@pytest.mark.parametrize(("text", "gold", "reason"), CASES)
def test_verdict(text: str, gold: str, reason: str) -> None:
    verdict = NumberVerifier()(text, gold)
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


@pytest.mark.parametrize("text", ["so 18", "18", "it is 5 - 3 = 18"])
def test_without_last_number_a_marker_is_needed(text: str) -> None:
    assert NumberVerifier(last_number=False)(text, "18").reason == "no_answer"
    assert NumberVerifier(last_number=False)(text + "\n#### 18", "18").reason == "right"


@pytest.mark.parametrize(
    "piece",
    ["(", "9", "9,", "9**", "-", "1 ", "1/", "{", "\\boxed{", "\\frac{", "answer is ", "####", "\x00", "\u200b"],
)
def test_a_megabyte_of_anything_is_judged_quickly(piece: str) -> None:
    start = time.perf_counter()
    verdict = NumberVerifier()(piece * (1_000_000 // len(piece)), "123456789")
    assert not verdict.correct
    assert time.perf_counter() - start < 2.0


def test_only_the_end_of_a_long_text_is_read() -> None:
    assert NumberVerifier(max_chars=100)("#### 5\n" + "word " * 100 + "7", "7").correct


@pytest.mark.parametrize("gold", ["18", "-3", "1,234", "1/2", "0.25", "$5"])
def test_readable_golds_pass(gold: str) -> None:
    NumberVerifier().check_gold(gold)
    assert NumberVerifier()(f"#### {gold}", gold).correct


@pytest.mark.parametrize("gold", ["", "  ", "x", "2\\sqrt{5}", "5 or 7", "1/0", "12,34", "9" * 41, "18 apples"])
def test_unreadable_golds_are_refused(gold: str) -> None:
    with pytest.raises(DataError, match="plain number"):
        NumberVerifier().check_gold(gold)
    with pytest.raises(DataError):
        NumberVerifier()("18", gold)


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError):
        NumberVerifier(max_digits=0)


def test_exact_keeps_every_digit() -> None:
    # 40 digits, far beyond a float's 17.
    assert exact("0." + "1" * 39) == Fraction(int("1" * 39), 10**39)


def test_equal_numbers_share_a_key() -> None:
    texts = ["#### 1,000", r"so \boxed{1000.0}", "<answer>1e3</answer>", "#### 1001", "no number", "#### 5 or 7"]
    assert [NumberVerifier().answer_key(text, "") for text in texts] == ["1000", "1000", "1000", "1001", None, None]
