"""From a normalised text to its form, decided by the outermost signs only."""

import re
from contextlib import suppress
from functools import lru_cache, reduce

from killick.verifiers.answers.amounts import agree, is_whole
from killick.verifiers.answers.brackets import depth, holds_all, split
from killick.verifiers.answers.forms import (
    INTERVALS,
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
    part_of,
    pieces_of,
)
from killick.verifiers.answers.quantity import MATHS_WORD, Value, compound, value
from killick.verifiers.answers.reals import Piece, RealSet, common, interval_of, ordered, without
from killick.verifiers.answers.syntax import parse
from killick.verifiers.answers.talk import without_talk
from killick.verifiers.answers.tree import Node, Unreadable
from killick.verifiers.answers.values import symbols

_MAX_ITEMS = 50
_MAX_CHARS = 2000
_MAX_DEPTH = 40
_SEPARATOR = re.compile(r"\s*(?:[,;]|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|\\(?:land|lor|vee|wedge)(?![A-Za-z]))\s*")
_TEXT_SEPARATOR = re.compile(r"\\text ?\{\s*,?\s*(and|or)\s*,?\s*\}", re.IGNORECASE)
_RELATION = re.compile(r"\\(?:leq|geq|neq|equiv|in)(?![A-Za-z])|[=<>]")
_APPROX = re.compile(r"\\approx(?![A-Za-z])")
_CUP = re.compile(r"\\cup(?![A-Za-z])")
_CAP = re.compile(r"\\cap(?![A-Za-z])")
_MINUS_SET = re.compile(r"\\setminus(?![A-Za-z])|(?:\\|-)(?=\s*\\\{)")
_SIGN = re.compile(r"\\(pm|mp)(?![A-Za-z])")
_TURNED = {">": "<", "\\geq": "\\leq"}
_SYMBOL = r"(?:[A-Za-z]|\\[A-Za-z]+)'*(?:_(?:\{[^{}]*\}|[A-Za-z0-9]|\\[a-z]+))?"
_PLAIN_NAME = re.compile(
    rf"(?:\\(?:Delta|angle|triangle) ?|m ?\\angle ?|\|)*"
    rf"(?:{_SYMBOL}|[A-Z]{{2,4}}|\\(?:overline|vec|hat|widehat)\{{[A-Za-z]{{1,3}}\}}|\\frac\{{[A-Z]{{2}}\}}\{{[A-Z]{{2}}\}})"
    r"(?:\^\{?-1\}?)?(?: ?\([^()=]*\))?\|?"
)
_NAME = re.compile(
    rf"{_PLAIN_NAME.pattern}|\\text\{{[^{{}}]*\}}|[A-Za-z][a-z]{{2,}}(?: [A-Za-z]+)*|[A-Za-z]\([^()]*=[^()]*\)"
)
_NOT_NAMES = {"pi", "infty", "emptyset", "sqrt", "frac", "ldots", "|x|", "|y|", "|t|", "|n|"}
_CHOICE = re.compile(r"(?:\\text\{ ?)?\(?([A-J])(?:\)|[.:](?= ))\}? ?(.+)", re.DOTALL)
_OTHER_CHOICE = re.compile(
    r"^(?:\\text ?\{)?\W*(?:(?:is|are|was)\W+)?(?:and|or|not|nor|isn't|incorrect|wrong|false)\b"
    r"|(?<![A-Za-z])\(?[A-J](?:\)|[.:](?= ))|\bthe answer is\b"
)
_LETTER = re.compile(r"\\text ?\{ ?(\(?[A-Za-z]\)?)[.:]? ?\}|\(([A-Z])\)")
_TEXT = re.compile(r"(?:\\text ?\{[^{}]*\}[ ]?)+")
_LISTED_TEXT = re.compile(r"\\text ?\{[^{}]*(?:,|\band\b|\bor\b)[^{}]*\}")
_BUILDER = re.compile(r"([A-Za-z])(?: ?\\in ?\\mathbb ?\{?R\}?)? ?[|:] ?(.*)", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z]{3,}[A-Za-z0-9 .'\"-]*")
_BASE = re.compile(r"(-?[0-9A-F]+(?:\.[0-9A-F]+)?)_(?:\{? ?([0-9]{1,2}) ?\}?|\{? ?\\text ?\{ ?([a-z]+) ?\} ?\}?)")
_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "twelve": 12}
_MATRIX = re.compile(r"\\begin\{([pbBvV]?matrix|array)\}(?:\{[^{}]*\})?(.*)\\end\{\1\}", re.DOTALL)
_MODULO = re.compile(r"(.+?) ?\\pmod ?\{([^{}]*)\}", re.DOTALL)
_QUOTED_NUMBER = re.compile(r"\\text ?\{( ?[-+]?(?:\\?\$)?[0-9.][^{}]*)\}")
_TIME = re.compile(r"([0-9]{1,2}(?: ?: ?[0-9]{2}){1,2}) ?(?:\\text ?\{ ?)?([ap])\.? ?m\.? ?\}?", re.IGNORECASE)


