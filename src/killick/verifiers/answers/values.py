"""Values of expression trees: exact where they are rational, to any precision otherwise, within bounds of size.

Two expressions with symbols are compared at several rational points (Schwartz and Zippel: two different rational
functions of degree d agree at a random point of a set of size S with probability at most d / S). The points are
positive, since roots and logarithms of an answer are meant where they are defined.
"""

import random
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from killick.verifiers.answers.limits import MAX_BITS, MAX_MAGNITUDE, MAX_TERMS, TooLarge, Undefined, spend
from killick.verifiers.answers.operations import OPERATIONS
from killick.verifiers.answers.tree import Node

Number = Any  # Fraction, or a real or complex number of mpmath
_PRECISION = 200  # bits
_ZERO_PRECISION = 4_000  # bits after which two values lost in the noise are both zero
_SLACK = 30  # bits that rounding may cost
_POINTS = 4
_FAR = (7, 1, 400, 700)  # factors of the points of `_agree_afar`
_OF_EITHER_SIGN = ("x", "y", "t", "u", "z", "\\theta")
_BENT = ("abs", "root", "fn", "floor", "ceil")
_SPARE = 12  # points at which a side may be undefined


_local = threading.local()


def _context() -> Any:
    """This thread's own mpmath context: the global one has one precision for all threads."""
    if not hasattr(_local, "mp"):
        from mpmath.ctx_mp import MPContext

        _local.mp = MPContext()
    return _local.mp


def symbols(node: Node) -> frozenset[str]:
    """Names of the symbols of a tree; a function nothing is known of counts as one, with "()" behind its name."""
    own = {node.name} if node.op == "sym" else {f"{node.name}()"} if node.op == "apply" else set()
    found = own.union(*(symbols(arg) for arg in node.args))
    return frozenset(found - {node.name} if node.op in ("sum", "prod") else found)


def has(node: Node, *ops: str) -> bool:
    """Whether any node of the tree is one of these operations."""
    return node.op in ops or any(has(arg, *ops) for arg in node.args)


def _bends(node: Node) -> bool:
    """Whether two expressions that agree where symbols are positive and small may differ elsewhere."""
    bent = node.op in _BENT or (node.op == "pow" and (node.args[1].op == "div" or node.args[1].value.denominator > 1))
    return bool(bent and symbols(node)) or any(map(_bends, node.args))


def exact_value(node: Node) -> Fraction | None:
    """The value of a tree without symbols when exact arithmetic reaches it, else None.

    Raises:
        TooLarge, Undefined: there is no value to speak of.
    """
    if symbols(node):
        return None
    value = Evaluation({}).value(node)
    return value if isinstance(value, Fraction) else None


def same(left: Node, right: Node, *, radians: bool = False) -> bool:
    """Whether two trees have the same value at all points tried.

    Args:
        left: one side.
        right: the other; both may have symbols.
        radians: take a degree sign for the factor pi / 180 everywhere, not only inside functions.

    Raises:
        TooLarge: the comparison needs larger numbers than any answer has.
        Undefined: no point was found at which both are defined.
    """
    return matches(left, right, lambda a, b, noise: abs(a - b) <= noise, radians=radians)


def proportional(left: Node, right: Node) -> bool:
    """Whether left = c * right with one constant c, neither zero nor dependent on the symbols; not for two zeros.

    Raises:
        TooLarge, Undefined: as `same`.
    """
    factor = ratio(left, right)
    return factor is not None and factor != 0


def ratio(left: Node, right: Node) -> Number | None:
    """The constant c of left = c * right, or None; also None without variables, where any two values have a ratio.

    Raises:
        TooLarge, Undefined: as `same`.
    """
    if all(name.endswith("()") for name in symbols(left) | symbols(right)):
        return None
    found: list[Number] = []

    def agrees(a: Number, b: Number, noise: Number) -> bool:
        if abs(b) <= noise or abs(a) <= noise:
            return False
        if not found:
            found.append(a / b)
        first = found[0]
        scale = max(1, abs(first), abs(a / b))
        return bool(abs(a / b - first) <= scale * 1e-25)

    return found[0] if matches(left, right, agrees) and found else None


