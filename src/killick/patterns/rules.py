r"""A classifier of reasoning patterns in English texts, by rules (`table`).

A rule is a few literal anchors and regular expressions. The expressions run only when an anchor occurs in the text, so
most rules cost a few substring searches. The text is cut to `MAX_CHARS`, in lower case, with plain apostrophes, without
dollars and bold print, and with single blanks between words. No quantifier repeats what can match in two ways, and
every gap is bounded, so the time is linear in the length of the text whatever the text holds.

The rules read words, not mathematics: an argument made without the usual words is missed, and the same words used for
something else are mistaken for it. `docs/patterns.md` has precision and recall.
"""

import re
from collections.abc import Callable
from functools import cache

from killick.patterns.names import PATTERNS
from killick.patterns.table import PLACEHOLDERS, RULES, Rule

MAX_CHARS = 20_000

_REPLACED = (("’", "'"), ("‘", "'"), ("$", ""), ("*", ""), ("`", ""))


assert RULES.keys() == PATTERNS.keys(), "every pattern has rules"


def cleaned(text: str) -> str:
    """The text as the rules see it."""
    text = text[:MAX_CHARS]
    for old, new in _REPLACED:  # faster than `str.translate` on texts that are not ASCII
        text = text.replace(old, new)
    return " ".join(text.lower().split())


def classify(text: str) -> frozenset[str]:
    """The patterns a text shows.

    Args:
        text: a completion; hostile texts cost no more than others, only the first `MAX_CHARS` characters are read.
    """
    text = cleaned(text)
    return frozenset(name for name, rules in _compiled() if _shows(text, rules))


def _shows(text: str, rules: tuple["_Compiled", ...]) -> bool:
    for anchors, search in rules:
        for anchor in anchors:
            if anchor in text:
                if search(text):
                    return True
                break
    return False


_Compiled = tuple[tuple[str, ...], Callable[[str], re.Match[str] | None]]


@cache
def _compiled() -> tuple[tuple[str, tuple[_Compiled, ...]], ...]:
    return tuple((name, tuple((rule.anchors, _search(rule)) for rule in rules)) for name, rules in RULES.items())


def _search(rule: Rule) -> Callable[[str], re.Match[str] | None]:
    expression = "|".join(rule.expressions)
    for name, meaning in PLACEHOLDERS.items():
        expression = expression.replace(name, meaning)
    return re.compile(expression).search