@lru_cache(maxsize=16_384)
def read(text: str, glued_units: bool = False) -> Form:
    """The form of a normalised text.

    Args:
        text: from `normalise`.
        glued_units: read `3s` and `5m` as a number with a unit; only where no symbol can be meant.

    Raises:
        Unreadable, OverflowError: it has none, or more than one.
    """
    text = text.strip()
    if not text or len(text) > _MAX_CHARS or depth(text) > _MAX_DEPTH:
        raise Unreadable("empty, too long or nested too deeply")
    text = _TEXT_SEPARATOR.sub(lambda match: f" {match[1].lower()} ", text)
    text = without_talk(text)
    letter = _LETTER.fullmatch(text)
    if letter:
        text = (letter[1] or letter[2]).strip("()")
    if _LISTED_TEXT.fullmatch(text):
        text = text[text.index("{") + 1 : -1].strip()  # \\text{A, C} lists what \\text{A} and \\text{C} are
    quoted = _QUOTED_NUMBER.fullmatch(text)
    if quoted:
        text = quoted[1].strip()
    special = _choice(text, glued_units) or _wording(text) or compound(text)
    if special:
        return special
    if _MATRIX.fullmatch(text):
        return _matrix(text)
    if text.count("\\pmod") == 1 and _MODULO.fullmatch(text):
        return _congruence(text, glued_units)
    parts, _ = split(text, _SEPARATOR)
    parts = [part for part in parts if part]
    if len(parts) > _MAX_ITEMS:
        raise Unreadable("too many items")
    if len(parts) > 1:
        return _several(parts, text, glued_units)
    return _one(parts[0] if parts else text, glued_units)


def _congruence(text: str, glued_units: bool) -> Form:
    """Residue classes: the last side before the modulus, and the name before it if there is one."""
    match = _MODULO.fullmatch(text)
    assert match, "only called for a text that ends in a modulus"
    sides, _ = split(match[1].strip(), _CONGRUENT)
    if not all(sides):
        raise Unreadable("a congruence with an empty side")
    first, modulus, residue = parse(sides[0]), parse(match[2]), read(sides[-1], glued_units)
    name = sides[0] if len(sides) > 1 and symbols(first) else ""
    if len(sides) > 1 and isinstance(residue, Value) and not symbols(residue.node) and not symbols(first):
        gap = Value(Node("div", (Node("add", (first, Node("neg", (residue.node,)))), modulus)), "")
        if not is_whole(gap):
            raise Unreadable("a congruence that does not hold")
    return Congruence(re.sub(r"\s", "", name), residue, modulus)


_CONGRUENT = re.compile(r"\\equiv(?![A-Za-z])|=")


def _choice(text: str, glued_units: bool) -> Choice | None:
    match = _CHOICE.fullmatch(text)
    if not match or _RELATION.match(match[2].lstrip()) or match[2][0] in "+-*/^_,;)":
        return None
    if _OTHER_CHOICE.search(match[2]):
        raise Unreadable("a letter of a choice that is denied, or several")
    try:
        return Choice(match[1], read(match[2].rstrip("}") if text.startswith("\\text") else match[2], glued_units))
    except (Unreadable, OverflowError):
        return Choice(match[1], Word(_plain_words(match[2])))


