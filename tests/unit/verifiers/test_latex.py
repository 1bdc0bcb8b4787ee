"""The LaTeX verifier: verdicts with reasons, extraction, golds, threads, the case tables."""

import json
import threading
from pathlib import Path

import pytest
from unit.verifiers.equivalence_cases import CASES

from killick.errors import ConfigError, DataError
from killick.verifiers.answers.backend import is_costly
from killick.verifiers.latex import LatexVerifier
from killick.verifiers.types import RIGHT
from killick.verifiers.types import wrong as not_right

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"

BOXED = [
    # (content of the box, gold, reason); a gold parsed bare would turn the rows marked (b) round
    (r"2\sqrt{5}", r"2\sqrt{5}", "right"),  # (b)
    ("2", r"2\sqrt{5}", "wrong"),  # (b): bare, the gold is read as 2
    (r"\sqrt{20}", r"2\sqrt{5}", "right"),
    ("34", "34", "right"),
    ("34.0", "34", "right"),
    ("3", "34", "wrong"),
    ("4", "34", "wrong"),
    (r"\frac{3}{4}", "3/4", "right"),
    ("0.75", r"\frac34", "right"),
    (r"\dfrac{1}{2}", r"$\frac{1}{2}$", "right"),
    ("0.333333", r"\frac{1}{3}", "right"),
    ("0.33", r"\frac{1}{3}", "wrong"),
    ("0.3333335", "1/3", "wrong"),
    (r"\frac{\pi}{2}", r"\frac{\pi}{2}", "right"),  # (b)
    (r"\text{Evelyn}", r"\text{Evelyn}", "right"),  # (b)
    ("(1, 2)", "(1,2)", "right"),
    ("(2, 1)", "(1,2)", "wrong"),
    ("1, 2", "2, 1", "right"),  # bare lists are unordered
    ("1", "1, 2", "wrong"),
    ("x = 5", "5", "right"),
    (r"28\%", "28", "right"),
    ("1,234", "1234", "right"),
    ("x^2 + 2x + 1", "(x+1)^2", "right"),
    (r"\frac{1}{2^{98}}", r"\frac{1}{2^{99}}", "wrong"),  # equal in the first six decimals
    ("0.0000001", "0.0000002", "wrong"),
    (r"[0, \infty)", r"[0,\infty)", "right"),
    # white space parts two numbers, except the thousands of one and a mixed number
    ("2 3/4", "23/4", "wrong"),
    ("2 3/4", "11/4", "right"),
    (r"2\frac{3}{4}", "2 3/4", "right"),
    ("2\u00a03/4", "11/4", "right"),
    ("x = 2 3/4", "x = 11/4", "right"),
    ("23/4", "2 3/4", "wrong"),
    ("2 7/4", "15/4", "unparsable"),
    ("1 2", "12", "unparsable"),
    (r"1\ 2", "12", "unparsable"),
    (r"1\,2", "12", "unparsable"),
    (r"1\quad 2", "12", "unparsable"),
    ("1~2", "12", "unparsable"),
    (r"1\text{ }2", "12", "unparsable"),
    ("1$ $2", "12", "unparsable"),
    ("1\n2", "12", "unparsable"),
    ("1 2", "3", "unparsable"),  # math-verify adds them
    ("3", "1 2", "wrong"),
    ("12", "1 2", "wrong"),
    ("1 2", r"1\,2", "right"),  # the same text
    ("(1 2, 3)", "(12, 3)", "unparsable"),
    (r"\frac{1 2}{5}", r"\frac{12}{5}", "unparsable"),
    ("0.5 5", "0.55", "unparsable"),
    ("2^{6} 3", "2^{63}", "wrong"),
    ("2^6 3^5", r"2^6 \cdot 3^5", "right"),
    (r"\log_2 8", "3", "right"),
    (r"\frac 1 2", "0.5", "right"),
    (r"1\,234", "1234", "right"),
    (r"1\ 234", "1234", "right"),
    ("1{,}234", "1234", "right"),
    (r"1,\! 234", "1234", "right"),
    ("12 345 678", "12345678", "right"),
    (r"12\,345\text{ cm}", "12345", "right"),
    ("12 34", "1234", "unparsable"),
    ("1 234 5", "12345", "unparsable"),
    ("1 234/5", "1234/5", "unparsable"),  # or 1 + 234/5
    ("0{,}500", "500", "wrong"),
    ("2x + 1", "2 x+1", "right"),
    (r"1\!2", "12", "right"),
    # hostile or meaningless
    ("9**9**9**9", "9", "unparsable"),
    ("9^{9^{9^9}}", "9", "unparsable"),
    ("9^9^9^9", "9", "unparsable"),
    ("(9!)!", "9", "unparsable"),
    ("100000!", "9", "unparsable"),
    ("10^{1000000}", "9", "unparsable"),
    (r"\sum_{k=1}^{10^9} k", "9", "unparsable"),
    (r"\Gamma(10^9)", "9", "unparsable"),
    ("(" * 300 + "1" + ")" * 300, "1", "unparsable"),
    ("{" * 300 + "1" + "}" * 300, "1", "unparsable"),
    ("1" * 41, "x", "wrong"),
    ("x" * 1000, "x", "unparsable"),
    (r"\input{/etc/passwd}", "1", "unparsable"),
    ("__import__('os').system('true')", "1", "unparsable"),
]


@pytest.mark.parametrize(("content", "gold", "reason"), BOXED)
def test_verdict_on_a_boxed_answer(content: str, gold: str, reason: str) -> None:
    verdict = LatexVerifier()(f"Therefore it is $\\boxed{{{content}}}$.", gold)
    assert verdict.reason == reason
    assert verdict.correct == (reason == "right")


