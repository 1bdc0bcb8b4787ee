r"""Where the \boxed{…} of a text are; every look-up here is linear in the length of the text."""

import re

_BRACE = re.compile(r"(?<!\\)[{}]")
_OPENING = re.compile(r"\\boxed\s?\{")
_UNBRACED = re.compile(r"\\boxed\s+(-?[0-9]+(?:\.[0-9]+)?|[A-Za-z])(?![0-9A-Za-z])")  # \boxed 5
_BLANK = r"(?:[\s$]|\\q?quad(?![a-z])|\\[ ,;()\[\]])*"
_JOINED = re.compile(
    rf"{_BLANK}(?:[,;]|,?\s?(?:and|or)|,?\s?\\(?:text|mbox)\s?\{{\s*(?:and|or)\s*\}}){_BLANK}"
    rf"(?:(?P<name>[A-Za-z](?:_\{{?[0-9]\}}?)?)\s?={_BLANK})?"
)


# A box is only part of what is said: -\boxed{9}, 2\boxed{9}, \frac{\boxed{9}}{2}, \boxed{9}^2, \boxed{9}0.
_DRAWN_IN = re.compile(
    r"(?:(?:^|[$=(\[{])\s?-|[0-9]"
    r"|\\(?:sqrt|[dt]?frac|binom)\s?(?:\{[^{}]{0,20}\}\s?)?\{|\b(?:not|never)\s)\s?\$?$",
    re.IGNORECASE,
)
_DRAWN_ON = re.compile(r"\s?\^\s?\{?\s?-?[0-9]|[0-9]")


def closing(text: str, start: int) -> int | None:
    """Position after the brace that closes the one before `start`; None when it is never closed."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return None


def last_box(text: str) -> str | None:
    r"""Content of the last box, the inner one of two nested.

    Returns:
        None without a box; "" when it has no braces or is never closed.
    """
    start = text.rfind("\\boxed")
    if start < 0:
        return None
    opening = _OPENING.match(text, start)
    end = closing(text, opening.end()) if opening else None
    return text[opening.end() : end - 1] if opening and end else ""


def _named(name: str | None, before: str) -> bool:
    """Whether the box behind `before` has the name that the next one has: x = 2 and x = 3, but not x = 2 and y = 3."""
    if not name:
        return True
    letter = re.escape(name[0])
    return re.search(rf"(?<![A-Za-z]){letter}(?:_\{{?[0-9]\}}?)?\s?=\s?$", before) is not None


def boxed_answer(text: str) -> str | None:
    r"""The last box's content, the outer one of two nested, joined with earlier boxes that belong to the same list.

    Returns:
        None without a box; "" when the last one is empty or never closed, or only part of a formula.
    """
    if "\\boxed" not in text:
        return None
    text = _UNBRACED.sub(r"\\boxed{\1}", text)
    boxes: list[tuple[int, int, str]] = []
    for match in _OPENING.finditer(text):
        if boxes and match.start() < boxes[-1][1]:
            continue  # a box inside a box
        end = closing(text, match.end())
        boxes.append((match.start(), end or len(text) + 1, "" if end is None else text[match.end() : end - 1]))
    if not boxes:
        return None
    if not boxes[-1][2].strip():
        return ""
    parts = [boxes[-1][2]]
    for left, right in zip(reversed(boxes[:-1]), reversed(boxes[1:]), strict=True):
        joint = _JOINED.fullmatch(text, left[1], right[0])
        if not joint or not _named(joint["name"], text[max(0, left[0] - 20) : left[0]]):
            break
        parts.insert(0, left[2])
    if _DRAWN_IN.search(text[max(0, boxes[-1][0] - 30) : boxes[-1][0]]) or _DRAWN_ON.match(text, boxes[-1][1]):
        return ""
    return ", ".join(parts)
