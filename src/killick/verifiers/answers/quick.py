"""Two answers compared in this process: exact, bounded, and without sympy. Most pairs are decided here.

Everything is cut to a few hundred characters before, the grammar is small, and values stop at fixed sizes, so that no
input can take long; what the grammar does not cover is left to `backend` in a worker process.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from killick.verifiers.answers import values
from killick.verifiers.answers.amounts import Decision
from killick.verifiers.answers.equivalence import compare
from killick.verifiers.answers.forms import Form, Many, Named
from killick.verifiers.answers.limits import budget
from killick.verifiers.answers.normalise import normalise
from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.reading import read
from killick.verifiers.answers.tree import Unreadable

_COMMAND = re.compile(r"\\[A-Za-z]+")
_COMMA = re.compile(r"(-?)([0-9]+),([0-9]+)")
_WORDING = re.compile(r"\\text ?\{([^{}]*)\}")
_BLANK = re.compile(r"(?<![0-9]) | (?![0-9])")
_DECIMAL_COMMA = re.compile(r"(?<=[0-9]),(?=[0-9])")
_TIGHT_THOUSANDS = re.compile(r"(?<![0-9.,^_])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
_TIGHT_COMMA = re.compile(",(?! )")
_ONLY_DECIMALS = re.compile(r"[0-9]{4,}|0[0-9]")  # neither a group of three digits nor an item of a list
_EUROPEAN = re.compile(r"-?[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+")


@dataclass(frozen=True)
class Reading:
    """A normalised text and its form; `problem` says why there is none."""

    text: str
    form: Form | None
    problem: str = ""


@lru_cache(maxsize=16_384)
def reading(text: str, glued_units: bool = False) -> Reading:
    """Normalise a text and read its form."""
    text = normalise(text)
    try:
        return Reading(text, read(text, glued_units))
    except (Unreadable, ArithmeticError, RecursionError) as error:  # TooLarge and Undefined are arithmetic
        return Reading(text, None, str(error))


def is_number(form: Form | None) -> bool:
    """Whether a form is a value without symbols, possibly named: then letters behind the other side are a unit."""
    if isinstance(form, Named):
        return is_number(form.form)
    return isinstance(form, Value) and not values.symbols(form.node)


def decide(gold_text: str, found_text: str) -> Decision | None:
    """Whether two answers are the same, or None when one of them is outside the grammar.

    Raises:
        TooLarge, Undefined: of `values`; the two are readable but cannot be compared.
    """
    gold = reading(gold_text)
    found = reading(found_text, is_number(gold.form))
    if gold.text and _tight(gold.text) == _tight(found.text):
        return Decision(True, "same text")
    gold_form, found_form = gold.form, found.form
    if (isinstance(gold_form, Value | Named) and _COMMA.fullmatch(found.text)) or _EUROPEAN.fullmatch(found.text):
        found_form = _with_decimal_comma(found.text, gold.text) or found_form
    elif (isinstance(found_form, Value | Named) and isinstance(gold_form, Many)) or _EUROPEAN.fullmatch(gold.text):
        gold_form = _with_decimal_comma(gold.text, "") or gold_form
    if gold_form is None or found_form is None:
        return None
    with budget():
        decision = compare(gold_form, found_form)
        if not decision.same and ("," in gold.text or "," in found.text):
            decision = _respelled(gold, found, gold_form, found_form) or decision
    return decision


def _tight(text: str) -> str:
    r"""A text without `\text` around its words and without blanks, but for those between digits."""
    if "\\text" in text:
        text = _WORDING.sub(r"\1", text)
    return _BLANK.sub("", text) if " " in text else text


def _respelled(gold: Reading, found: Reading, gold_form: Form, found_form: Form) -> Decision | None:
    """The comparison with commas in a list taken for parts of its numbers, where the blanks or semicolons say so."""
    gold_too, found_too = _regrouped(gold.text), _regrouped(found.text)
    pairs = ((gold_form, found_too), (gold_too, found_form), (gold_too, found_too))
    if any(a and b and compare(a, b).same for a, b in pairs):
        return Decision(True, "commas inside numbers")
    return None


def _regrouped(text: str) -> Form | None:
    """`(1,000, 2,000)` as two numbers, and `1,5; 2,5` as well."""
    if ";" in text:
        changed = _DECIMAL_COMMA.sub(".", text)
        return reading(changed).form if changed != text else None
    changed = _TIGHT_THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    return reading(changed).form if changed != text and "," in changed and not _TIGHT_COMMA.search(changed) else None


def _with_decimal_comma(text: str, other: str) -> Form | None:
    """The number a text is when its comma is a decimal one.

    `0,5`, `1000,99`, `2,7183` and `4,05` are hardly lists; `3,5` is taken for 3.5 only where the other side is written
    as a decimal.
    """
    if _EUROPEAN.fullmatch(text):
        return reading(text.replace(".", "").replace(",", ".")).form
    match = _COMMA.fullmatch(text)
    if match and (match[2] == "0" or len(match[2]) > 3 or _ONLY_DECIMALS.fullmatch(match[3]) or "." in other):
        return reading(text.replace(",", ".")).form
    return None


def without_commands(text: str) -> str:
    """A text without the names of LaTeX commands."""
    return _COMMAND.sub(" ", text)
