"""How much a comparison may cost: sizes of values, and the work of all operations together."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAX_BITS = 60_000  # of an exact value
MAX_MAGNITUDE = 20_000  # bits before the point of an inexact value
MAX_FACTORIAL = 3_000
MAX_TERMS = 300  # of a sum

_local = threading.local()


class TooLarge(ArithmeticError):  # noqa: N818 - an outcome of evaluating, not a failure of the program
    """A value, or one on the way to it, is beyond what any answer needs."""


class Undefined(ArithmeticError):  # noqa: N818
    """Division by zero, a logarithm of zero, and the like."""


@contextmanager
def budget(work: int = 500_000) -> Iterator[None]:
    """Bound the work of everything evaluated inside, in units of about a microsecond; beyond it is `TooLarge`.

    Counting operations instead of seconds keeps verdicts the same on a slow or busy machine.
    """
    outer = getattr(_local, "work", None)
    _local.work = work if outer is None else min(work, outer)
    try:
        yield
    finally:
        _local.work = outer


def spend(work: float) -> None:
    """Take some work off the budget in force, if one is.

    Raises:
        TooLarge: there is not that much left.
    """
    left = getattr(_local, "work", None)
    if left is None:
        return
    if left < work:
        raise TooLarge("the comparison takes too much work")
    _local.work = left - work
