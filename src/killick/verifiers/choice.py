r"""Multiple choice: the option a completion ends up with, named by letter or by its text.

Where the answer is looked for; the first place that exists decides:

1. the last box, else the last answer tag, else the line behind the last "answer is", "correct option is" and the like
   (see `killick.verifiers.final`);
2. "C is correct", "option C is the right one", if all such sentences name one letter;
3. the last line, if it is nothing but a letter ("(C)", "C."), a letter with its own option's text, or an option's text.

A letter counts when nothing but the option's own text or a reason follows it. Two letters, a letter beside the text of
another option, "not B", or a text that fits two options is `unparsable`: an ambiguous answer is never right.
"""

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from killick.errors import DataError
from killick.verifiers.final import BOX, OPTION, TAG, find, plain, undress
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import Verdict, wrong

LETTERS = "ABCDEFGHIJ"

_LEAD = re.compile(
    r"(?:(?:the|option|choice|answer|letter|is|therefore|thus|so)\b[\s:]*)+(?=[\[(\"'“‘]?[A-Ja-j]\b)", re.IGNORECASE
)
_BARE = re.compile(r"[\[(\"'“‘]*([A-Ja-j])[\])\"'”’]*[.:,;)]?")
_HEAD = re.compile(r"(?P<open>[\[(]?)(?P<letter>[A-Ja-j])(?P<close>[\])]?)(?![\w'’^])(?P<rest>.*)", re.DOTALL)
_MORE = re.compile(
    r"(?:\s?[-–—]\s?[A-J](?![\w'’])|[\s.]+[A-J][\s.]*$)|\s?(?:,|;|/|&|\+|\bor\b|\band\b|\bnor\b|\bbut\b|\bnot\b)[\s,]*(?:(?:also|maybe|possibly|perhaps|option|both|and|or)\s)*[\[(]?[A-Ja-j](?![\w'’])"
)
_REASON = re.compile(
    r"\s?(?:[.,;:!?—–-]\s?)*\b(?:because|since|as|which|for|due|given|by|in|is|based|from|with|after)\b", re.IGNORECASE
)
_RETRACTED = re.compile(
    r"(?i:\b(?:wait|actually|no,|rather|instead|correction|or|but|as well as|false|incorrect|with|too)\b)"
    r".*(?<![\w'’])[A-J](?![\w'’])"
    r"|(?i:^[\s,.:;(–—-]*(?:is\s)?(?:wrong|incorrect|false|not?)\b)",
    re.DOTALL,
)
_DENIED = re.compile(
    r"(?:\b(?:not|false|doubt|if|nobody|whether|deny|never|wrong|unless|suppose)\b|n['’]t\b)[^.!?\n]*$", re.IGNORECASE
)
_END = re.compile(r"\s?[.,;!?]*\s?")
_IS_RIGHT = re.compile(
    r"(?<![\w'’])(?:option\s|choice\s|answer\s)?[\[(]?([A-J])[\])]?[*_`]{0,4}\sis\s(?:therefore\s|thus\s|clearly\s)?(?:the\s)?(?:most\s)?"
    r"(?:correct|right|best|true)(?!\w)",
    re.IGNORECASE,
)


