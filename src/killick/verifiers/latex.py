r"""Mathematical answers in LaTeX, compared by math-verify with the gold wrapped.

A bare gold such as `2\sqrt{5}` is read by math-verify as 2, which rejects the right answer and accepts a wrong "2"; it
is therefore never passed bare (108 of the 500 MATH-500 golds are unreachable otherwise).

The last `\boxed{…}` of a completion is its answer; boxes joined by commas or "and" form one list; an empty or unclosed
last box is `no_answer`. Before math-verify is asked, exact rational arithmetic and equal text decide the plain cases.
What it would misread (it takes "1 2" for 1 + 2) or compute with for minutes (towers of powers, factorials of large
numbers, deep nesting) is `unparsable`.
"""

import logging
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from math_verify import parse, verify
from math_verify.parser import LatexExtractionConfig
from sympy import Expr, N

from killick.errors import ConfigError, DataError
from killick.verifiers.boxed import boxed_answer, closing
from killick.verifiers.deadline import DeadlineExceeded, within
from killick.verifiers.number import NumberVerifier, clean, exact
from killick.verifiers.types import RIGHT, Verdict, wrong

_log = logging.getLogger(__name__)
_LATEX = (LatexExtractionConfig(boxed_match_priority=0),)
_MAX_DEPTH = 20
_RELATIVE = 1e-5
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
_FINAL = re.compile(r"final answer\s?(?:is|:)\s*([^\n]*)", re.IGNORECASE)
_HASHES = re.compile(r"####[ \t]*([^\n]*)")
# White space in all its spellings. Math mode ignores it, but between two digits it parts two numbers.
_SPACE = re.compile(r"(?:(?<!\\)\\[,;:> ]|~|\\q?quad(?![A-Za-z])|\\(?:text|mbox)\{\s*\}|\s)+")
_THOUSANDS = re.compile(
    r"(?<![0-9A-Za-z.,^_/])(?<![0-9A-Za-z.^_] )[1-9][0-9]{0,2}(?: [0-9]{3})+(?! ?[0-9/^])(?!,[0-9])"
)  # 12 345 678, but not the 1 234 of "5 1 234", "1 234/5" or "1,234 567"
_MIXED = re.compile(r"(?<![0-9.^_/])(?<![0-9.] )([0-9]{1,9}) ([0-9]{1,9})/([0-9]{1,9})(?! ?[0-9/^.])")
_BARE_ARGUMENTS = re.compile(r"(\\[dt]?(?:frac|binom)) ?([0-9]) ?([0-9])")  # \frac 1 2
_TWO_NUMBERS = re.compile(r"(?<![0-9^_])[0-9]+\.? \.?[0-9]")  # \log_2 8 and 2^6 3^5 are fine
_DROP = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\?\$")
_NEEDLESS_SPACE = re.compile(r"(?<![0-9.]) | (?![0-9.])")


def _no_timeout_notice(record: logging.LogRecord) -> bool:
    """Hide math-verify's advice to bring one's own time limit: `within` is that limit."""
    return "Timeout is disabled" not in str(record.msg)


for _name in ("math_verify.parser", "math_verify.grader"):
    logging.getLogger(_name).addFilter(_no_timeout_notice)


def is_costly(text: str) -> bool:
    """Whether computing with this text may take minutes or exhaust memory. Errs on the side of yes."""
    depth = deepest = 0
    for bracket in re.findall(r"[({\[\])}]", text):
        depth += 1 if bracket in "({[" else -1
        deepest = max(deepest, depth)
    return deepest > _MAX_DEPTH or any(pattern.search(text) for pattern in _COSTLY)


def _spaced(text: str) -> str:
    """One spelling of white space, none inside a number with separated thousands; everything below reads this."""
    text = re.sub(r",\\!\s*", ",", clean(text)).replace("\\!", "")
    text = _BARE_ARGUMENTS.sub(r"\1{\2}{\3}", _SPACE.sub(" ", text).strip())
    return _THOUSANDS.sub(lambda match: match[0].replace(" ", ""), text)


