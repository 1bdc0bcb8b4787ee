r"""Where the final answer of a completion is. The first place that exists decides:

1. the last `\boxed{…}`, joined with boxes before it that belong to the same list; empty or unfinished is no answer;
2. the last answer tag, `<answer>…</answer>` and the like;
3. the text after the last "final answer is" or "final answer:";

and only when asked (`fallback`):

4. the line after the last "####";
5. the whole text, when it is nothing but an answer;
6. the text after the last "answer is" or "answer:";
7. the last formula between delimiters of mathematics;
8. the last number.

Every pattern is linear in the length of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from killick.verifiers.answers.backend import is_suited
from killick.verifiers.answers.forms import Word
from killick.verifiers.answers.normalise import normalise
from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.reading import read
from killick.verifiers.answers.tree import Unreadable
from killick.verifiers.boxed import boxed_answer
from killick.verifiers.number import NumberVerifier, clean


@dataclass(frozen=True)
class Answer:
    """The text of a final answer and where it was found; an empty text is an answer that is missing there."""

    text: str
    place: str


_LINE = 400  # characters of a sentence that are looked at
_TAG = re.compile(r"<(answer|solution|final_answer)>", re.IGNORECASE)
_FINAL = re.compile(r"final answer\**\s?(?:is|:)\**", re.IGNORECASE)
_ANSWER = re.compile(r"\banswer\**\s?(?:is|:)\**|\banswer(?=\s*(?:\$|\\\[|\\\())|答案(?:是|为|：|:)", re.IGNORECASE)
_HOPE = re.compile(r"\.?\s*\$?\s*I hope it is correct\.?.*", re.IGNORECASE | re.DOTALL)
_FORMULA = re.compile(
    r"(?<!\\)\$\$(?P<display>(?:\\.|[^$\\])+)\$\$|(?<!\\)\$(?P<inline>(?:\\.|[^$\\])+)\$"
    r"|\\\[(?P<bracket>(?:\\[^\[\]]|[^\\])+)\\\]|\\\((?P<round>(?:\\[^()]|[^\\])+)\\\)",
    re.DOTALL,
)
_BETWEEN = re.compile(r"\s*(?:,|;|and|, ?and|or)\s*")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_LETTER = re.compile(r"(?<![A-Za-z'])\(?([A-J])\)?(?![A-Za-z'’])")
_PROSE = re.compile(r"[A-Za-z]{2,}")
_STOP_WORD = re.compile(
    r"(?<![A-Za-z\\{])(?:so|is|are|the|of|we|in|at|it|to|be|by|an|as|if|for|has|was|get|let|but|not|all|our|its|one|two|can)"
    r"(?![A-Za-z}])",
    re.IGNORECASE,
)
_NOT_PROSE = re.compile(
    r"\\(?:text|mbox|begin|end)\s?\{[^{}]*\}|\\[A-Za-z]+|(?:arc)?(?:sin|cos|tan)h?|(?<![A-Za-z])(?:and|or|sqrt|pi|log|ln|exp)(?![a-z])"
)


def extract(completion: str, fallback: bool = False) -> Answer | None:
    """The final answer of a completion, or None when there is none.

    Args:
        completion: text of a model, or the gold of a data set.
        fallback: look in the last five places as well.
    """
    text = clean(completion)
    box = boxed_answer(text)
    if box is not None:
        return Answer(box.strip(), "last box")
    tags = list(_TAG.finditer(text))
    if tags:
        inside = text[tags[-1].end() :].partition(f"</{tags[-1][1]}>")[0]
        return _within(inside, "answer tag")
    marks = list(_FINAL.finditer(text))
    if marks:
        return _within(_sentence(text[marks[-1].end() :]), "final answer is")
    return _fallback(text) if fallback else None


def _fallback(text: str) -> Answer | None:
    hashes = text.rfind("####")
    if hashes >= 0:
        return _within(_sentence(text[hashes + 4 :]), "####")
    if is_answer(text):
        return Answer(text.strip(), "whole text")
    marks = list(_ANSWER.finditer(text))
    if marks:
        found = _within(_sentence(text[marks[-1].end() :]), "answer is")
        if found.text and is_answer(found.text):
            return found
    return _last_formula(text) or _last_number(text)


def _within(segment: str, place: str) -> Answer:
    """The answer in a piece of text that is meant to hold one: itself, its formula, its letter or its number."""
    segment = segment.strip()[: 4 * _LINE]
    formulas = _groups(segment)
    if formulas:
        return Answer(formulas[0], place)
    bare = segment.strip("* \n.")
    if is_answer(bare):
        return Answer(bare, place)
    number = NumberVerifier().extract(f"answer: {segment}")
    if not isinstance(number, str):
        return Answer(str(number), place)
    letter = _LETTER.search(segment)
    return Answer(letter[1] if letter else bare[:_LINE], place)


def _sentence(text: str) -> str:
    """The first line that says something, without what follows it in the same breath."""
    text = _HOPE.sub("", text[: 4 * _LINE]).strip(" \n\t:*")
    if text.startswith(("$$", "\\[")):
        return text[:_LINE]
    return text.partition("\n")[0][:_LINE]


def _formulas(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _FORMULA.finditer(text):
        content = next(group for group in match.groups() if group is not None)
        yield match.start(), match.end(), content.strip()


def _groups(text: str) -> list[str]:
    """Formulas of a text, those joined by commas, "and" or "or" as one, with what joins them."""
    groups: list[str] = []
    previous = -1
    for start, end, content in _formulas(text):
        between = text[previous:start] if groups else ""
        if groups and _BETWEEN.fullmatch(between):
            groups[-1] += between + content
        else:
            groups.append(content)
        previous = end
    return [group for group in groups if len(group) <= _LINE and is_answer(group)]


def _last_formula(text: str) -> Answer | None:
    groups = _groups(text[-20 * _LINE :])
    return Answer(groups[-1], "last formula") if groups else None


def _last_number(text: str) -> Answer | None:
    bold = _BOLD.findall(text)
    if bold:
        value = NumberVerifier().extract(bold[-1])
        if not isinstance(value, str):
            return Answer(str(value), "last number")
    value = NumberVerifier().extract(text)
    return None if isinstance(value, str) else Answer(str(value), "last number")


def is_answer(text: str) -> bool:
    """Whether a text is nothing but an answer: mathematics, one word, or a number with its unit, but no sentence."""
    if not text.strip() or len(text) > _LINE:
        return False
    words = _PROSE.findall(_NOT_PROSE.sub(" ", text))
    try:
        form = read(normalise(text))
    except (Unreadable, OverflowError):
        return not words and is_suited(text)
    if isinstance(form, Word):
        return form.base > 0 or (len(words) <= 3 and not any(character.isdigit() for character in text))
    if isinstance(form, Value) and form.unit:
        return True
    return len(words) < 2 and not _STOP_WORD.search(text)
