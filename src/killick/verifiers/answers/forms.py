"""What kinds of answers there are: values, words, lists, tuples, sets, relations, intervals, matrices."""

from dataclasses import dataclass, field

from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.reals import Piece, RealSet
from killick.verifiers.answers.tree import Node, Unreadable


@dataclass(frozen=True)
class Word:
    """Words, compared as text; also the digits of a number in another base than ten."""

    text: str
    base: int = 0


@dataclass(frozen=True)
class Choice:
    """A letter of a multiple choice, and the text of the choice."""

    letter: str
    rest: "Form"


@dataclass(frozen=True)
class Many:
    """Several answers: `list` without brackets, `set`, or ordered in the brackets given, e.g. `(]`."""

    kind: str
    items: tuple["Form", ...]
    either: bool = field(default=False, compare=False)  # parted by "or"


@dataclass(frozen=True)
class Ratio:
    """Numbers parted by colons; also a time of day, whose half of the day may be given."""

    items: tuple[Value, ...]
    half: str = ""


@dataclass(frozen=True)
class Named:
    """A value under a name, as in `x = 5` or `f(x) = 2x`."""

    name: str
    form: "Form"
    equation: tuple[Node, Node] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Equation:
    """Two sides, none of which is a name."""

    left: Node
    right: Node


@dataclass(frozen=True)
class Chain:
    r"""Sides with order signs between them, all turned to `<`, `\leq` or `\neq`."""

    sides: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """Rows of entries."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class Congruence:
    r"""Residue classes: `x \equiv 3 \pmod{7}`, or `3 \pmod{7}` without a name."""

    name: str
    residue: "Form"
    modulus: Node


Form = Value | Word | Choice | Many | Ratio | Named | Equation | Chain | RealSet | Matrix | Congruence


def gap(chain: Chain, place: int) -> Node:
    """What the inequality at one place says to be positive: right side minus left side."""
    return Node("add", (chain.sides[place + 1], Node("neg", (chain.sides[place],))))


INTERVALS = ("()", "[]", "(]", "[)")


def as_interval(form: Many) -> RealSet:
    """A pair in brackets as the interval between its ends.

    Raises:
        Unreadable: its ends are not values.
    """
    ends = form.items
    if form.kind not in INTERVALS or len(ends) != 2 or not all(isinstance(end, Value) for end in ends):
        raise Unreadable("not an interval")
    low, high = (end.node for end in ends if isinstance(end, Value))
    return RealSet((Piece(low, high, form.kind[0] == "[", form.kind[1] == "]"),))


def pieces_of(form: Form) -> tuple[Piece, ...]:
    """A set of reals as intervals; an element is an interval of one point.

    Raises:
        Unreadable: it is something else.
    """
    if isinstance(form, RealSet):
        return form.pieces
    if isinstance(form, Many) and form.kind == "set" and all(isinstance(item, Value) for item in form.items):
        return tuple(Piece(item.node, item.node, True, True) for item in form.items if isinstance(item, Value))
    if isinstance(form, Many):
        return as_interval(form).pieces
    raise Unreadable("something else than sets joined")


def part_of(whole: Form, pieces: tuple[Piece, ...]) -> Form:
    """What is left of a set: some of its elements when they were listed."""
    listed = isinstance(whole, Many) and whole.kind == "set"
    return Many("set", tuple(Value(p.low, "") for p in pieces if p.low)) if listed or not pieces else RealSet(pieces)
