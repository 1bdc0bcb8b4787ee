"""Where the brackets of a text are, and what stands outside them."""

import re
from itertools import accumulate


def split(text: str, pattern: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Parts of a text between the matches of a pattern outside all brackets, and the matches."""
    if not pattern.search(text):
        return [text.strip()], []
    depth, start, parts, marks = 0, 0, [], []
    depths = []
    for position, character in enumerate(text):
        escaped = position > 0 and text[position - 1] == "\\" and character not in "{}"
        if character in "([{" and not escaped:
            depth += 1
        depths.append(depth)
        if character in ")]}" and not escaped:
            depth -= 1
    for match in pattern.finditer(text):
        if match.end() > match.start() and depths[match.start()] == 0 and match.start() >= start:
            parts.append(text[start : match.start()].strip())
            marks.append(match[0].strip())
            start = match.end()
    return [*parts, text[start:].strip()], marks


def depth(text: str) -> int:
    """How many brackets are open at once, at most."""
    depths = accumulate((character in "([{") - (character in ")]}") for character in text)
    return max(depths, default=0)


def holds_all(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and position < len(text) - 1 and character in ")]}":
            return False
    return depth == 0
