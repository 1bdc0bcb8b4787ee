"""A text for a mathematical answer, equal for most equal answers: what a vote counts."""

from functools import lru_cache

from killick.verifiers.answers import limits, quick, values
from killick.verifiers.answers.forms import Named, Value


@lru_cache(maxsize=65_536)
def mathematical_key(text: str) -> str:
    """A spelling of a mathematical answer: the value of a plain number, else the normalised text without blanks.

    1/2, 0.5 and 50/100 share a key, and so do sqrt(8) and 2 sqrt(2), by their first 15 digits.
    """
    reading = quick.reading(text)
    spelled = "".join(reading.text.split())
    form = reading.form.form if isinstance(reading.form, Named) else reading.form
    if not isinstance(form, Value) or form.percent or form.unit or values.symbols(form.node):
        return spelled
    try:
        with limits.budget():
            exact = values.exact_value(form.node)
            if exact is not None:
                return str(exact)
            run = values.Evaluation({})
            return str(run.mp.nstr(run.inexact(run.value(form.node)), 15))
    except (limits.TooLarge, limits.Undefined, ValueError):  # ValueError: a whole number too long to print
        return spelled