def _plain_words(text: str) -> str:
    text = re.sub(r"\\text ?\{([^{}]*)\}", r"\1", text)
    words = " ".join(re.sub(r"[\"$\\{}]", " ", text).lower().replace("-", " ").split()).rstrip(".")
    words = re.sub("^(?:it is |it's |there (?:is|are) )?(?:(?:an?|the) (?=[a-z]{2}))?", "", words)
    return re.sub("^(no (?:[a-z]+ )?[a-z]{3,}[a-rt-z])s$", r"\1", words)  # no solutions is no solution


def _wording(text: str) -> Word | Value | None:
    based = _BASE.fullmatch(text)
    if based:
        base = int(based[2] or _BASES.get(based[3] or "", 0))
        if base == 10:
            return value(based[1], False)
        return Word(based[1], base) if base else None
    if _TEXT.fullmatch(text):
        words = _plain_words(text)
        return Word(words) if len(split(words, _SEPARATOR)[0]) == 1 else None
    if _WORDS.fullmatch(text) and not MATHS_WORD.match(text + " "):
        return Word(_plain_words(text))
    return None


def _several(parts: list[str], text: str, glued_units: bool) -> Form:
    """A list; a name before its first item is the name of all, a disjunction of inequalities is a set of reals."""
    forms = [_one(part, glued_units) for part in parts]
    if all(isinstance(form, RealSet) for form in forms) and re.search(r"or|\\lor|\\vee", text):
        names = {form.name for form in forms if isinstance(form, RealSet)}
        pieces = tuple(piece for form in forms if isinstance(form, RealSet) for piece in form.pieces)
        if len(names) == 1:
            return RealSet(pieces, names.pop())
    either = " or " in text or "\\lor" in text or "\\vee" in text
    flat: list[Form] = []
    for form in forms:
        inner = form.form if isinstance(form, Named) and isinstance(form.form, Many) else form
        flat.extend(inner.items if isinstance(inner, Many) and inner.kind == "list" else [form])
    first = flat[0]
    if isinstance(first, Named) and not any(isinstance(form, Named) for form in flat[1:]):
        return Named(first.name, Many("list", (first.form, *flat[1:]), either))
    return Many("list", tuple(flat), either)


def _one(text: str, glued_units: bool) -> Form:
    if text.count("\\pmod") == 1 and _MODULO.fullmatch(text):
        return _congruence(text, glued_units)
    cut = _APPROX.search(text)
    if cut:
        left, right = text[: cut.start()].strip(), text[cut.end() :].strip()
        text = f"{left} = {right}" if _is_name(left) else left
    if _SIGN.search(text) and not (text.startswith("\\{") and holds_all(text)):
        return _both_signs(text, glued_units)
    sides, signs = split(text, _RELATION)
    if signs:
        return _related(sides, signs, glued_units)
    for sign, pattern, build in _SET_SIGNS:
        parts, marks = split(text, pattern) if sign in text else ([], [])
        if marks:
            return build(parts)
    if text in ("\\mathbb{R}", "\\mathbb R", "\\text{all real numbers}", "all real numbers"):
        return RealSet((Piece(None, None),))
    if text == "\\emptyset":
        return Many("set", ())
    return _bracketed(text, glued_units) or _matrix_or_value(text, glued_units)


def _both_signs(text: str, glued_units: bool) -> Form:
    r"""Both readings of `a \pm b`; each of several signs goes its own way unless `\mp` ties them together."""
    marks = [match[1] for match in _SIGN.finditer(text)]
    if len(marks) > 4:
        raise Unreadable("too many double signs")
    tied = "mp" in marks
    count = 2 if tied else 2 ** len(marks)
    forms: list[Form] = []
    for index in range(count):
        bits = iter([index & 1] * len(marks) if tied else [index >> place & 1 for place in range(len(marks))])
        one = _SIGN.sub(lambda m: " + " if next(bits) == (m[1] == "mp") else " - ", text)  # noqa: B023
        forms.append(_one(re.sub(r"(?:^|(?<=[(=,{]))\s*\+", " ", one).strip(), glued_units))
    if all(isinstance(form, Named) for form in forms):
        named = [form for form in forms if isinstance(form, Named)]
        return Named(named[0].name, Many("list", tuple(form.form for form in named)))
    return Many("list", tuple(forms))


