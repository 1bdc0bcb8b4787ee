"""Two quantities compared: values with their units, per cent signs, degrees and roundings."""

import re
from dataclasses import dataclass
from fractions import Fraction

from killick.verifiers.answers import values
from killick.verifiers.answers.limits import TooLarge, Undefined, budget
from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.rounding import rounds
from killick.verifiers.answers.tree import Node
from killick.verifiers.answers.units import conversion, measure

_DECIMAL = re.compile(r"-?[0-9]*\.([0-9]{1,40})")
_TEMPERATURE = re.compile(r"\W*(?:text\W*)?([CF])\W*")


@dataclass(frozen=True)
class Decision:
    """The outcome of a comparison and the rule that led to it."""

    same: bool
    rule: str


def amounts(gold: Value, found: Value) -> Decision:
    """Whether one amount is another, and by which rule.

    Raises:
        TooLarge, Undefined: of `values`; the two cannot be evaluated.
    """
    if (gold.unit or found.unit) and (decision := _other_scale(gold, found)):
        return decision
    factor = conversion(gold.unit, found.unit)
    if factor is None:
        return Decision(False, "units that contradict each other")
    if gold.percent != found.percent and (gold.unit or found.unit or _is_angle(gold) or _is_angle(found)):
        return Decision(False, "a percentage against another unit")
    if _is_angle(gold) != _is_angle(found) and not all(_may_be_angle(side) for side in (gold, found)):
        return Decision(False, "an angle against another unit")
    if gold.percent or found.percent:
        return _percentages(gold, found)
    if factor != 1:
        scaled = Node("mul", (found.node, Node("num", value=factor)))
        return Decision(values.same(gold.node, scaled), "values in different units")
    return _plain(gold, found)


def _other_scale(gold: Value, found: Value) -> Decision | None:
    """What is settled by scales no factor connects here: degrees against radians, Celsius against Fahrenheit."""
    scales = [_scale(side) for side in (gold, found)]
    if set(scales) == {"degree", "radian"}:
        nodes = [
            Node("deg", (s.node,)) if kind == "degree" and s.node.op == "num" else s.node
            for s, kind in zip((gold, found), scales, strict=True)
        ]
        return Decision(values.same(*nodes, radians=True), "degrees against radians")
    if all(scales) and len(set(scales)) == 2:
        return Decision(False, "scales that contradict each other")
    return None


def _scale(side: Value) -> str:
    """The scale of an angle or a temperature that its sign or unit names; "" without one."""
    letter = _TEMPERATURE.fullmatch(side.unit) if _is_angle(side) else None
    if letter:
        return letter[1]
    size = measure(side.unit) if side.unit else None
    if size and size[0] == (("angle in radians", 1),):
        return "radian"
    return "degree" if _is_angle(side) or (size and size[0] == (("angle", 1),)) else ""


def _is_angle(side: Value) -> bool:
    return side.node.op == "deg" or (side.node.op == "neg" and side.node.args[0].op == "deg")


def _may_be_angle(side: Value) -> bool:
    return conversion(side.unit, "degree") is not None


def _percentages(gold: Value, found: Value) -> Decision:
    """The sign may be left out or added; 28 % is also 0.28, but a share of 0.5 is not answered by 0.5 %."""
    hundredth = Node("num", value=Fraction(1, 100))
    if gold.percent and found.percent:
        return _plain(gold, found)
    if gold.percent:
        as_share = Value(Node("mul", (gold.node, hundredth)), "")
        if _plain(gold, found).same:
            return Decision(True, "per cent sign left out")
        return Decision(_plain(as_share, found).same, "per cent as a share")
    as_share = Value(Node("mul", (found.node, hundredth)), "")
    if _plain(gold, as_share).same:
        return Decision(True, "per cent as a share")
    exact = values.exact_value(gold.node)
    is_share = exact is not None and abs(exact) < 1
    return Decision(not is_share and _plain(gold, found).same, "per cent sign added")


def _plain(gold: Value, found: Value) -> Decision:
    if gold.text and gold.text == found.text:
        return Decision(True, "same text")
    if values.same(gold.node, found.node):
        in_degrees = ["circ" in side.text for side in (gold, found)]
        mixed = in_degrees[0] != in_degrees[1] and all(
            map(_mentions_pi, (gold, found))
        )  # pi / 2 is not (pi / 2) degrees
        return Decision(not mixed, "same value")
    has_degree = [values.has(side.node, "deg") for side in (gold, found)]
    if has_degree[0] != has_degree[1] and _mentions_pi(found if has_degree[0] else gold):
        return Decision(values.same(gold.node, found.node, radians=True), "degrees against radians")
    if rounds(gold, found):
        return Decision(True, "a decimal of six digits or more that rounds the exact value")
    return Decision(False, "different values")


def _mentions_pi(side: Value) -> bool:
    def search(node: Node) -> bool:
        return (node.op == "const" and node.name == "pi") or any(map(search, node.args))

    return search(side.node)


def agree(one: Value, other: Value) -> bool:
    """Whether two numbers set equal are: exactly, up to a per cent sign, or as far as the decimals of one go."""
    try:
        with budget():
            if amounts(one, other).same or amounts(other, one).same:
                return True
            places = [len(match[1]) for side in (one, other) if (match := _DECIMAL.fullmatch(side.text))]
            run = values.Evaluation({})
            gap = abs(run.real(run.inexact(run.value(Node("add", (one.node, Node("neg", (other.node,))))))))
            return bool(places and gap <= run.inexact(Fraction(1, 10 ** min(places))))
    except (TooLarge, Undefined):
        return False


def is_whole(amount: Value) -> bool:
    """Whether a number is a whole one, as far as exact arithmetic goes."""
    try:
        with budget():
            exact = values.exact_value(amount.node)
    except (TooLarge, Undefined):
        return False
    return exact is not None and exact.denominator == 1
