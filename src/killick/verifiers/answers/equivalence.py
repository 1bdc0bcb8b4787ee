"""Whether two forms are the same answer, and by which rule. When the rules disagree or none fits: not the same."""

import re
from fractions import Fraction

from killick.verifiers.answers import values
from killick.verifiers.answers.amounts import Decision, amounts
from killick.verifiers.answers.forms import (
    Chain,
    Choice,
    Congruence,
    Equation,
    Form,
    Many,
    Matrix,
    Named,
    Ratio,
    Word,
    as_interval,
    gap,
)
from killick.verifiers.answers.numerals import number_word
from killick.verifiers.answers.quantity import Value
from killick.verifiers.answers.reals import RealSet, half_line, same_pieces
from killick.verifiers.answers.tree import Node, Unreadable


def compare(gold: Form, found: Form) -> Decision:
    """Whether `found` is the answer `gold`.

    Raises:
        TooLarge, Undefined: of `values`; the two cannot be evaluated.
    """
    if isinstance(gold, Choice) or isinstance(found, Choice):
        return _choices(gold, found)
    if isinstance(gold, Congruence) or isinstance(found, Congruence):
        return _congruences(gold, found)
    if isinstance(gold, Named) or isinstance(found, Named) or isinstance(gold, Equation):
        return _relations(gold, found)
    if isinstance(gold, RealSet) or isinstance(found, RealSet):
        return _sets_of_reals(gold, found)
    if isinstance(gold, Many) or isinstance(found, Many):
        return _several(gold, found)
    if isinstance(gold, Ratio) or isinstance(found, Ratio):
        return _ratios(gold, found)
    if isinstance(gold, Value) and isinstance(found, Value):
        return amounts(gold, found)
    if isinstance(gold, Matrix) and isinstance(found, Matrix):
        return _matrices(gold, found)
    if isinstance(gold, Chain) and isinstance(found, Chain):
        return _chains(gold, found)
    if isinstance(gold, Word) or isinstance(found, Word):
        numbers = [_number_word(form) for form in (gold, found)]
        if any(numbers):
            pair = [word or form for word, form in zip(numbers, (gold, found), strict=True)]
            return compare(*pair) if all(isinstance(form, Value) for form in pair) else Decision(False, "words")
        letters = _letters(gold)
        return Decision(letters is not None and letters == _letters(found), "words")
    return Decision(False, "answers of different kinds")


def _letters(form: Form) -> str | None:
    if isinstance(form, Word):
        return form.text.replace(" ", "") + (f" in base {form.base}" if form.base else "")
    return form.text.lower() if isinstance(form, Value) and form.text.isalpha() and len(form.text) > 1 else None


def _number_word(form: Form) -> Value | None:
    """A number written as a word."""
    number = number_word(form.text) if isinstance(form, Word) and not form.base else None
    return None if number is None else Value(Node("num", value=Fraction(number)), str(number))


def _congruences(gold: Form, found: Form) -> Decision:
    """Residue classes with one modulus; the residue alone answers, but not where the gold names an unknown."""
    if isinstance(gold, Congruence) and isinstance(found, Congruence):
        if not values.same(gold.modulus, found.modulus):
            return Decision(False, "different moduli")
        if gold.name and found.name and gold.name != found.name:
            return Decision(False, "residue classes of different unknowns")
        sides = [form.items if isinstance(form, Many) else (form,) for form in (gold.residue, found.residue)]
        classes = [{_residue(item, gold.modulus) for item in side} for side in sides]
        if any(residue is None for side in classes for residue in side):
            return Decision(compare(gold.residue, found.residue).same, "residues")
        return Decision(classes[0] == classes[1], "residue classes")
    if isinstance(gold, Congruence):
        return Decision(not gold.name and compare(gold.residue, found).same, "residue against a value")
    assert isinstance(found, Congruence), "one of the two is a congruence"
    if isinstance(gold, Named) or not re.fullmatch("[A-Za-z]?", found.name):
        return Decision(False, "a value against a residue class of something else")
    least = _residue(found.residue, found.modulus)
    if least is None or not isinstance(gold, Value):
        return Decision(False, "a value against a residue class without a least residue")
    return Decision(values.exact_value(gold.node) == least and compare(gold, found.residue).same, "least residue")


