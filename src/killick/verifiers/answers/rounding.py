"""Whether a long decimal stands for an exact value."""

from killick.verifiers.answers import values
from killick.verifiers.answers.limits import Undefined
from killick.verifiers.answers.quantity import Value


def rounds(gold: Value, found: Value) -> bool:
    """Whether one side is a long decimal of the other: rounded, or cut off.

    A decimal gold may only be answered by a shorter decimal or by an expression: more digits than it has are not in it.
    """
    if found.precision is not None and (gold.precision is None or found.precision > gold.precision):
        return _within(found, gold)
    is_decimal = "." in found.text and found.node.op in ("num", "neg")
    return gold.precision is not None and not is_decimal and _within(gold, found)


def _within(decimal: Value, other: Value) -> bool:
    if values.symbols(other.node):
        return False
    exact = values.exact_value(other.node)
    if exact is not None and exact.denominator == 1:
        return False  # a whole number has nothing to round
    unit = decimal.precision
    assert unit is not None, "only called for a long decimal"
    short = values.exact_value(decimal.node)
    if exact is not None and short is not None:
        difference = (exact - short) * (1 if short >= 0 else -1)
        return 0 <= difference < unit or abs(difference) <= unit / 2
    run = values.Evaluation({})
    value, written = run.inexact(run.value(other.node)), run.inexact(run.value(decimal.node))
    try:
        difference = run.real(value) - run.real(written)
    except Undefined:
        return False
    toward_zero = 0 <= difference * (1 if written >= 0 else -1) < run.inexact(unit)
    return bool(toward_zero or abs(difference) <= run.inexact(unit / 2))