class ChoiceGold(NamedTuple):
    """A gold: the right letter, and the options in the order shown (empty when unknown)."""

    letter: str
    choices: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def choice_gold(answer: str) -> ChoiceGold:
    """Read a gold: a bare letter, or JSON as `ChoiceVerifier.gold` writes it.

    Raises:
        DataError: neither, or a letter beyond the options.
    """
    letter: Any = answer.strip()
    choices: tuple[Any, ...] = ()
    if letter.startswith("{"):
        try:
            data = json.loads(letter)
            letter, choices = data["letter"], tuple(data["choices"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(f"The gold {answer[:80]!r} is no choice: expected letter and choices ({error}).") from error
    allowed = LETTERS[: len(choices)] if choices else LETTERS
    texts = all(isinstance(text, str) and text.strip() for text in choices)
    if (
        not texts
        or not isinstance(letter, str)
        or len(letter) != 1
        or letter not in allowed
        or len(choices) > len(LETTERS)
    ):
        raise DataError(
            f"The gold {answer[:80]!r} is no choice. Allowed: a letter, A to {allowed[-1]}, or JSON with letter and "
            f"choices (at most {len(LETTERS)} texts). Correct the answer column."
        )
    return ChoiceGold(letter, choices)


@dataclass(frozen=True)
class ChoiceVerifier(SingleAnswer[str]):
    """Compares the letter of the option a completion chooses with the gold's."""

    key_needs_gold: ClassVar[bool] = True  # an option may be named by its text

    @staticmethod
    def gold(letter: str, choices: Sequence[str]) -> str:
        """The gold of a row: letter and options as JSON."""
        return json.dumps({"letter": letter, "choices": list(choices)}, ensure_ascii=False)

    def wanted(self, answer: str) -> str:
        """The letter of a gold.

        Raises:
            DataError: it is neither a letter nor letter and options.
        """
        return choice_gold(answer).letter

    def found(self, text: str, answer: str) -> str | Verdict:
        """The letter a completion chooses, or why there is none."""
        letter = _chosen(text, choice_gold(answer).choices)
        return wrong(letter) if letter in ("no_answer", "unparsable") else letter  # type: ignore[arg-type]

    def other(self, answer: str) -> str:
        """A gold that a completion with this one must not match: the next option."""
        letter, choices = choice_gold(answer)
        num = len(choices) or len(LETTERS)
        following = LETTERS[(LETTERS.index(letter) + 1) % num]
        return self.gold(following, choices) if choices else following


def _chosen(text: str, choices: Sequence[str]) -> str:
    """The letter, or "no_answer" or "unparsable"."""
    final = find(text, BOX, TAG, OPTION)
    if final is not None:
        letter = _read(final.line, choices) if final.text.strip() else "no_answer"
        later = find(text[text.rfind("\\boxed") :], TAG, OPTION) if final.place == BOX else None
        # a box that the text then contradicts is no answer
        return letter if later is None or _read(later.line, choices) in (letter, "unparsable") else "unparsable"
    named = {
        match[1].upper()
        for match in _IS_RIGHT.finditer(text)
        if not _DENIED.search(text[max(0, match.start() - 80) : match.start()])
        and text[match.end() : match.end() + 1] != "?"
    }
    if named:
        return named.pop() if len(named) == 1 else "unparsable"
    return _last_line(text, choices)


def _read(segment: str, choices: Sequence[str]) -> str:
    """The letter that a final answer names."""
    text = undress(segment)
    bare = _BARE.fullmatch(_LEAD.sub("", text, count=1))
    if bare:
        return bare[1].upper()
    by_text = _by_text(text, choices)
    if by_text is not None:
        return by_text
    head = _HEAD.match(_LEAD.sub("", text, count=1))
    if head is None or (head["letter"].islower() and not (head["open"] and head["close"])):
        return "unparsable"
    return _followed(head["letter"].upper(), head["rest"], choices)


def _followed(letter: str, rest: str, choices: Sequence[str]) -> str:
    """The letter, unless what follows it names another option or makes it part of a sentence."""
    if _MORE.match(rest) or _RETRACTED.search(rest):
        return "unparsable"
    text = rest.lstrip(" .:,;)-–—=")
    named = _by_text(text, choices)
    if named is not None:
        own = LETTERS.index(letter) < len(choices) and plain(choices[LETTERS.index(letter)]) == plain(text)
        return letter if own or named == letter else "unparsable"
    if _END.fullmatch(rest) or _REASON.match(rest) or rest.lstrip()[:1] in tuple(".:,;)-–—"):
        return letter
    return "unparsable"


def _by_text(text: str, choices: Sequence[str]) -> str | None:
    """The letter of the only option that reads like the text; "unparsable" for several, None for none."""
    wanted = plain(text)
    fitting = [letter for letter, choice in zip(LETTERS, choices, strict=False) if wanted and plain(choice) == wanted]
    if not fitting:
        return None
    return fitting[0] if len(fitting) == 1 else "unparsable"


def _last_line(text: str, choices: Sequence[str]) -> str:
    """The letter on the last line that says something; a list of options is no answer."""
    lines = [undress(line) for line in text.splitlines() if line.strip()]
    if not lines:
        return "no_answer"
    last = _LEAD.sub("", lines[-1], count=1)
    bare = _BARE.fullmatch(last)
    if bare:
        return bare[1].upper() if bare[1].isupper() or len(lines) == 1 else "unparsable"
    by_text = _by_text(last, choices)
    if by_text is not None:
        return by_text
    heads = {letter for line in lines if (letter := _with_text(line, choices))}
    final: str | Literal[False] = _with_text(last, choices)
    return final if final and heads == {final} else "no_answer"


def _with_text(line: str, choices: Sequence[str]) -> str | Literal[False]:
    """The letter of a line such as "C. text of option C"."""
    head = _HEAD.match(line)
    if head is None or head["letter"] not in LETTERS[: len(choices)]:
        return False
    own = plain(choices[LETTERS.index(head["letter"])])
    return head["letter"] if plain(head["rest"].lstrip(" .:)-–—")) == own else False
