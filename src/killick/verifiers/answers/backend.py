r"""What is left to math-verify: sums, integrals, limits, matrix arithmetic. Only worker processes call `decide`.

A bare gold such as `2\sqrt{5}` is read by math-verify as 2, which rejects the right answer and accepts a wrong "2"; so
both sides are always wrapped. What it would misread ("1 2" for 1 + 2) or compute with for minutes is never passed on.
"""

import logging
import re
from itertools import product
from typing import Any

from killick.verifiers.boxed import closing

_MAX_DEPTH = 20
_RELATIVE = 1e-5
_SUITED = re.compile(
    r"\\(?:sum|prod|int|iint|oint|lim|begin|det|cap|subset|Gamma|zeta|partial|nabla|max|min|gcd|lcm|binom|cdot\s*\\begin)(?![a-z])"
)
_MISREAD = re.compile(r"\\ldots|\\pm|\\mp|\\%|%|:|\\approx|[0-9],[0-9]")
_TWO_NUMBERS = re.compile(r"(?<![0-9^_])[0-9]+\.? \.?[0-9]")  # \log_2 8 and 2^6 3^5 are fine
_COSTLY = (
    re.compile(r"[0-9]{41}"),  # a number nobody writes
    re.compile(r"(?:\^|\*\*)\s*[({]*-?[0-9]{5}"),  # x^{10000} or more
    re.compile(r"\)\s*(?:\^|\*\*)\s*\{?[0-9]{3}"),  # (x+1)^{100}: expanded term by term
    re.compile(r"(?:\^|\*\*)\s*[({]*\s*-?[0-9]+\s*[)}]*\s*(?:\^|\*\*)"),  # 9^9^9, 9**9**9
    re.compile(r"\^\s*[({][^{}]*[0-9]\s*(?:\^|!)"),  # 9^{9^9}, 9^{9!}
    re.compile(r"[0-9]{5}\s*[)}]*\s*!|!\s*[)}]*\s*!|\([^()]*[0-9]\s*\^[^()]*\)\s*!"),  # 10000!, (9!)!, (9^9)!
    re.compile(r"\\(?:[Gg]amma|zeta|d?binom|tbinom|sum|prod|int)(?=.*(?:[0-9]{4}|[0-9]{2}\s*\^|!))", re.DOTALL),
    re.compile(r"[0-9][eE][+-]?[0-9]{3}"),
)


def is_costly(text: str) -> bool:
    """Whether computing with this text may take minutes or exhaust memory. Errs on the side of yes."""
    depth = deepest = 0
    for bracket in re.findall(r"[({\[\])}]", text):
        depth += 1 if bracket in "({[" else -1
        deepest = max(deepest, depth)
    return deepest > _MAX_DEPTH or any(pattern.search(text) for pattern in _COSTLY)


def is_safe(text: str) -> bool:
    """Whether math-verify can be trusted with a normalised text: it is well-formed, affordable, and not misread."""
    return (
        not _MISREAD.search(text)
        and not _TWO_NUMBERS.search(text)
        and closing(text + "}", 0) == len(text) + 1
        and not is_costly(text)
    )


def is_suited(text: str) -> bool:
    """Whether a text that our own grammar does not cover is worth asking math-verify about."""
    return bool(_SUITED.search(text)) and is_safe(text)


def decide(gold: str, found: str) -> bool | None:
    """math-verify's opinion on two normalised texts, None when it reads nothing in one of them.

    Unbounded in time and memory: for worker processes. It is refused where it rounds numbers to the same sixth decimal.
    """
    golds, candidates = _parse(gold), _parse(found)
    if not golds or not candidates:
        return None
    return any(_equal(a, b) for a, b in product(golds, candidates))


def _parse(text: str) -> list[Any]:
    from math_verify import parse
    from math_verify.parser import LatexExtractionConfig

    found = parse(
        f"\\boxed{{{text}}}",
        extraction_config=(LatexExtractionConfig(boxed_match_priority=0),),
        fallback_mode="no_fallback",
        parsing_timeout=None,
        raise_on_error=True,
    )
    return list(found)


def _equal(gold: Any, candidate: Any) -> bool:
    from math_verify import verify
    from sympy import Expr, N

    if not verify(gold, candidate, timeout_seconds=None, raise_on_error=True):
        return False
    if not all(isinstance(side, Expr) and side.is_number for side in (gold, candidate)):
        return True
    left, right = N(gold, 15), N(candidate, 15)
    return bool(abs(left - right) <= _RELATIVE * abs(left)) if left.is_finite and right.is_finite else False


def warm_up() -> None:
    """Load math-verify before the first call, and silence its advice about time limits: the process has its own."""
    for name in ("math_verify.parser", "math_verify.grader"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    decide("x", "x")