def _is_name(text: str) -> bool:
    if _TUPLE_OF_NAMES.fullmatch(text):
        return True
    parts = [part.strip() for part in text.split(":")]
    return all(_NAME.fullmatch(part) and part.lstrip("\\") not in _NOT_NAMES for part in parts)


_TUPLE_OF_NAMES = re.compile(rf"\( ?{_SYMBOL}(?: ?, ?{_SYMBOL})* ?\)|{_SYMBOL}(?: ?, ?{_SYMBOL})+")


def _related(sides: list[str], signs: list[str], glued_units: bool) -> Form:
    """A relation: a named value, an equation, an inequality, membership."""
    if not all(sides):
        raise Unreadable("a relation with an empty side")
    if signs == ["\\in"] or (signs and signs[0] == "\\in" and len(signs) == 1):
        form = _one(sides[1], glued_units)
        if isinstance(form, Many) and len(form.items) == 2 and form.kind in INTERVALS:
            form = as_interval(form)
        if isinstance(form, Value):
            raise Unreadable("membership in a number")
        return RealSet(form.pieces, sides[0]) if isinstance(form, RealSet) else Named(sides[0], form)
    if set(signs) == {"="}:
        return _equality(sides, glued_units)
    if "\\in" in signs or "\\equiv" in signs or "=" in signs:
        raise Unreadable("relations of different kinds")
    return _inequality(sides, signs)


def _equality(sides: list[str], glued_units: bool) -> Form:
    if not _is_name(sides[0]) and len(sides) == 2 and _is_name(sides[1]):
        sides = sides[::-1]
    if _is_name(sides[0]):
        form = _one(sides[-1], glued_units)
        for side in sides[1:-1]:
            middle = None
            with suppress(Unreadable, OverflowError):
                middle = _one(side, glued_units)
            _refuse_other(middle, form)
        nodes = None
        with suppress(Unreadable, OverflowError):  # a name such as AB, or a side that is no expression
            nodes = (parse(sides[0]), parse(sides[-1]))
        return Named(re.sub(r"[\s{}]", "", sides[0]), form, nodes)
    forms = [_one(side, glued_units) for side in sides]
    if not any(symbols(form.node) for form in forms if isinstance(form, Value)):
        for form in forms[:-1]:
            _refuse_other(form, forms[-1])
        return forms[-1]
    if len(sides) > 2:
        raise Unreadable("an equation of more than two sides")
    return Equation(parse(sides[0]), parse(sides[1]))


def _refuse_other(side: Form | None, last: Form) -> None:
    """A chain such as 10 = 9 states nothing.

    Raises:
        Unreadable: both are numbers, and different ones.
    """
    if not (isinstance(side, Value) and isinstance(last, Value)):
        return
    if not (symbols(side.node) or symbols(last.node) or agree(side, last)):
        raise Unreadable("a chain of different numbers")


def _inequality(sides: list[str], signs: list[str]) -> Form:
    nodes = [None if _infinite(side) else parse(side) for side in sides]
    turned = [sign in _TURNED for sign in signs]
    if any(turned) and not all(turned):
        raise Unreadable("order signs of both directions")
    names = list(signs)
    if all(turned):
        nodes, names = nodes[::-1], [_TURNED[sign] for sign in signs[::-1]]
        sides = sides[::-1]
    found = interval_of(nodes, names)
    if found:
        return found
    if any(node is None for node in nodes):
        raise Unreadable("an infinite side")
    return Chain(tuple(node for node in nodes if node), tuple(names))


def _infinite(text: str) -> int:
    """1 or -1 for an infinite end, else 0."""
    bare = re.sub(r"[\s{}+]", "", text)
    return 1 if bare in ("\\infty", "oo", "inf", "infinity") else -1 if bare in ("-\\infty", "-oo", "-inf") else 0


