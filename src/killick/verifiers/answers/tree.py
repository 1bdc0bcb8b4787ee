"""Expressions as trees: the result of reading, the input of evaluating."""

from dataclasses import dataclass
from fractions import Fraction


class Unreadable(ValueError):  # noqa: N818 - an outcome of reading, not a failure of the program
    """The text is outside the grammar, or can be read in more than one way."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a tree: an operation, its operands, and a value (number) or name (symbol, function)."""

    op: str
    args: tuple["Node", ...] = ()
    value: Fraction = Fraction(0)
    name: str = ""


def number(value: int) -> Node:
    """A whole number as a tree."""
    return Node("num", value=Fraction(value))