def _residue(form: Form, modulus: Node) -> Fraction | None:
    """The least residue that is not negative, when residue and modulus are rational numbers."""
    bound = values.exact_value(modulus)
    number = values.exact_value(form.node) if isinstance(form, Value) else None
    return None if number is None or not bound else number % abs(bound)


def _choices(gold: Form, found: Form) -> Decision:
    letters = [form.letter if isinstance(form, Choice) else _single_letter(form) for form in (gold, found)]
    if isinstance(gold, Choice) and isinstance(found, Choice) and letters[0] == letters[1]:
        numbers = isinstance(gold.rest, Value) and isinstance(found.rest, Value)
        return Decision(not numbers or compare(gold.rest, found.rest).same, "letter of the choice and its value")
    if all(letters):
        return Decision(letters[0] == letters[1], "letter of the choice")
    contents = [form.rest if isinstance(form, Choice) else form for form in (gold, found)]
    return Decision(compare(contents[0], contents[1]).same, "text of the choice")


def _single_letter(form: Form) -> str | None:
    return form.text if isinstance(form, Value) and re.fullmatch("[A-J]", form.text) else None


def _relations(gold: Form, found: Form) -> Decision:
    """A named value against a value, and equations up to a constant factor."""
    if isinstance(gold, Named) and isinstance(found, Named):
        decision = compare(gold.form, found.form)
        if decision.same and (gold.name == found.name or _wordy(gold.name) or _wordy(found.name)):
            return Decision(True, f"values of {gold.name}: {decision.rule}")
        if _same_function(gold, found):
            return Decision(True, "the same function of another variable")
    elif isinstance(gold, Named) and not isinstance(found, Equation):
        return Decision(compare(gold.form, found).same, f"value of {gold.name}")
    elif isinstance(found, Named) and not isinstance(gold, Equation):
        return Decision(compare(gold, found.form).same, f"value of {found.name}")
    left, right = _sides(gold), _sides(found)
    if left and right:
        gaps = [Node("add", (side[0], Node("neg", (side[1],)))) for side in (left, right)]
        literally = values.same(left[0], right[0]) and values.same(left[1], right[1])
        return Decision(literally or values.proportional(*gaps), "equations up to a factor")
    return Decision(False, "an equation against something else")


_FUNCTION_OF = re.compile(r"([A-Za-z](?:_[A-Za-z0-9])?)\(([k-nr-z])\)")  # f(a) is a value at a point


def _same_function(gold: Named, found: Named) -> bool:
    """Whether f(x) = x + 1 and f(t) = t + 1 say the same; not when one mentions the variable of the other."""
    names = [_FUNCTION_OF.fullmatch(side.name) for side in (gold, found)]
    if not (names[0] and names[1] and isinstance(gold.form, Value) and isinstance(found.form, Value)):
        return False
    if names[0][1] != names[1][1] or names[0][2] in values.symbols(found.form.node):
        return False
    return values.same(gold.form.node, _renamed(found.form.node, names[1][2], names[0][2]))


def _renamed(node: Node, old: str, new: str) -> Node:
    args = tuple(_renamed(arg, old, new) for arg in node.args)
    return Node(node.op, args, node.value, new if node.op == "sym" and node.name == old else node.name)


def _wordy(name: str) -> bool:
    return name.startswith("\\text") or re.fullmatch("[A-Za-z][a-z]{2,}", name) is not None


def _sides(form: Form) -> tuple[Node, Node] | None:
    if isinstance(form, Equation):
        return form.left, form.right
    return form.equation if isinstance(form, Named) else None


