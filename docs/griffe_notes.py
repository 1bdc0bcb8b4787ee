"""Sets the notes of a docstring (Gradient, Limits, Source) as paragraphs of their own when the site is built.

Left alone, griffe makes a box of a note that runs over several lines, with its first line as title.
"""

import re
from typing import Any

import griffe

_NOTE = re.compile(r"(Gradient|Limits|Source): (?=\S)")


def paragraphs(docstring: str) -> str:
    """The docstring with every note in a paragraph, its label in bold."""
    lines: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if _NOTE.match(line):
            inside = True
            lines += ["", _NOTE.sub(r"**\1:** ", line, count=1)]
        elif inside and line.startswith(" "):
            lines.append(line.strip())
        else:
            inside = False
            lines.append(line)
    return "\n".join(lines)


class Notes(griffe.Extension):
    """Applies `paragraphs` to every object."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = paragraphs(obj.docstring.value)
