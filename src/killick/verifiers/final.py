r"""Where a completion states its final answer: the places, how each is found, and which of two goes first.

Every verifier reads the first place of this order that exists among those it accepts:

1. `BOX`: the last `\boxed{…}`, with boxes before it that belong to the same list; empty or unfinished is no answer;
2. `TAG`: the last complete `<answer>…</answer>`, `<solution>…</solution>` or `<final_answer>…</final_answer>`;
3. `FINAL`: behind the last "final answer is";
4. `HASHES`: behind the last "####";
5. `ANSWER`: behind the last "answer is", a final one or not, in English or another language, or a heading "Answer";
6. `OPTION`: the same, or behind "option is" or "choice is";
7. `CONCLUSION`: behind the last heading of a conclusion.

What a verifier makes of a text with none of them (the last line, the last number) is its own affair. Every look-up is
linear in the length of the text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from killick.verifiers.boxed import boxed_answer

BOX: Final = "last box"
TAG: Final = "answer tag"
FINAL: Final = "final answer is"
HASHES: Final = "####"
ANSWER: Final = "answer is"
OPTION: Final = "option is"
CONCLUSION: Final = "conclusion"

_TAG = re.compile(r"<(answer|solution|final_answer)>((?:(?!</?\1>).)*)</\1>", re.IGNORECASE | re.DOTALL)
_PRINT = r"[*_`\s]{0,6}"  # bold print, code, blanks


def _marker(noun: str) -> str:
    """Pattern of "<noun> is", "<noun>:", "the <noun> to this question must be" and the like, in bold print or not."""
    return (
        rf"{noun}s?(?:\s(?:here|should|must|would|to\s(?:this|the)\s(?:question|problem))){{0,2}}{_PRINT}"
        r"(?:\s(?:is|be)\b(?:\s?:)?|[:：=])"
    )


_FINAL = re.compile(_marker(r"final\sanswer"), re.IGNORECASE)
_ANSWER = re.compile(
    rf"{_marker('answer')}|answer(?={_PRINT}(?:\$|\\\[|\\\())"  # "the answer $5$"
    r"|^(?:#{1,6}\s?|\*\*)(?:final\s)?answer(?:\*\*)?\n+"  # a heading
    r"|\b(?:r[ée]ponse|respuesta|resposta|risposta|antwort|ответ)(?:\s(?:finale?|correct[ae]?|corretta|richtige))?"
    r"\s?(?:(?:est|es|é|è|ist|lautet)\b\s?:?|:)|答案(?:是|为|：|:)|(?:答え|回答|正解)\s?[は:：]|정답\s?[은:：]",
    re.IGNORECASE | re.MULTILINE,
)
_OPTION = re.compile(_marker(r"(?:answer|\bchoice|\boption)"), re.IGNORECASE)
_CONCLUSION = re.compile(
    r"\b(?:in\sconclusion|conclusions?|final\sanswers?|(?:final|unique|only|correct|consistent)\s(?:solution|assignment)|answers?)"
    r"[*_\s]{0,4}(?::|\bis\b|\bare\b|\n|,)",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_UNIFY = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|boxed)\s?\{([^{}]*)\}")
_DRESSING = re.compile(r"[`$]|(?<!\w)\*|\*(?!\w)|(?<!\w)_|_(?!\w)|\\[()\[\]!,;]")
_INDEX = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+)|[₀₁₂₃₄₅₆₇₈₉ₙ]+")
_ENDS = re.compile(r"^(?:[ \"'“”‘’]|\.(?![0-9]))+|[ \"'“”‘’.]+$")
_SPACES = re.compile(r"\s+")


class Found(NamedTuple):
    """What stands in a place: all of a box or a tag, all the text behind a marker."""

    text: str
    place: str

    @property
    def line(self) -> str:
        """All of a box or a tag, the first line behind a marker."""
        return self.text if self.place in (BOX, TAG) else self.text.partition("\n")[0]


def clean(text: str) -> str:
    r"""Invisible format characters removed, control characters made visible, minus signs and spaces unified.

    "1\u200b8" is shown as 18 and must not be read as 8; a null byte between digits must not hide the first ones.
    """
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf").translate(_UNIFY)
    return _CONTROL.sub("\ufffd", text)


def after_thinking(text: str) -> str:
    """What follows the last `</think>`, where the answer is given; the whole text when nothing does."""
    said = text.rpartition("</think>")[2]
    return said if said.strip() else text


def ending(completion: str, max_chars: int) -> str:
    """The last characters of a completion, `clean` and `after_thinking`; all of it for `max_chars` = 0."""
    return after_thinking(clean(completion[-max_chars:]))


def _tagged(text: str) -> str | None:
    if "</" not in text:
        return None
    return next((content for _, content in reversed(_TAG.findall(text))), None)


def _behind(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    def look(text: str) -> str | None:
        end = max((match.end() for match in pattern.finditer(text)), default=None)
        return None if end is None else text[end:].lstrip(" \t*_`:\n")

    return look


def _hashed(text: str) -> str | None:
    start = text.rfind("####")
    return None if start < 0 else text[start + 4 :].lstrip(" \t")


_LOOK: dict[str, Callable[[str], str | None]] = {
    BOX: boxed_answer,
    TAG: _tagged,
    FINAL: _behind(_FINAL),
    HASHES: _hashed,
    ANSWER: _behind(_ANSWER),
    OPTION: _behind(_OPTION),
    CONCLUSION: _behind(_CONCLUSION),
}


def places(text: str, *accepted: str) -> Iterator[Found]:
    """What stands in the accepted places of a text, in the order above, each looked for only when it is asked for.

    Args:
        text: already cut to a bounded length, and `clean`.
        accepted: names of places, in any order.
    """
    for place, look in _LOOK.items():
        if place in accepted and (found := look(text)) is not None:
            yield Found(found, place)


def find(text: str, *accepted: str) -> Found | None:
    """The first of `places`, which is the final answer; None when there is none."""
    return next(places(text, *accepted), None)


def undress(text: str) -> str:
    r"""Bold print, dollars and `\text{…}` around words removed; nothing that could change a formula."""
    text = _WRAPPER.sub(r"\1", _WRAPPER.sub(r"\1", text))
    return _SPACES.sub(" ", _DRESSING.sub("", text)).strip()


def plain(text: str) -> str:
    """A text for comparison: undressed, without case, quotation marks around it and a full stop behind it."""
    text = _INDEX.sub(lambda match: ("^" if match[1] else "_") + match[0], text)  # 2³ is not 23
    return _ENDS.sub("", undress(unicodedata.normalize("NFKC", text))).casefold()