def _ratios(gold: Form, found: Form) -> Decision:
    if isinstance(gold, Ratio) and isinstance(found, Ratio):
        times = [_clock(form) for form in (gold, found)]
        if times[0] and times[1]:
            return Decision(_same_time(gold, found, times[0], times[1]), "times of day")
        if len(gold.items) != len(found.items):
            return Decision(False, "ratios of different length")
        if all(amounts(a, b).same for a, b in zip(gold.items, found.items, strict=True)):
            return Decision(True, "terms of the ratio")
        if any(times) and (gold.half or found.half or all(len(form.items[1].text) == 2 for form in (gold, found))):
            return Decision(False, "a time of day against something else")
        products = [
            values.same(
                Node("mul", (gold.items[0].node, found.items[n].node)),
                Node("mul", (found.items[0].node, gold.items[n].node)),
            )
            for n in range(1, len(gold.items))
        ]
        return Decision(all(products), "proportional ratios")
    pair_of_two, other = (gold, found) if isinstance(gold, Ratio) else (found, gold)
    if isinstance(pair_of_two, Ratio) and len(pair_of_two.items) == 2 and isinstance(other, Value):
        if _clock(pair_of_two):
            return Decision(False, "a time against a value")
        quotient = Node("div", (pair_of_two.items[0].node, pair_of_two.items[1].node))
        return Decision(values.same(quotient, other.node) and not other.percent, "ratio as a fraction")
    return Decision(False, "a ratio against something else")


