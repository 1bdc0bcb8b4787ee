"""What each operation of a tree does to values, exactly where it can.

Every operation takes the running `Evaluation` (for inexact numbers and their precision), the node, and the values of
its operands: fractions, or numbers of mpmath.
"""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from killick.verifiers.answers.limits import MAX_BITS, MAX_FACTORIAL, MAX_MAGNITUDE, TooLarge, Undefined, spend
from killick.verifiers.answers.tree import Node

Number = Any  # Fraction, or a real or complex number of mpmath


def _add(run: Any, node: Node, *terms: Number) -> Number:
    total = terms[0]
    for term in terms[1:]:
        a, b = run.both(total, term)
        total = a + b
    return total


def _multiply(run: Any, node: Node, a: Number, b: Number) -> Number:
    if (isinstance(a, Fraction) and a == 0) or (isinstance(b, Fraction) and b == 0):
        return Fraction(0)
    a, b = run.both(a, b)
    return a * b


def _divide(run: Any, node: Node, a: Number, b: Number) -> Number:
    a, b = run.both(a, b)
    return a / b


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The rational root of a non-negative value, when there is one."""
    parts = []
    for part in (value.numerator, value.denominator):
        if degree == 2:
            root = math.isqrt(part)
        elif part.bit_length() < 1000:
            root = round(part ** (1 / degree))
        else:
            return None
        if root**degree != part:
            return None
        parts.append(root)
    return Fraction(parts[0], parts[1])


def _root(run: Any, node: Node, value: Number, degree: Number) -> Number:
    """Principal root; a real one for an odd degree of a negative number, as answers mean it."""
    degree = run.real(degree)
    if not isinstance(degree, Fraction) or degree.denominator > 1:
        return _power(run, node, value, 1 / degree)
    if not 1 <= degree <= 1000:
        raise Undefined("a root of that degree")
    n = int(degree)
    negative = run.mp.im(run.inexact(value)) == 0 and run.mp.re(run.inexact(value)) < 0
    if negative and n % 2:
        root = _root(run, node, -value, degree)
        return -root
    if isinstance(value, Fraction) and not negative:
        exact = _exact_root(value, n)
        if exact is not None:
            return exact
    return run.mp.sqrt(run.inexact(value)) if n == 2 else run.mp.root(run.inexact(value), n)


def _power(run: Any, node: Node, base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        n = int(exponent)
        if base == 0 and n <= 0:
            raise Undefined("zero to that power")
        if isinstance(base, Fraction):
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if abs(n) * max(1, bits - 1) > MAX_BITS and abs(base) != 1 and base != 0:
                raise TooLarge("a power of too many digits")
            return base**n
        if abs(n) * max(1, abs(run.mp.mag(base))) > MAX_MAGNITUDE:
            raise TooLarge("a power of too many digits")
        return run.inexact(base) ** n
    if isinstance(exponent, Fraction) and exponent.denominator <= 100:
        return _power(run, node, _root(run, node, base, Fraction(exponent.denominator)), Fraction(exponent.numerator))
    if base == 0:
        raise Undefined("zero to a power that is not whole")
    a, b = run.inexact(base), run.inexact(exponent)
    if abs(b) * max(1, abs(run.mp.mag(a))) > MAX_MAGNITUDE:
        raise TooLarge("a power of too many digits")
    return run.mp.power(a, b)


def _factorial(run: Any, node: Node, value: Number) -> Number:
    value = run.real(value)
    if abs(value) > MAX_FACTORIAL:
        raise TooLarge("a factorial of too many digits")
    if isinstance(value, Fraction) and value.denominator == 1:
        if value < 0:
            raise Undefined("a factorial of a negative number")
        return Fraction(math.factorial(int(value)))
    spend(400 * (run.mp.prec / 200) ** 2.5)
    return run.mp.gamma(run.inexact(value) + 1)


def _binomial(run: Any, node: Node, n: Number, k: Number) -> Number:
    n, k = run.real(n), run.real(k)
    if max(abs(n), abs(k)) > MAX_FACTORIAL:
        raise TooLarge("a binomial of too many digits")
    if all(isinstance(x, Fraction) and x.denominator == 1 and x >= 0 for x in (n, k)):
        return Fraction(math.comb(int(n), int(k)))
    spend(1200 * (run.mp.prec / 200) ** 2.5)
    return run.mp.binomial(run.inexact(n), run.inexact(k))


def _apply(run: Any, node: Node, *args: Number) -> Number:
    """A function nothing is known of: some fixed smooth function of its arguments that its name decides."""
    total = run.inexact(Fraction(random.Random(node.name).randrange(1, 10**9), 10**9))  # not 0 where the arguments are
    for place, arg in enumerate(args):
        stream = random.Random(f"{node.name}( {place}")
        value = run.inexact(arg)
        total += run.mp.sin(value * stream.randrange(1, 10**9) / 10**9 + place) + value * stream.randrange(1, 99) / 99
    return total


def _function(run: Any, node: Node, x: Number, base: Number = None) -> Number:
    mp, name = run.mp, node.name
    z = run.inexact(x)
    spend(40 * (run.mp.prec / 200) ** 1.5)
    if name in ("exp", "sinh", "cosh", "tanh", "coth", "sech", "csch") and abs(z) > MAX_MAGNITUDE / 2:
        raise TooLarge("an exponential of too many digits")
    if name in ("ln", "lg", "log") and z == 0:
        raise Undefined("the logarithm of zero")
    if name == "log":
        # Without a base it may be the natural or the common one; an unknown third one accepts neither by accident.
        divisor = mp.mpf("5.4321234567") if base is None else run.inexact(base)
        if divisor <= 0 or divisor == 1:
            raise Undefined("a logarithm to that base")
        return mp.log(z) / mp.log(divisor)
    return {
        "exp": mp.exp, "ln": mp.log, "lg": lambda v: mp.log(v) / mp.log(10),
        "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "cot": mp.cot, "sec": mp.sec, "csc": mp.csc,
        "arcsin": mp.asin, "arccos": mp.acos, "arctan": mp.atan, "arccot": mp.acot, "arcsec": mp.asec,
        "arccsc": mp.acsc, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "coth": mp.coth, "sech": mp.sech,
        "csch": mp.csch, "arcsinh": mp.asinh, "arccosh": mp.acosh, "arctanh": mp.atanh,
    }[name](z)  # fmt: skip


def _absolute(run: Any, node: Node, value: Number) -> Number:
    return abs(value)


def _whole(round_it: Callable[[Any], int]) -> Callable[..., Number]:
    def operation(run: Any, node: Node, value: Number) -> Number:
        value = run.real(value)
        if isinstance(value, Fraction):
            return Fraction(round_it(value))
        return run.mp.floor(value) if round_it is math.floor else run.mp.ceil(value)

    return operation


def _constant(run: Any, node: Node) -> Number:
    return {"pi": run.mp.pi, "e": run.mp.e, "i": run.mp.j}[node.name] * run.mp.one


OPERATIONS: dict[str, Callable[..., Number]] = {
    "add": _add,
    "mul": _multiply,
    "div": _divide,
    "neg": lambda run, node, value: -value,
    "pow": _power,
    "root": _root,
    "fact": _factorial,
    "binom": _binomial,
    "abs": _absolute,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "const": _constant,
    "fn": _function,
    "apply": _apply,
}