@pytest.mark.parametrize(
    ("text", "gold", "reason"),
    [
        ("The answer is 5", "5", "no_answer"),  # without a box, unless `fallback`
        ("", "5", "no_answer"),
        (r"\boxed{}", "5", "no_answer"),
        (r"\boxed{5} but then \boxed{", "5", "no_answer"),
        (r"\boxed{4} no, \boxed{5}", "5", "right"),
        (r"\boxed{5} no, \boxed{4}", "5", "wrong"),
        (r"\boxed{3}, \boxed{5} and \boxed{7}", "3, 5, 7", "right"),
        (r"\boxed{3}, \boxed{5}", "3, 5, 7", "wrong"),
        (r"\boxed{\boxed{5}}", "5", "right"),
        ("\\boxed{1\u200b8}", "18", "right"),
        ("\\boxed{1\x008}", "8", "unparsable"),
        ("\ud800 \\boxed{5}", "5", "right"),
        ("\\boxed{\ud800}", "5", "unparsable"),
    ],
)
def test_where_the_answer_is_looked_for(text: str, gold: str, reason: str) -> None:
    assert LatexVerifier()(text, gold).reason == reason


@pytest.mark.parametrize(
    ("text", "gold", "reason"),
    [
        ("#### 72", "72", "right"),
        ("The final answer is $\\frac{1}{2}$.", "0.5", "right"),
        ("#### 72 dollars", "72", "right"),
        ("#### $2\\sqrt{5}$", r"\sqrt{20}", "right"),
        ("#### 5 or 7", "5", "wrong"),
        ("so 3 + 4 = 7", "7", "right"),
        ("so 3 + 4 = 7", "3", "wrong"),
        (r"7, that is \boxed{8}", "7", "wrong"),  # a box outranks everything
        ("nothing at all to be seen here", "7", "no_answer"),
    ],
)
def test_fallback(text: str, gold: str, reason: str) -> None:
    assert LatexVerifier(fallback=True)(text, gold).reason == reason


@pytest.mark.parametrize("gold", ["", "$$", " ", r"\div", "9^{9^{9^9}}", "x" * 500])
def test_golds_that_can_never_be_matched_are_refused(gold: str) -> None:
    with pytest.raises(DataError, match="never be matched"):
        LatexVerifier().check_gold(gold)


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError):
        LatexVerifier(timeout_s=0)


def test_every_verdict_is_the_same_off_the_main_thread() -> None:
    """Time limits by signal raise there; ours must not."""
    rows = [(f"\\boxed{{{content}}}", gold, reason) for content, gold, reason in BOXED[:30]]
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(LatexVerifier()(text, gold).reason for text, gold, _ in rows))
    thread.start()
    thread.join(timeout=120)
    assert found == [reason for _, _, reason in rows]


@pytest.mark.parametrize(
    "text", ["e^{-x^2}", "2^6 3^5 5^4", r"\frac{n!}{k!(n-k)!}", "x^{100}", r"\int_0^1 x\,dx", "5!"]
)
def test_ordinary_mathematics_is_not_called_costly(text: str) -> None:
    assert not is_costly(text)


def shared_lines(name: str) -> list[dict]:
    file = SHARED / name
    if not file.is_file():
        pytest.skip(f"shared data file {name} is not beside this checkout")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_math500_gold_is_matched_by_itself() -> None:
    """Bare golds would reject 108 of these 500 (baselines 0.4)."""
    verifier = LatexVerifier()
    rows = shared_lines("bench/math500.jsonl")
    for row in rows:
        verifier.check_gold(row["answer"])
    missed = [row["answer"] for row in rows if not verifier(f"so \\boxed{{{row['answer']}}}", row["answer"]).correct]
    assert (len(rows), missed) == (500, [])


def test_shared_cases() -> None:
    """All 240 agree; what must never come back is a wrong answer accepted."""
    cases = shared_lines("verify/cases.jsonl")
    verdicts = LatexVerifier(fallback=True, timeout_s=60).judge_many(
        [case["pred"] for case in cases], [case["gold"] for case in cases]
    )
    missed = [
        (case["gold"], case["pred"])
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.correct != case["expected"]
    ]
    assert (len(cases), missed) == (240, [])


PAIRS = [(kind, *case) for kind, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(("kind", "gold", "pred", "same"), PAIRS)
def test_pairs_of_every_kind(kind: str, gold: str, pred: str, same: bool) -> None:
    assert LatexVerifier(fallback=True)(pred, gold).correct == same


def test_the_table_has_near_misses_of_every_kind_and_more_pairs_than_the_shared_file() -> None:
    assert [kind for kind, cases in CASES.items() if all(same for *_, same in cases)] == []
    assert len({pair[1:3] for pair in PAIRS}) > 240


def test_many_are_judged_as_one_by_one_and_in_order() -> None:
    texts = [f"so \\boxed{{{content}}}" for content, _, _ in BOXED]
    golds = [gold for _, gold, _ in BOXED]
    verifier = LatexVerifier()
    assert verifier.judge_many(texts, golds) == [verifier(t, g) for t, g in zip(texts, golds, strict=True)]


def test_what_goes_to_math_verify_is_decided_there() -> None:
    total = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}+\begin{pmatrix}1&1\\1&1\end{pmatrix}"
    verifier = LatexVerifier(timeout_s=60)
    right, wrong = (rf"\begin{{pmatrix}}2&3\\4&{n}\end{{pmatrix}}" for n in (5, 6))
    assert verifier.rule(f"\\boxed{{{total}}}", right).rule == "math-verify"
    assert verifier.judge_many([f"\\boxed{{{total}}}"] * 2, [right, wrong]) == [RIGHT, not_right()]