def _same_time(gold: Ratio, found: Ratio, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    if bool(gold.half) == bool(found.half) or a == b:
        return a == b
    return tuple(int(item.text) for item in gold.items) == tuple(int(item.text) for item in found.items)


def _clock(form: Form) -> tuple[int, ...] | None:
    """Hours, minutes, seconds of what is written like a time of day (two digits after the colon)."""
    if not isinstance(form, Ratio) or not 2 <= len(form.items) <= 3:
        return None
    texts = [item.text for item in form.items]
    if not re.fullmatch("[0-9]{1,2}", texts[0]) or not all(re.fullmatch("[0-5][0-9]", text) for text in texts[1:]):
        return None
    numbers = [*map(int, texts), 0][:3]
    if numbers[0] > 24:
        return None
    if form.half:
        numbers[0] = numbers[0] % 12 + (12 if form.half == "p" else 0)
    return tuple(numbers)


def _matrices(gold: Matrix, found: Matrix) -> Decision:
    if [len(row) for row in gold.rows] != [len(row) for row in found.rows]:
        return Decision(False, "matrices of different shape")
    cells = zip((c for row in gold.rows for c in row), (c for row in found.rows for c in row), strict=True)
    return Decision(all(values.same(a, b) for a, b in cells), "entries of the matrix")


def _several(gold: Form, found: Form) -> Decision:
    if isinstance(gold, Matrix) or isinstance(found, Matrix):
        return _vector(gold, found)
    for one, other in ((gold, found), (found, gold)):
        if isinstance(one, Many) and one.kind == "set" and len(one.items) == 1 and not _is_set(other):
            pair = (one.items[0], other) if one is gold else (other, one.items[0])
            return Decision(compare(*pair).same, "a set of one")
    if not isinstance(gold, Many) or not isinstance(found, Many):
        if isinstance(found, Many) and found.kind == "list" and _in_several_ways(gold, found):
            return Decision(True, "one answer written in several ways")
        return Decision(False, "one answer against several")
    ordered_kinds = [side.kind not in ("list", "set") for side in (gold, found)]
    items, others = gold.items, found.items
    if "set" in (gold.kind, found.kind) and not any(ordered_kinds):
        items, others = _distinct(items), _distinct(others)
    if len(items) != len(others):
        return Decision(False, f"{len(others)} answers where there are {len(items)}")
    if any(ordered_kinds) and (gold.either or found.either):
        return Decision(False, "a tuple against alternatives")
    if any(ordered_kinds) or _dotted(items) or _dotted(others):
        return _in_order(gold, found)
    return Decision(_rearranged(items, others), "the same answers in any order")


def _in_several_ways(gold: Form, found: Many) -> bool:
    """Whether all items are the gold, as "1/2, 0.5" is; not x = 5 and y = 5, and not the two signs of a double one."""
    names = {item.name for item in found.items if isinstance(item, Named)}
    return len(names) < 2 and all(compare(gold, item).same for item in found.items)


def _is_set(form: Form) -> bool:
    return isinstance(form, Many) and form.kind == "set"


def _in_order(gold: Many, found: Many) -> Decision:
    brackets = {side.kind for side in (gold, found)} - {"list"}
    if "set" in brackets and len(brackets) > 1:
        return Decision(False, "a tuple against a set")
    if len(brackets) > 1 and (len(gold.items) == 2 or brackets != {"()", "[]"}):
        return Decision(False, "different brackets")
    if gold.kind == "list" and found.kind not in ("list", "set") and not _all_named(gold):
        return Decision(False, "a tuple where a list is asked")
    pairs = zip(_coordinates(gold), _coordinates(found), strict=True)
    return Decision(all(compare(a, b).same for a, b in pairs), "the same answers in order")


def _coordinates(several: Many) -> tuple[Form, ...]:
    """The items; those named x, y and z in that order."""
    names = [item.name if isinstance(item, Named) else "" for item in several.items]
    if several.kind != "list" or not set(names) <= {"x", "y", "z"}:
        return several.items
    return tuple(item for _, item in sorted(zip(names, several.items, strict=True), key=lambda pair: pair[0]))


def _all_named(several: Many) -> bool:
    """Whether the items are values of different names, so that their order may stand for the names."""
    names = {item.name for item in several.items if isinstance(item, Named)}
    return len(names) == len(several.items)


def _vector(gold: Form, found: Form) -> Decision:
    """A column or row against a tuple of its entries."""
    matrix, other = (gold, found) if isinstance(gold, Matrix) else (found, gold)
    if not isinstance(matrix, Matrix) or not isinstance(other, Many) or other.kind != "()":
        return Decision(False, "a matrix against something else")
    entries = [cell for row in matrix.rows for cell in row]
    if len(entries) != len(other.items) or min(len(matrix.rows), len(matrix.rows[0])) > 1:
        return Decision(False, "a vector of another length")
    pairs = zip(entries, other.items, strict=True)
    return Decision(all(isinstance(b, Value) and values.same(a, b.node) for a, b in pairs), "entries of the vector")


def _dotted(items: tuple[Form, ...]) -> bool:
    return any(isinstance(item, Value) and "\\ldots" in item.text for item in items)


def _distinct(items: tuple[Form, ...]) -> tuple[Form, ...]:
    kept: list[Form] = []
    for item in items:
        if not any(compare(other, item).same for other in kept):
            kept.append(item)
    return tuple(kept)


def _rearranged(items: tuple[Form, ...], others: tuple[Form, ...]) -> bool:
    left = list(others)
    for item in items:
        place = next((n for n, other in enumerate(left) if compare(item, other).same), None)
        if place is None:
            return False
        del left[place]
    return True


def _chains(gold: Chain, found: Chain) -> Decision:
    """Inequalities: each pair of neighbours up to a positive factor, in order."""
    if gold.signs != found.signs:
        return Decision(False, "different order signs")
    sides = zip(gold.sides, found.sides, strict=True)
    if all(values.same(a, b) for a, b in sides):
        return Decision(True, "the same inequalities")
    if gold.signs == ("\\neq",):
        return Decision(values.proportional(gap(gold, 0), gap(found, 0)), "inequations up to a factor")
    for place in range(len(gold.signs)):
        factor = values.ratio(gap(gold, place), gap(found, place))
        if factor is None or not values.is_positive(factor):
            return Decision(False, "different inequalities")
    return Decision(True, "inequalities up to a positive factor")


def _sets_of_reals(gold: Form, found: Form) -> Decision:
    sides = []
    for form in (gold, found):
        try:
            if isinstance(form, Many):
                form = as_interval(form)
            if isinstance(form, Chain):
                if len(form.signs) != 1 or form.signs == ("\\neq",):
                    return Decision(False, "an interval against something else")
                form = half_line(gap(form, 0), form.signs[0] == "\\leq")
        except Unreadable:
            return Decision(False, "an interval against something else")
        if not isinstance(form, RealSet):
            return Decision(False, "an interval against something else")
        sides.append(form)
    a, b = sides
    if a.name and b.name and a.name.replace(" ", "") != b.name.replace(" ", ""):
        return Decision(False, "intervals of different variables")
    return Decision(same_pieces(a.pieces, b.pieces), "ends of the intervals")
