"""How the verifier of mathematical answers came to one verdict, step by step."""

from typing import Any

from killick.verifiers.answers import quick
from killick.verifiers.answers.extract import extract
from killick.verifiers.answers.normalise import steps
from killick.verifiers.latex import LatexVerifier, gold_text
from killick.verifiers.types import Verdict


def explain(verifier: LatexVerifier, completion: str, answer: str) -> tuple[Verdict, list[tuple[str, str]]]:
    """The verdict and what led to it, as (step, result) pairs in the order of the work.

    Raises:
        DataError: the gold can never be matched.
    """
    gold = gold_text(answer)
    told = [("gold", gold), *_normalising("gold", gold)]
    found = extract(completion[-verifier.max_chars :], verifier.fallback)
    told.append(("extraction", f"{found.text!r} ({found.place})" if found else "no answer found"))
    if found and found.text and len(found.text) <= verifier.max_answer_chars:
        told += _normalising("answer", found.text)
        told += _reading(gold, found.text)
    told.append(("rule", verifier.rule(completion, answer).rule))
    verdict = verifier(completion, answer)
    return verdict, [*told, ("verdict", verdict.reason)]


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
        extras = [f"unit {form.unit!r}"] * bool(form.unit) + ["per cent"] * form.percent
        extras += ["long decimal"] * (form.precision is not None)
        return ", ".join(["value", *extras])
    if isinstance(form, quick.Many):
        items = ", ".join(_kind(item) for item in form.items[:4])
        kind = form.kind if form.kind in ("list", "set") else f"tuple {form.kind}"
        return f"{kind} of {len(form.items)} ({items})"
    return f"{name} {form.name} = {_kind(form.form)}" if isinstance(form, quick.Named) else name