def _plain(text: str) -> str:
    """Spelling differences that never change the meaning, removed."""
    text = re.sub(" +", " ", _DROP.sub(" ", text.rstrip(" ."))).strip()
    return _NEEDLESS_SPACE.sub("", text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")


def _mixed(match: re.Match[str]) -> str:
    r"""2 3/4 as 2\frac{3}{4}, which math-verify reads as 11/4; 2 7/4 stays what it is."""
    return rf"{match[1]}\frac{{{match[2]}}}{{{match[3]}}}" if int(match[2]) < int(match[3]) else match[0]


def _has_stray_number(text: str) -> bool:
    """Whether two numbers stand side by side, as in "1 2": math-verify would add them up."""
    return bool(_TWO_NUMBERS.search(_MIXED.sub(_mixed, _plain(text))))


def _compare_numbers(found_text: str, gold_text: str) -> bool | None:
    """Exact comparison where both sides are plain numbers, else None.

    A decimal of six significant digits or more may stand for the exact value it rounds; shorter ones may not. A per
    cent sign may be added to a gold that has none.
    """
    found_text, gold_text = (text.replace("{,}", ",").strip(" $").rstrip(".") for text in (found_text, gold_text))
    found, gold = exact(found_text), exact(gold_text)
    if found is None and gold is not None and exact(found_text.rstrip("\\% ")) == gold:
        return True
    if found is None or gold is None:
        return None
    if found == gold:
        return True
    digits = found_text.lstrip("-").replace(",", "").partition(".")
    if not digits[1] or len((digits[0] + digits[2]).lstrip("0")) < 6 or not digits[2].isdigit():
        return False
    return abs(found - gold) <= Fraction(1, 2 * 10 ** len(digits[2]))


@lru_cache(maxsize=16_384)
def _parse_gold(answer: str) -> tuple[Any, ...]:
    return tuple(_parse(_spaced(answer).strip("$").strip()))


def _parse(bare: str) -> list[Any]:
    """Candidates math-verify sees in a wrapped text. The text has no unbalanced brace and is not costly."""
    return parse(
        f"\\boxed{{{_MIXED.sub(_mixed, bare)}}}",
        extraction_config=_LATEX,
        fallback_mode="no_fallback",
        parsing_timeout=None,
        raise_on_error=True,
    )


def _equal(gold: Any, candidate: Any, percent: bool) -> bool:
    """math-verify's opinion, refused where it rounds small numbers to the same sixth decimal (1/2^99 and 1/2^98)."""
    if not verify(gold, candidate, timeout_seconds=None, raise_on_error=True):
        return False
    if percent or not all(isinstance(side, Expr) and side.is_number for side in (gold, candidate)):
        return True
    left, right = N(gold, 15), N(candidate, 15)
    return bool(abs(left - right) <= _RELATIVE * abs(left)) if left.is_finite and right.is_finite else True


@dataclass(frozen=True)
class LatexVerifier:
    r"""Mathematical equivalence of the completion's final answer and the gold.

    Attributes:
        fallback: without a box, take the text after "####" or "final answer is", or else the last number. Off by
            default: with long proofs the last number is often right by accident. GSM8K-like tasks switch it on.
        timeout_s: seconds for one comparison, on any thread.
        max_answer_chars: longer answers are `unparsable`.
        max_chars: only the end of a longer completion is read.
    """

    fallback: bool = False
    timeout_s: float = 5.0
    max_answer_chars: int = 400
    max_chars: int = 50_000

    def __post_init__(self) -> None:
        if min(self.timeout_s, self.max_answer_chars, self.max_chars) <= 0:
            raise ConfigError('timeout_s, max_answer_chars and max_chars of the verifier "latex" must be above 0.')

    def check_gold(self, answer: str) -> None:
        """Refuse a gold that can never be matched.

        Raises:
            DataError: empty, too long, or math-verify reads nothing in it even when it is wrapped.
        """
        reason = self._gold_problem(answer)
        if reason:
            raise DataError(f"The gold answer {answer[:80]!r} can never be matched: {reason}. Correct or drop the row.")

    def _gold_problem(self, answer: str) -> str | None:
        if not answer.strip(" $\n\t"):
            return "it is empty"
        if len(answer) > self.max_answer_chars:
            return f"it has {len(answer)} characters, more than max_answer_chars = {self.max_answer_chars}"
        if exact(answer) is not None:
            return None
        if is_costly(answer):
            return "it is too costly to compute with (nesting, powers or factorials)"
        try:
            return None if within(self.timeout_s, lambda: _parse_gold(answer)) else "math-verify reads nothing in it"
        except (Exception, DeadlineExceeded) as error:
            return f"math-verify fails on it ({type(error).__name__}: {error})"

    def __call__(self, completion: str, answer: str) -> Verdict:
        """Judge one completion in bounded time.

        Raises:
            DataError: the gold is unreadable (never because of the completion).
        """
        found = self.extract(completion)
        if not found:
            return wrong("no_answer")
        if len(found) > self.max_answer_chars:
            return wrong("unparsable")
        found, gold = _spaced(found), _spaced(answer)
        same = _compare_numbers(found, gold)
        if same is not None:
            return RIGHT if same else wrong()
        if _plain(found) == _plain(gold):
            return RIGHT
        if is_costly(answer):
            self.check_gold(answer)
        if is_costly(found) or closing(found + "}", 0) != len(found) + 1 or _has_stray_number(found):
            return wrong("unparsable")
        return wrong() if _has_stray_number(gold) else self._ask(found, answer)

    def _ask(self, found: str, answer: str) -> Verdict:
        def work() -> Verdict:
            gold_candidates = _parse_gold(answer)
            if not gold_candidates:
                self.check_gold(answer)
            candidates = _parse(found)
            if not candidates:
                return wrong("unparsable")
            percent = "%" in found + answer
            pairs = product(gold_candidates, candidates)
            return RIGHT if any(_equal(gold, candidate, percent) for gold, candidate in pairs) else wrong()

        try:
            return within(self.timeout_s, work)
        except DeadlineExceeded:
            return wrong("timeout")
        except DataError:
            raise
        except Exception as error:  # whatever sympy runs into: counted as verify/error_frac, never raised
            _log.debug("math-verify failed on a completion: %s", type(error).__name__, exc_info=True)
            return wrong("error")

    def extract(self, completion: str) -> str | None:
        """The text of the final answer; None or "" when there is none."""
        text = clean(completion[-self.max_chars :])
        box = boxed_answer(text)
        if box is not None or not self.fallback:
            return box.strip() if box else box
        read_number = NumberVerifier(max_chars=self.max_chars).extract
        for pattern in (_HASHES, _FINAL):
            lines = pattern.findall(text)
            if lines and lines[-1].strip():
                number = read_number(f"#### {lines[-1]}")
                return lines[-1].strip(" $*.") if isinstance(number, str) else str(number)
        number = read_number(text)
        return None if isinstance(number, str) else str(number)
