"""Where a completion states its final answer, for verifiers of answers that are texts; every look-up is linear."""

import re
import unicodedata
from typing import Literal, NamedTuple

from killick.verifiers.boxed import boxed_answer
from killick.verifiers.number import clean

_TAG = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>", re.IGNORECASE | re.DOTALL)
_MARK = r"[*_`\s]"
ANSWER_IS = re.compile(
    rf"\b(?:answer|choice|option)s?(?:\s(?:here|should|must|would|to\s(?:this|the)\s(?:question|problem)))?{_MARK}{{0,6}}"
    rf"(?:\s(?:is|be)\b(?:\s?:)?|:|=)",
    re.IGNORECASE,
)
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|boxed)\s?\{([^{}]*)\}")
_DRESSING = re.compile(r"[*`$]|(?<!\w)_|_(?!\w)|\\[()\[\]!,;]")
_SPACES = re.compile(r"\s+")


class Final(NamedTuple):
    """A final answer and where it was found."""

    text: str
    found: Literal["tag", "box", "marker"]


def final_answer(completion: str) -> Final | None:
    """The last complete tag, else the last box, else the line after the last marker; None when there is none.

    Args:
        completion: hostile text, already cut to a bounded length.
    """
    text = clean(completion)
    tags = _TAG.findall(text)
    if tags:
        box = boxed_answer(tags[-1])
        return Final(box if box is not None else tags[-1], "tag")
    box = boxed_answer(text)
    if box is not None:
        return Final(box, "box")
    segment = marked(text)
    return None if segment is None else Final(segment, "marker")


def marked(text: str) -> str | None:
    """What stands behind the last "answer is", "answer:" and the like: the rest of the line, or the next line."""
    matches = list(ANSWER_IS.finditer(text))
    if not matches:
        return None
    return text[matches[-1].end() :].lstrip(" \t*_`:\n").partition("\n")[0]


def undress(text: str) -> str:
    r"""Bold print, dollars and `\text{…}` around words removed; nothing that could change a formula."""
    text = _WRAPPER.sub(r"\1", _WRAPPER.sub(r"\1", text))
    return _SPACES.sub(" ", _DRESSING.sub("", text)).strip()


def plain(text: str) -> str:
    """A text for comparison: undressed, without case, quotation marks around it and a full stop behind it."""
    return undress(unicodedata.normalize("NFKC", text)).strip(" \"'“”‘’.").casefold()
