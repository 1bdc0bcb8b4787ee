r"""What a rule is, and the words many rules share.

The rules are in `arguments` (how a proof or a set-up is built) and `searches` (how an answer is looked for and tested);
`rules` matches them. An expression may use the names of `PLACEHOLDERS`. A blank in it is one blank, `\s` also a line
break; `.` matches line breaks too.
"""

from types import MappingProxyType
from typing import NamedTuple


class Rule(NamedTuple):
    """One way a pattern shows in words.

    Attributes:
        anchors: literals, of which one must occur in the text.
        expressions: regular expressions, of which one must match.
        times: matches needed, not overlapping: two attempts that fail, not one.
    """

    anchors: tuple[str, ...]
    expressions: tuple[str, ...]
    times: int = 1


def rule(anchors: str, *expressions: str, times: int = 1) -> Rule:
    """A rule from its anchors, joined by bars."""
    return Rule(tuple(anchors.split("|")), expressions, times)


PLACEHOLDERS = MappingProxyType(
    {
        # where a sentence, a line or a bracket starts
        "<start>": r"(?:^|[.;:!?()>\]}—] ?)(?:and |but |so |then |now |ok(?:ay)?,? )?",
        # what a figure or a theorem names: not an unknown
        "<figure>": (
            r"(?:the |an? )?(?:\w+ )?(?:cent(?:er|re)|midpoint|points?|foot|feet|intersections?|circles?|triangle|set"
            r"|event|origin|function|line|projection|vertex|vertices|any|arbitrary)\b"
        ),
        # the name of an unknown that stands alone; "a" and "i" are words
        "<letter>": (
            r"(?:[b-hj-z](?:_\{?\w{1,2}\}?)?|a(?=[,.;:)]| and [a-z]\b)"
            r"|\\(?:alpha|beta|gamma|theta|lambda)|[α-ω])(?![\w'])"
        ),
        # a condition in letters follows
        "<relation>": r"(?=.{0,300}?(?:(?<![a-z\\])[a-z\d]|\\circ)\)?,? ?(?:[=<>≤≥≡]|\\[lg]eq?\b|\\equiv))",
        # the start of an expression in a variable
        "<expression>": (
            r"(?!\([^()]{1,30},)[\d+*/^ (.√-]{0,8}"
            r"(?:[b-z]\b|a\b(?! [a-z]{2})|[a-z]\^|\\[a-z]{2}|(?:log|sin|cos|tan|sqrt)\b)"
        ),
        "<suppose>": r"(?:suppos(?:e|ing)|assum(?:e|ing)|imagine|pretend(?:ing)?)\b",
        "<some>": r"(?:two|three|four|five|six|several|following|separate|different|distinct|possible|into|all|both)",
        "<impossible>": (
            r"(?:impossib\w+|absurd\w*|violat\w+|untenable|contrary to|not possible|no such"
            r"|(?:cannot|can't|can not|could not|couldn't) (?:be|happen|hold|occur|exist)|inconsistent|is false)\b"
        ),
        "<too>": r"too (?:small|large|low|high|big|much|many|few|short|long)\b",
        "<check>": r"(?:verify|check|double[- ]check|re-?check|cross[- ]check|confirm)",
        "<let me>": r"(?:let's|let us|let me|we|i'll|i will|i can|i should|can|should|must)",
    }
)
