"""A classifier of reasoning patterns in English texts, by rules (`arguments`, `searches`).

A rule is a few literal anchors and regular expressions. The expressions run only when an anchor occurs in the text, so
most rules cost a few substring searches. The text is cut to `MAX_CHARS`, in lower case, without dollars, bold print,
bullets and numbers of steps, and with single blanks between words; lines stay lines. No quantifier repeats what can
match in two ways, and every gap is bounded, so the time is linear in the length of the text whatever the text holds.

The rules read words, not mathematics: an argument made without the usual words is missed, and the same words used for
something else are mistaken for it. `docs/patterns.md` has precision and recall.
"""

import re
from functools import cache
from itertools import islice
from types import MappingProxyType

from killick.patterns.arguments import ARGUMENTS
from killick.patterns.names import PATTERNS
from killick.patterns.searches import SEARCHES
from killick.patterns.vocabulary import PLACEHOLDERS

MAX_CHARS = 20_000

# LaTeX that only sets type, and the marks of bold print and headings
_REPLACED = (
    *((quote, "'") for quote in "’‘"),
    *((mark, "") for mark in ("$", "*", "`", "#", "&", "\\(", "\\)", "\\[", "\\]", "\\,")),
)
_ITEM = re.compile(r"\A(?:[-•>] |\d{1,2}[.)] |step \d{1,2}\s?[:.)] ?)+")

RULES = MappingProxyType({**ARGUMENTS, **SEARCHES})
assert RULES.keys() == PATTERNS.keys(), "every pattern has rules"


def cleaned(text: str) -> str:
    """The text as the rules see it: lines without marks; a line that starts in lower case goes on with the last one."""
    text = text[:MAX_CHARS]
    for old, new in _REPLACED:  # faster than `str.translate` on texts that are not ASCII
        text = text.replace(old, new)
    parts: list[str] = []
    for line in text.splitlines():
        words = " ".join(line.split())
        if words:
            parts += (" " if words[0].islower() else "\n", _ITEM.sub("", words.lower()))
    return "".join(parts[1:])


def classify(text: str) -> frozenset[str]:
    """The patterns a text shows.

    Args:
        text: a completion; hostile texts cost no more than others, only the first `MAX_CHARS` characters are read.
    """
    text = cleaned(text)
    return frozenset(name for name, rules in _compiled() if _shows(text, rules))


def _shows(text: str, rules: tuple["_Compiled", ...]) -> bool:
    return any(
        any(anchor in text for anchor in anchors) and any(_found(text, one, times) for one in expressions)
        for anchors, expressions, times in rules
    )


def _found(text: str, expression: re.Pattern[str], times: int) -> bool:
    return sum(1 for _ in islice(expression.finditer(text), times)) == times


_Compiled = tuple[tuple[str, ...], tuple[re.Pattern[str], ...], int]


@cache
def _compiled() -> tuple[tuple[str, tuple[_Compiled, ...]], ...]:
    return tuple(
        (name, tuple((rule.anchors, tuple(map(_expression, rule.expressions)), rule.times) for rule in rules))
        for name, rules in RULES.items()
    )


def _expression(expression: str) -> re.Pattern[str]:
    for name, meaning in PLACEHOLDERS.items():
        expression = expression.replace(name, meaning)
    return re.compile(expression, re.DOTALL | re.MULTILINE)