def matches(left: Node, right: Node, agree: Callable[[Number, Number, Number], bool], *, radians: bool = False) -> bool:
    """Whether `agree(left value, right value, rounding noise)` holds at every point tried.

    Raises:
        TooLarge, Undefined: as `same`.
    """
    names = sorted(symbols(left) | symbols(right))
    whole = any(has(side, "floor", "ceil") for side in (left, right))  # steps are told apart at many, distant points
    wanted = (8 if whole else 1) * _POINTS if names else 1
    signed = has(left, "abs") or has(right, "abs")
    limits = _limits(left) | _limits(right)  # whole numbers, at which a sum can be added up
    wanted *= 3 if limits else 1
    done, failure = 0, Undefined("no point at which both sides are defined")
    for index in range(wanted + _SPARE if names else 1):
        point = {
            name: _whole(name, index) if name in limits else _coordinate(name, index, signed) * (30 if whole else 1)
            for name in names
        }
        try:
            if not _agree_at(left, right, point, agree, radians):
                return False
        except Undefined as error:
            failure = error
            continue
        done += 1
        if done == wanted:
            return not names or _agree_afar(left, right, names, limits, agree)
    raise failure


def _agree_afar(
    left: Node, right: Node, names: list[str], limits: frozenset[str], agree: Callable[[Number, Number, Number], bool]
) -> bool:
    """The same at far points, of which those count at which both sides are real throughout.

    They tell sqrt(x^2) from x, |x - 100| from 100 - x and arcsin(sin x) from x. Points of either sign are for a lone x
    and its like; a length a, or the parameters of a formula, are meant to be positive: a sqrt(3) is sqrt(3 a^2).
    """
    if limits or left == right or not (_bends(left) or _bends(right)):
        return True
    signed = has(left, "abs") or has(right, "abs") or (len(names) == 1 and names[0] in _OF_EITHER_SIGN)
    for index, scale in enumerate(_FAR):
        sign = [-1 if (index + place) % 2 else 1 for place in range(len(names))] if signed else [1] * len(names)
        point = {name: _coordinate(name, index + 100, False) * scale * sign[place] for place, name in enumerate(names)}
        try:
            if not _agree_at(left, right, point, agree, False, real=True):
                return False
        except (Undefined, TooLarge):
            continue
    return True


def _coordinate(name: str, index: int, signed: bool) -> Fraction:
    """A fixed pseudo-random point, of either sign when an absolute value makes the sign matter."""
    stream = random.Random(f"{name} {index}")
    value = Fraction(stream.randrange(200, 3000), 1009)
    return -value if signed and stream.random() < 0.5 else value


def _limits(node: Node) -> frozenset[str]:
    """Symbols in the limits of the sums and products of a tree."""
    own = symbols(node.args[0]) | symbols(node.args[1]) if node.op in ("sum", "prod") else frozenset()
    return own.union(*map(_limits, node.args))


def _whole(name: str, index: int) -> Fraction:
    """A fixed pseudo-random whole number, the first ones small."""
    return Fraction(random.Random(f"{name} {index} whole").randrange(4, 12 + 2 * index))


def _agree_at(
    left: Node,
    right: Node,
    point: Mapping[str, Fraction],
    agree: Callable[..., bool],
    radians: bool,
    real: bool = False,
) -> bool:
    """One point: exactly, or with as many digits as the sizes of the intermediate values call for."""
    precision = _PRECISION
    for _ in range(3):
        run = Evaluation(point, precision, radians, real)
        a, b = run.value(left), run.value(right)
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return agree(a, b, Fraction(0))
        mp = run.mp
        a, b = run.inexact(a), run.inexact(b)
        noise = mp.ldexp(1, run.peak - precision + _SLACK)
        if not agree(a, b, noise):
            return False
        # Values lost in the noise may be zero or only small: more digits, in the end zero.
        sizes = [mp.mag(x) for x in (a, b) if abs(x) > noise]
        if not sizes and precision >= _ZERO_PRECISION:
            return True
        needed = run.peak - min(0, *sizes, 0) + _SLACK + 100 if sizes else 5 * precision
        if needed <= precision:
            return True
        if needed > MAX_MAGNITUDE:
            raise TooLarge("telling the values apart needs too many digits")
        precision = needed
    return True