def _union(parts: list[str]) -> Form:
    forms = [_one(part, False) for part in parts]
    if all(isinstance(form, Many) and form.kind == "set" for form in forms):
        return Many("set", tuple(item for form in forms if isinstance(form, Many) for item in form.items))
    return RealSet(tuple(piece for form in forms for piece in pieces_of(form)))


def _without(parts: list[str]) -> Form:
    """A set of reals without another, whose points may have symbols where the whole is all reals."""
    if len(parts) != 2:
        raise Unreadable("a difference of more than two sets")
    whole, points = _one(parts[0], False), pieces_of(_one(parts[1], False))
    if whole != RealSet((Piece(None, None),)) or any(p.low is not p.high for p in points):
        return part_of(whole, without(pieces_of(whole), points))
    ends = [point.low for point in ordered(points)]
    return RealSet(tuple(Piece(a, b) for a, b in zip([None, *ends], [*ends, None], strict=True)))


def _intersection(parts: list[str]) -> Form:
    forms = [_one(part, False) for part in parts]
    return part_of(forms[0], reduce(common, map(pieces_of, forms)))


# Loosest first, each with what a text must hold for it.
_SET_SIGNS = (("\\cup", _CUP, _union), ("\\", _MINUS_SET, _without), ("\\cap", _CAP, _intersection))


def _bracketed(text: str, glued_units: bool) -> Form | None:
    """A tuple, a set or an interval, when one pair of brackets holds the whole."""
    for opening, closing in (("\\{", "\\}"), ("{", "}")):
        if text.startswith(opening) and text.endswith(closing) and holds_all(text):
            inside = text[len(opening) : -len(closing)].strip()
            if not inside:
                return Many("set", ())
            builder = _BUILDER.fullmatch(inside)
            if builder:
                return read(builder[2])
            form = read(inside, glued_units)
            if isinstance(form, Many) and form.kind == "list":
                return Many("set", form.items)
            return form if opening == "{" else Many("set", (form,))
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]" or not holds_all(text):
        return None
    kind, inside = text[0] + text[-1], text[1:-1].strip()
    parts, marks = split(inside, re.compile(r"[,;]"))
    if not marks:
        if kind in ("()", "[]") and _MATRIX.fullmatch(inside):
            return _matrix(inside)
        if kind == "()" and not split(inside, _RELATION)[1]:
            return _one(inside, glued_units) if inside else None
        return None
    if len(parts) == 2 and any(map(_infinite, parts)):
        low, high = (None if _infinite(part) else parse(part) for part in parts)
        if _infinite(parts[0]) > 0 or _infinite(parts[1]) < 0:
            raise Unreadable("an interval from plus or to minus infinity")
        closed = (bool(low) and kind[0] == "[", bool(high) and kind[1] == "]")
        return RealSet((Piece(low, high, *closed),))
    if not all(parts):
        raise Unreadable("an empty coordinate")
    return Many(kind, tuple(_one(part, glued_units) for part in parts))


def _matrix(text: str) -> Matrix:
    match = _MATRIX.fullmatch(text)
    if not match or match[1] in ("vmatrix", "Vmatrix") or "\\begin" in match[2]:
        raise Unreadable("a determinant, or a matrix within a matrix")
    rows = [row for row in re.split(r"\\\\", match[2]) if row.strip()]
    table = tuple(tuple(parse(cell) for cell in row.split("&")) for row in rows)
    if not table or len({len(row) for row in table}) != 1 or len(table) * len(table[0]) > 100:
        raise Unreadable("rows of different length")
    return Matrix(table)


def _matrix_or_value(text: str, glued_units: bool) -> Form:
    if "\\begin" in text:
        return _matrix(text)
    time = _TIME.fullmatch(text)
    body = time[1] if time else text
    if ":" in body:
        parts = [value(part, glued_units) for part in body.split(":")]
        return Ratio(tuple(parts), time[2].lower() if time else "")
    return _wording(text) or value(text, glued_units)
