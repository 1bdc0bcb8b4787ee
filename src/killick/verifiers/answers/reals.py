"""Sets of real numbers as unions of intervals, compared end by end."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key

from killick.verifiers.answers import values
from killick.verifiers.answers.limits import budget
from killick.verifiers.answers.tree import Node, Unreadable


@dataclass(frozen=True)
class Piece:
    """One interval; None is an infinite end."""

    low: Node | None
    high: Node | None
    closed_low: bool = False
    closed_high: bool = False


@dataclass(frozen=True)
class RealSet:
    """A union of intervals, of the variable named if one was."""

    pieces: tuple[Piece, ...]
    name: str = ""


def half_line(positive: Node, closed: bool) -> RealSet:
    """Where a linear expression in one variable is positive (or zero, when `closed`).

    Raises:
        Unreadable: it is not linear in one variable with rational coefficients.
    """
    names = values.symbols(positive)
    if len(names) != 1:
        raise Unreadable("an inequality of several variables")
    (name,) = names
    at = [values.Evaluation({name: Fraction(x)}).value(positive) for x in (0, 1, 2, 7)]
    if not all(isinstance(y, Fraction) for y in at):
        raise Unreadable("not linear with rational coefficients")
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope or at[3] != at[0] + 7 * slope:
        raise Unreadable("not linear")
    root = Node("num", value=-at[0] / slope)
    piece = Piece(root, None, closed_low=closed) if slope > 0 else Piece(None, root, closed_high=closed)
    return RealSet((piece,), name)


def interval_of(nodes: list[Node | None], signs: list[str]) -> RealSet | None:
    """The interval `a < x < b` describes, when x is a bare symbol and the ends are numbers."""
    distance = _distance(nodes, signs)
    if distance:
        return distance
    bare = [place for place, node in enumerate(nodes) if node and node.op == "sym"]
    if len(bare) != 1 or any(node and values.symbols(node) for place, node in enumerate(nodes) if place != bare[0]):
        return None
    place = bare[0]
    variable = nodes[place]
    assert variable, "a bare symbol is a node"
    if signs == ["\\neq"]:
        other = nodes[1 - place]
        return RealSet((Piece(None, other), Piece(other, None)), variable.name)
    if len(nodes) > 3 or "\\neq" in signs or (len(nodes) == 3 and place != 1):
        return None
    low = nodes[place - 1] if place else None
    high = nodes[place + 1] if place + 1 < len(nodes) else None
    closed_low = bool(low) and signs[place - 1] == "\\leq"
    closed_high = bool(high) and signs[place] == "\\leq"
    return RealSet((Piece(low, high, closed_low, closed_high),), variable.name)


def _distance(nodes: list[Node | None], signs: list[str]) -> RealSet | None:
    """The set `|x| < 3` or `3 < |x|` describes."""
    ends = [node for node in nodes if node]
    if len(ends) != 2 or len(nodes) != 2 or signs == ["\\neq"]:
        return None
    place = int(ends[1].op == "abs")
    inside, bound = ends[place], ends[1 - place]
    if inside.op != "abs" or inside.args[0].op != "sym" or bound.op != "num" or bound.value <= 0:
        return None
    closed, low = signs == ["\\leq"], Node("neg", (bound,))
    outer = (Piece(None, low, False, closed), Piece(bound, None, closed))
    return RealSet(outer if place else (Piece(low, bound, closed, closed),), inside.args[0].name)


def same_pieces(left: tuple[Piece, ...], right: tuple[Piece, ...]) -> bool:
    """Whether two unions are the same set."""
    a, b = merged(left), merged(right)
    return len(a) == len(b) and all(_same_piece(p, q) for p, q in zip(a, b, strict=True))


def _same_piece(a: Piece, b: Piece) -> bool:
    if (a.closed_low, a.closed_high) != (b.closed_low, b.closed_high):
        return False
    return _same_end(a.low, b.low) and _same_end(a.high, b.high)


def _same_end(a: Node | None, b: Node | None) -> bool:
    return a is b if a is None or b is None else values.same(a, b)


def _compare_starts(a: Piece, b: Piece) -> int:
    return _order(a.low, b.low, -1) or b.closed_low - a.closed_low


def ordered(pieces: tuple[Piece, ...]) -> list[Piece]:
    """Pieces by their lower ends; symbolic ones stay in the order written."""
    if any(values.symbols(end) for piece in pieces for end in (piece.low, piece.high) if end):
        return list(pieces)
    return sorted(pieces, key=cmp_to_key(_compare_starts))


def _order(a: Node | None, b: Node | None, infinite: int) -> int:
    """The sign of a - b; None is infinite with the sign given."""
    if a is None or b is None:
        return 0 if a is b else infinite if a is None else -infinite
    if values.same(a, b):
        return 0
    run = values.Evaluation({})
    return -1 if run.real(run.inexact(run.value(a))) < run.real(run.inexact(run.value(b))) else 1


def merged(pieces: tuple[Piece, ...]) -> list[Piece]:
    """The same set of reals as disjoint pieces in order."""
    result: list[Piece] = []
    for piece in ordered(pieces):
        if not result or any(values.symbols(e) for p in (piece, result[-1]) for e in (p.low, p.high) if e):
            result.append(piece)
            continue
        last = result[-1]
        gap = -1 if last.high is None or piece.low is None else _order(piece.low, last.high, -1)
        if gap > 0 or (gap == 0 and not (last.closed_high or piece.closed_low)):
            result.append(piece)
            continue
        reach = _order(piece.high, last.high, 1)
        high, closed = (piece.high, piece.closed_high) if reach > 0 else (last.high, last.closed_high)
        if reach == 0:
            closed = last.closed_high or piece.closed_high
        result[-1] = Piece(last.low, high, last.closed_low, closed)
    return result


def without(pieces: tuple[Piece, ...], holes: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """What is left of a union when others are taken out of it.

    Raises:
        Unreadable: an end is symbolic.
        TooLarge, Undefined: an end cannot be computed.
    """
    if any(values.symbols(end) for piece in (*pieces, *holes) for end in (piece.low, piece.high) if end):
        raise Unreadable("a difference of sets with symbolic ends")
    left = list(pieces)
    with budget():
        for hole in holes:
            parts = [part for piece in left for part in (_below(piece, hole), _above(piece, hole))]
            left = [part for part in parts if part]
    return tuple(left)


def common(left: tuple[Piece, ...], right: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """What two unions share: the first without what is only in the first. Raises as `without`."""
    return without(left, without(left, right))


def _below(piece: Piece, hole: Piece) -> Piece | None:
    """The part of a piece below a hole."""
    if hole.low is None:
        return None
    order = _order(piece.high, hole.low, 1)
    high, closed = (hole.low, not hole.closed_low) if order > 0 else (piece.high, piece.closed_high)
    if order == 0:
        closed = piece.closed_high and not hole.closed_low
    return _unless_empty(Piece(piece.low, high, piece.closed_low, closed))


def _above(piece: Piece, hole: Piece) -> Piece | None:
    """The part of a piece above a hole."""
    if hole.high is None:
        return None
    order = _order(piece.low, hole.high, -1)
    low, closed = (hole.high, not hole.closed_high) if order < 0 else (piece.low, piece.closed_low)
    if order == 0:
        closed = piece.closed_low and not hole.closed_high
    return _unless_empty(Piece(low, piece.high, closed, piece.closed_high))


def _unless_empty(piece: Piece) -> Piece | None:
    if piece.low is None or piece.high is None:
        return piece
    order = _order(piece.low, piece.high, -1)
    return piece if order < 0 or (order == 0 and piece.closed_low and piece.closed_high) else None
