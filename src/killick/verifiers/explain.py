"""How a verifier came to one verdict, step by step: in full for mathematical answers, for others as far as it shows."""

from typing import Any

from killick.verifiers.answers import quick
from killick.verifiers.answers.amounts import agree, is_whole
from killick.verifiers.answers.extract import extract
from killick.verifiers.answers.normalise import steps
from killick.verifiers.choice import ChoiceVerifier
from killick.verifiers.exact import ExactVerifier
from killick.verifiers.final import ANSWER, BOX, CONCLUSION, HASHES, OPTION, TAG, ending, places
from killick.verifiers.integer import IntegerVerifier
from killick.verifiers.knights import KnightsVerifier
from killick.verifiers.latex import LatexVerifier, gold_text
from killick.verifiers.number import NumberVerifier
from killick.verifiers.reasoning_gym import ReasoningGymVerifier
from killick.verifiers.single import SingleAnswer
from killick.verifiers.types import Verdict, Verifier

_PLACES: dict[type, tuple[tuple[str, ...], str]] = {  # the accepted places, and what is taken without any of them
    NumberVerifier: ((BOX, TAG, HASHES, ANSWER), "the last number"),
    IntegerVerifier: ((BOX, TAG, HASHES, ANSWER), "the last number"),
    ExactVerifier: ((BOX, TAG, ANSWER), ""),
    ChoiceVerifier: ((BOX, TAG, OPTION), 'a sentence such as "C is correct", or the last line'),
    KnightsVerifier: ((BOX, TAG, CONCLUSION), "the last block of statements"),
    ReasoningGymVerifier: ((BOX, TAG), ""),
}


def explain(verifier: Verifier, completion: str, answer: str) -> tuple[Verdict, list[tuple[str, str]]]:
    """The verdict and what led to it, as (step, result) pairs in the order of the work.

    Raises:
        DataError: the gold can never be matched.
    """
    if isinstance(verifier, LatexVerifier):
        told = _mathematics(verifier, completion, answer)
    else:
        told = _look(verifier, completion, answer)
    verdict = verifier(completion, answer)
    return verdict, [*told, ("verdict", verdict.reason)]


def only_by_fallback(verifier: Verifier, completion: str) -> bool:
    """Whether `latex` finds an answer only because of its setting `fallback`."""
    if not isinstance(verifier, LatexVerifier) or not verifier.fallback:
        return False
    text = completion[-verifier.max_chars :]
    found = extract(text, fallback=True)
    return found is not None and bool(found.text) and extract(text) is None


def _mathematics(verifier: LatexVerifier, completion: str, answer: str) -> list[tuple[str, str]]:
    gold = gold_text(answer)
    told = [("gold", gold), *_normalising("gold", gold)]
    found = extract(completion[-verifier.max_chars :], verifier.fallback)
    told.append(("extraction", f"{found.text} ({found.place})" if found else "no answer found"))
    if found and found.text and len(found.text) <= verifier.max_answer_chars:
        told += _normalising("answer", found.text)
        told += _reading(gold, found.text)
    rule = verifier.rule(completion, answer).rule
    if found and rule == "different values" and _falls_short(gold, found.text):
        rule = "a decimal of fewer than six digits"
    return [*told, ("rule", rule)]


def _falls_short(gold: str, found: str) -> bool:
    """Whether one side is a short decimal near the other, of which longer ones would be taken for the same."""
    sides = [quick.reading(text).form for text in (gold, found)]
    short = [side for side in sides if isinstance(side, quick.Value) and _is_short(side)]
    other = [side for side in sides if isinstance(side, quick.Value) and not _is_short(side)]
    return len(short) == len(other) == 1 and not is_whole(other[0]) and agree(short[0], other[0])


def _is_short(side: quick.Value) -> bool:
    return "." in side.text and side.node.op in ("num", "neg") and side.precision is None


def _look(verifier: Verifier, completion: str, answer: str) -> list[tuple[str, str]]:
    """Where another verifier looks, and the values it reads if it is one of a single answer."""
    told = [("gold", answer)]
    accepted, rest = _PLACES.get(type(verifier), ((), ""))
    if accepted:
        text = ending(completion, getattr(verifier, "max_chars", 0))
        found = list(places(text, *accepted))
        shown = found if isinstance(verifier, KnightsVerifier) else found[:1]  # a box may hold only one person's role
        told += [("extraction", f"{place.line} ({place.place})") for place in shown]
        if not found:
            instead = f"; taken instead: {rest}" if rest and getattr(verifier, "last_number", True) else ""
            told.append(("extraction", f"nothing in: {', '.join(accepted)}{instead}"))
    if isinstance(verifier, SingleAnswer):
        told.append(("gold read as", verifier.spelled(verifier.wanted(answer))))
        key = verifier.answer_key(completion, answer)
        told += [] if key is None else [("answer read as", key)]
    return told


def _normalising(side: str, text: str) -> list[tuple[str, str]]:
    return [(f"{side}: {name}", after) for name, after in steps(text)]


def _reading(gold: str, found: str) -> list[tuple[str, str]]:
    first = quick.reading(gold)
    second = quick.reading(found, quick.is_number(first.form))
    return [
        (f"{side} read as", _kind(reading.form) if reading.form else f"outside our grammar: {reading.problem}")
        for side, reading in (("gold", first), ("answer", second))
    ]


def _kind(form: Any) -> str:
    """The kind of a form in words, with what matters for the comparison."""
    name = type(form).__name__.lower()
    if isinstance(form, quick.Value):
        extras = [f"unit {form.unit}"] * bool(form.unit) + ["per cent"] * form.percent
        extras += ["long decimal"] * (form.precision is not None)
        return ", ".join(["value", *extras])
    if isinstance(form, quick.Many):
        items = "; ".join([*map(_kind, form.items[:4]), *["…"] * (len(form.items) > 4)])
        kind = form.kind if form.kind in ("list", "set") else f"tuple in {form.kind[0]} {form.kind[1]}"
        return f"{kind}, {len(form.items)} items: {items}"
    return f"{name} {form.name} = {_kind(form.form)}" if isinstance(form, quick.Named) else name