class Evaluation:
    """The value of trees at one point, with one precision.

    Args:
        point: value of each symbol.
        precision: bits of inexact values.
        radians: whether a degree sign outside functions is a factor.
        real: whether a root or logarithm that is not real is `Undefined`.
    """

    def __init__(
        self, point: Mapping[str, Fraction], precision: int = _PRECISION, radians: bool = False, real: bool = False
    ) -> None:
        self._point = point
        self._only_real = real
        self._radians = radians
        self.peak = 0  # largest binary exponent seen, for the rounding noise
        self.mp = _context()
        self.mp.prec = precision

    def value(self, node: Node, inside: bool = False) -> Number:
        """The value of a tree; `inside` a function a degree sign means pi / 180.

        Raises:
            TooLarge, Undefined: as the names say.
        """
        if node.op == "num":
            return node.value
        if node.op == "sym":
            return self._point[node.name]
        if node.op == "deg":
            value = self.value(node.args[0], inside)
            return self._keep(self.inexact(value) * self.mp.pi / 180) if inside or self._radians else value
        if node.op in ("sum", "prod"):
            return self._keep(self._repeated(node, inside))
        inside = inside or node.op == "fn"
        operands = [self.value(arg, inside) for arg in node.args]
        try:
            found = self._keep(OPERATIONS[node.op](self, node, *operands))
            if self._only_real and node.op in ("root", "pow", "fn") and not isinstance(found, Fraction) and found.imag:
                raise Undefined("not a real number")
            return found
        except (ZeroDivisionError, ValueError) as error:
            raise Undefined(str(error)) from error
        except (OverflowError, MemoryError) as error:
            raise TooLarge(str(error)) from error

    def _repeated(self, node: Node, inside: bool) -> Number:
        """A finite sum or product; of terms with an index such as a_k, a fixed smooth function of limits and body."""
        low, high = (self.value(arg, inside) for arg in node.args[:2])
        if not _is_indexed(node):
            if not all(isinstance(x, Fraction) and x.denominator == 1 for x in (low, high)):
                raise Undefined("limits that are not whole numbers")
            if high < low - 1:
                raise Undefined("limits the wrong way round")
            if high - low >= MAX_TERMS:
                raise TooLarge("a sum of too many terms")
            total: Number = Fraction(node.op == "prod")
            for k in range(int(low), int(high) + 1):
                a, b = self.both(total, self._at(node, Fraction(k), inside))
                total = self._keep(a + b if node.op == "sum" else a * b)
            return total
        body = self._at(node, Fraction(1234, 1009), inside)
        return OPERATIONS["apply"](self, Node("apply", name=node.op), low, high, body)

    def _at(self, node: Node, k: Fraction, inside: bool) -> Number:
        """The body of a sum with its variable at k."""
        outer, self._point = self._point, {**self._point, node.name: k}
        try:
            return self.value(node.args[2], inside)
        finally:
            self._point = outer

    def inexact(self, value: Number) -> Number:
        """As a number of mpmath."""
        if isinstance(value, Fraction):
            return self.mp.mpf(value.numerator) / value.denominator
        return value

    def _keep(self, value: Number) -> Number:
        """The value, if its size is within bounds."""
        if isinstance(value, Fraction):
            bits = value.numerator.bit_length() + value.denominator.bit_length()
            if bits > MAX_BITS:
                raise TooLarge("an exact value of too many digits")
            spend(10 + (bits / 1000) ** 2)
            return value
        if isinstance(value, int):
            return self._keep(Fraction(value))
        mp = self.mp
        spend(5 + (mp.prec / 2000) ** 2)
        if not mp.isfinite(value):
            raise Undefined("not a finite number")
        if value == 0:
            return value
        magnitude = mp.mag(value)
        if abs(magnitude) > MAX_MAGNITUDE:
            raise TooLarge("a value of too many digits")
        self.peak = max(self.peak, magnitude)
        return value

    def both(self, a: Number, b: Number) -> tuple[Number, Number]:
        """Two operands of one kind."""
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return a, b
        return self.inexact(a), self.inexact(b)

    def real(self, value: Number) -> Number:
        """The value without an imaginary part that is only noise.

        Raises:
            Undefined: the imaginary part is real enough.
        """
        if isinstance(value, self.mp.mpc):
            if abs(value.imag) > self.mp.ldexp(1, self.peak - self.mp.prec + _SLACK):
                raise Undefined("a complex number where a real one is needed")
            return value.real
        return value


def _is_indexed(node: Node) -> bool:
    """Whether the body of a sum has a symbol whose subscript holds the variable."""
    subscripts = (name.partition("_")[2] for name in symbols(node.args[2]))
    return any(node.name in subscript for subscript in subscripts)


def is_positive(value: Number) -> bool:
    """Whether a value is real and above zero (rounding noise in the imaginary part apart)."""
    if isinstance(value, Fraction):
        return value > 0
    real, imaginary = value.real, value.imag
    return bool(real > 0 and abs(imaginary) <= abs(real) * 1e-20)
