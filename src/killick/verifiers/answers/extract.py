r"""The final answer of a completion as mathematics: the places of `killick.verifiers.final`, read as formulas.

A box, an answer tag or "final answer is" is looked for always, and only when asked (`fallback`):

1. the line after the last "####";
2. the whole text, when it is nothing but an answer;
3. the text after the last "answer is", or the option chosen in the last sentence, when it is an answer;
4. the last formula between delimiters of mathematics;
5. what is in bold print last, when it is an answer with a digit, else the last number, else that bold print.

Every pattern is linear in the length of the text.
"""

import re
from collections.abc import Iterator
from fractions import Fraction

from killick.verifiers.answers.backend import is_suited
from killick.verifiers.answers.forms import Word
from killick.verifiers.answers.normalise import normalise
from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.reading import read
from killick.verifiers.answers.tree import Unreadable
from killick.verifiers.context import changed, denied
from killick.verifiers.final import ANSWER, BOX, FINAL, HASHES, TAG, Found, after_thinking, clean, find
from killick.verifiers.number import final_number

_NEXT_SENTENCE = re.compile(r"(?<=[A-Za-z0-9$)])\.\s+(?=[A-Z(])")
_LINE = 400  # characters of a sentence that are looked at
_HOPE = re.compile(r"\.?\s*\$?\s*I hope it is correct\.?.*", re.IGNORECASE | re.DOTALL)
_FORMULA = re.compile(
    r"(?<!\\)\$\$(?P<display>(?:\\.|[^$\\])+)\$\$|(?<!\\)\$(?P<inline>(?:\\.|[^$\\])+)\$"
    r"|\\\[(?P<bracket>(?:\\[^\[\]]|[^\\])+)\\\]|\\\((?P<round>(?:\\[^()]|[^\\])+)\\\)",
    re.DOTALL,
)
_CHOSEN = re.compile(
    r"\b(?:I|we)(?:\s(?:would|will|must|should))?\s(?:choose|pick|select)\s(?:(?:option|choice)\s)?(?=\(?[A-J]\)?[\s.*]*\Z)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?<![0-9.,])(-?[0-9]*\.[0-9]{2,40}(?:\.{3}|…))[\s.*$]*$")  # 0.666... is not 0.666
# 1000,99 € or 1.000,99 at the end of a sentence: neither a list nor groups of thousands.
_COMMA_LAST = re.compile(
    r"(?<![0-9.,])(?<![0-9] )(-?(?:[0-9]{4,40}|[1-9][0-9]{0,2}(?:\.[0-9]{3}){1,10}),[0-9]{1,2})(?: ?[€£$])?[\s.*]*$"
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


def extract(completion: str, fallback: bool = False) -> Found | None:
    """The final answer of a completion and where it was found; an empty text is an answer that is missing there.

    Args:
        completion: text of a model, or the gold of a data set.
        fallback: look in the last five places as well.

    Returns:
        None when there is no answer.
    """
    text = after_thinking(clean(completion))
    found = find(text, BOX, TAG, FINAL)
    if found is not None:
        return Found(found.text.strip(), BOX) if found.place == BOX else _within(found)
    return _fallback(text) if fallback else None


def _fallback(text: str) -> Found | None:
    hashes = find(text, HASHES)
    if hashes is not None:
        return _within(hashes)
    if is_answer(text):
        return Found(text.strip(), "whole text")
    marked = find(text, ANSWER) or _chosen(text)
    if marked is not None:
        answer = _within(marked)
        if answer.text and is_answer(answer.text):
            return answer
    return _last_formula(text) or _last_number(text)


def _within(found: Found) -> Found:
    """The answer in a piece of text that is meant to hold one: itself, its formula, its letter or its number."""
    segment = (found.text if found.place == TAG else _sentence(found.text)).strip()[: 4 * _LINE]
    formulas = _groups(segment)
    if formulas:
        return found._replace(text=_unless_changed(segment, formulas[0]))
    bare = segment.strip("* \n").rstrip("* \n.")  # .5 keeps its point
    if is_answer(bare):
        return found._replace(text=bare)
    number = final_number(f"answer: {_NEXT_SENTENCE.split(segment)[0]}")
    if isinstance(number, Fraction):
        return found._replace(text=str(number))
    letters = list(_LETTER.finditer(segment))
    if letters and not changed(segment[: letters[0].start()], segment[letters[0].end() :]):
        return found._replace(text=letters[0][1])
    return found._replace(text=bare[:_LINE])


def _unless_changed(text: str, group: tuple[int, int, str]) -> str:
    """A formula of a text; nothing when the words around it deny it or make it part of something else."""
    start, end, content = group
    return "" if changed(text[:start], text[end:]) else content


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


def _groups(text: str) -> list[tuple[int, int, str]]:
    """Formulas of a text with their places, those joined by commas, "and" or "or" as one, with what joins them."""
    groups: list[tuple[int, int, str]] = []
    for start, end, content in _formulas(text):
        between = text[groups[-1][1] : start] if groups else ""
        if groups and _BETWEEN.fullmatch(between):
            groups[-1] = (groups[-1][0], end, groups[-1][2] + between + content)
        else:
            groups.append((start, end, content))
    return [group for group in groups if len(group[2]) <= _LINE and is_answer(group[2])]


def _last_formula(text: str) -> Found | None:
    end = text[-20 * _LINE :]
    groups = _groups(end)
    if not groups:
        return None
    start, stop, content = groups[-1]
    return Found("" if denied(end[:start], end[stop:]) else content, "last formula")


def _chosen(text: str) -> Found | None:
    """The option that the last sentence chooses."""
    match = _CHOSEN.search(text[-_LINE:])
    return Found(text[-_LINE:][match.end() :], ANSWER) if match else None


def _last_number(text: str) -> Found | None:
    end = text[-100:]
    dotted, comma = _GOES_ON.search(end), "," in end and _COMMA_LAST.search(end)
    if dotted:
        return Found(dotted[1], "last number")
    if comma:
        return Found("" if denied(end[: comma.start()], "") else comma[1], "last number")
    bold = _BOLD.findall(text)[-1:]
    if bold and is_answer(bold[0]) and any(character.isdigit() for character in bold[0]):
        return Found(bold[0], "bold print")
    for piece in (*bold, text):
        number = final_number(piece)
        if isinstance(number, Fraction):
            return Found(str(number), "last number")
    return Found(bold[0], "bold print") if bold and is_answer(bold[0]) else None


def is_answer(text: str) -> bool:
    """Whether a text is nothing but an answer: mathematics, one word, or a number with its unit, but no sentence."""
    if not text.strip() or len(text) > _LINE:
        return False
    words = _PROSE.findall(_NOT_PROSE.sub(" ", text))
    try:
        form = read(normalise(text))
    except (Unreadable, ArithmeticError):  # also what cannot be computed
        return not words and is_suited(text)
    if isinstance(form, Word):
        return form.base > 0 or (len(words) <= 3 and not any(character.isdigit() for character in text))
    if isinstance(form, Value) and form.unit:
        return True
    return len(words) < 2 and not _STOP_WORD.search(text)
