"""Hostile answers: judged in bounded time, nothing executed, and never accepted by accident."""

import os
import time
from pathlib import Path

import pytest

from killick.verifiers.latex import LatexVerifier

BOUND_S = 2.0
CANARY = "KILLICK_CANARY"
MATRIX = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"


def inject(path: Path) -> list[str]:
    """Ways to have code run by a parser that evaluates text."""
    code = f"__import__('os').system('touch {path}')"
    return [
        code,
        f"eval({code!r})",
        f"().__class__.__bases__[0].__subclasses__(); {code}",
        rf"\text{{{code}}}",
        rf"\sum_{{k=1}}^{{2}} {code}",
        rf"\int_0^1 open('{path}','w') dx",
        f"x.__class__.__mro__; open('{path}', 'w').close()",
        rf"\lim_{{x\to 0}} exec(\"open('{path}','w')\")",
        rf"\input{{{path}}}",
        rf"\write18{{touch {path}}}",
        f"os.environ.update({CANARY}='1')",
        f"{MATRIX} + {code}",
    ]


CORPUS = {
    "tower": "9**9**9**9",
    "tower in LaTeX": "9^{9^{9^9}}",
    "open brackets": "(" * 1_000_000,
    "open braces": "{" * 1_000_000,
    "boxes": "\\boxed{" * 100_000,
    "deep brackets": "(" * 190 + "1" + ")" * 190,
    "deep braces": "{" * 190 + "1" + "}" * 190,
    "deep fractions": "\\frac{1}{" * 35 + "2" + "}" * 35,
    "deep roots": "\\sqrt{" * 39 + "2" + "}" * 39,
    "exponent of exponents": "10^{10^{10}}",
    "exponent": "1e999999999",
    "large exponent": "(x+y+z)^{3000}",
    "large values, small difference": "(0.5)! + 2^{15000}\\pi",
    "exponentials": "e^{e^{e^{e^{e}}}}",
    "factorials": "((9!)!)!",
    "many factorials": ",".join(f"{n}!" for n in range(1900, 1949)),
    "nested sums": "\\sum_{k=1}^{290}\\sum_{j=1}^{290}\\sum_{i=1}^{290} k",
    "costly sum": "\\sum_{k=1}^{300}\\frac{1}{(k!)^9}",
    "sum for math-verify": "\\sum_{k=1}^{10^9} \\frac{1}{k^2}",
    "matrix power": f"{MATRIX}^{{9999}}",
    "large matrix": "\\begin{pmatrix}" + "&".join(["9^{9^9}"] * 30) + "\\end{pmatrix}",
    "double signs": "\\pm 1" * 40,
    "signs": "-" * 390 + "1",
    "commas": "1," * 190,
    "letters": "a" * 390,
    "bars": "|" * 200,
    "dollars": "$" * 50_000,
    "formulas never closed": "\\[" * 25_000,
    "tags": "<answer>" * 6_000,
    "markers": "final answer is " * 3_000,
    "blanks": " " * 49_000 + "I hope it is correct",
    "joined boxes": "\\boxed{1}," * 5_000,
    "unit words": "7 " + "squares " * 45 + "!",
    "zero width": "\u200b" * 100 + "\\boxed{\u200b\u202e6\u200f}",
    "null bytes": "\\boxed{5\x00\x00}",
    "lone surrogates": "\\boxed{\ud800\udfff5}",
    "division by zero": "\\boxed{\\frac{1}{0}}",
    "set with a tower": "[0, 9^{9^9}] \\setminus \\{7\\}",
    "set over zero": "\\{\\frac{1}{0}\\} \\cap \\{7\\}",
    "sets of roots": " \\cap ".join("\\{" + ",".join(f"{n}^{{1/{k}}}" for k in range(3, 23)) + "\\}" for n in (2, 3)),
    "file": "\\boxed{\\input{/etc/passwd}}",
    "megabyte": "word 7 " * 150_000,
}
GOLDS = ("5", r"\frac{123456789}{7}", r"x^2+\sqrt{2}", "(1,2)", r"\{1,2\}", r"x \geq 2", MATRIX)


@pytest.fixture(scope="module")
def verifier() -> LatexVerifier:
    made = LatexVerifier(fallback=True, timeout_s=BOUND_S)
    assert made(rf"\boxed{{{MATRIX}{MATRIX}}}", MATRIX).reason in ("wrong", "timeout")  # a worker is up
    return made


@pytest.mark.parametrize("gold", GOLDS)
@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS.keys())
def test_a_verdict_in_bounded_time_and_never_right(verifier: LatexVerifier, text: str, gold: str) -> None:
    for written in (text, f"\\boxed{{{text}}}" if len(text) < 1000 and "boxed" not in text else text):
        start = time.perf_counter()
        verdict = verifier(written, gold)
        took = time.perf_counter() - start
        assert not verdict.correct
        assert verdict.reason in ("wrong", "no_answer", "unparsable", "timeout")
        assert took < BOUND_S + 10  # a replaced worker has to start again
        verifier.answer_key(written, gold)  # no error either


def test_hidden_characters_do_not_change_a_right_answer(verifier: LatexVerifier) -> None:
    assert verifier("\\boxed{1\u200b8}", "18").correct
    assert verifier("\u202e\\boxed{18\u200f}", "18").correct
    assert not verifier("\\boxed{1\x008}", "18").correct
    assert not verifier("\\boxed{1\ud8008}", "18").correct


def test_nothing_is_executed(verifier: LatexVerifier, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for text in inject(canary):
        for gold in ("5", MATRIX, r"\sum_{k=1}^{n} k"):
            for written in (text, f"\\boxed{{{text}}}"):
                assert not verifier(written, gold).correct
    assert not canary.exists()
    assert CANARY not in os.environ


def test_nothing_is_executed_by_the_worker_either(tmp_path: Path) -> None:
    """Straight to math-verify, past the guards that keep such texts from it."""
    from killick.verifiers.service import shared

    canary = tmp_path / "canary"
    calls = [[text, text] for text in inject(canary)]
    shared().call("killick.verifiers.answers.backend:decide", calls, 10.0)
    assert not canary.exists()


def test_the_canary_would_show(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    os.system(inject(canary)[0].split("'")[3])
    assert canary.exists()
