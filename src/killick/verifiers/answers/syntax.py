r"""A small grammar of written mathematics: normalised LaTeX or plain text to a tree. Nothing is evaluated here.

It covers what final answers are made of: numbers, symbols, the four operations, powers, roots, fractions, factorials,
binomials, absolute values, finite sums and products, and elementary functions. Everything else, and everything that
can be read in two ways (`1 2`, `2\frac{7}{4}`, `\sin x/2`), is `Unreadable`: guessing would accept wrong answers.
"""

import re
from typing import NoReturn

from killick.verifiers.answers.numerals import REPEATING, SCIENTIFIC, numeral
from killick.verifiers.answers.tree import Node, Unreadable, number

_MAX_DEPTH = 40
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{REPEATING}|{SCIENTIFIC})|(?P<command>\\[A-Za-z]+)|(?P<escaped>\\.)|(?P<word>[A-Za-z]+)"
    r"|(?P<power>\*\*)|(?P<other>\S))",
    re.DOTALL,
)
_FUNCTIONS = [
    "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc", "asin", "acos", "atan", "sinh", "cosh", "tanh", "coth",
    "sech", "csch", "sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "lg", "exp",
]  # fmt: skip
_WORDS = sorted([*_FUNCTIONS, "sqrt", "cbrt", "pi", "abs"], key=len, reverse=True)
_RENAMED = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_INVERSE = {"sin", "cos", "tan", "sinh", "cosh", "tanh"}
_GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "rho", "varrho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega",
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega", "hbar", "ell",
    "ldots",
}  # fmt: skip
_ACCENTS = {"dot", "ddot", "vec", "hat", "bar", "overline", "tilde", "widehat", "mathcal", "mathbb"}
_MIN_PROSE = 4
_BETWEEN = {"\\cdot", "\\times", "\\div", "\\over", "\\choose", "\\circ", "\\rfloor", "\\rceil", "\\pm"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPAQUE = set("fghFGH")  # f(2) is a value of f, not twice f


def parse(text: str) -> Node:
    """The tree of a whole text.

    Raises:
        Unreadable: the text is not one expression of this grammar.
    """
    reader = _Reader(text)
    node = reader.stacked(0)
    if reader.kind:
        reader.refuse()
    return node


class _Reader:
    """Recursive descent over the tokens; `depth` bounds the recursion."""

    def __init__(self, text: str) -> None:
        self._tokens = [(m.lastgroup or "", m[m.lastgroup or 0]) for m in _TOKEN.finditer(text)]
        self._at = 0
        self._bars = 0  # open |…|
        self._bound: list[str] = []  # variables of the sums around: i in a sum over i is no imaginary unit

    @property
    def kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    @property
    def text(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def refuse(self) -> NoReturn:
        raise Unreadable(f"unexpected {self.text!r}" if self.kind else "unexpected end")

    def take(self, *texts: str) -> bool:
        if self.kind and self.text in texts:
            self._at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            self.refuse()

    def sum(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise Unreadable("nested too deeply")
        terms = [self.signed(depth)]
        while self.kind and self.text in "+-":
            terms.append(self.signed(depth))
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def signed(self, depth: int) -> Node:
        negative = False
        signs = 0
        while self.kind and self.text in "+-":
            signs += 1
            negative ^= self.take("-") or not self.take("+")
        if signs > 2:
            self.refuse()
        node = self.product(depth)
        return Node("neg", (node,)) if negative else node

    def product(self, depth: int) -> Node:
        node = self.power(depth)
        while True:
            if self.take("*", "\\cdot", "\\times"):
                node = Node("mul", (node, self.operand(depth)))
            elif self.take("/", "\\div"):
                node = Node("div", (node, self.operand(depth)))
            elif self._starts_factor(depth):
                node = self.juxtaposed(node, depth)
            else:
                return node

    def operand(self, depth: int) -> Node:
        """A factor after an operator; it may carry a sign, as in `2 * -3`."""
        negative = self.take("-")
        node = self.power(depth)
        if node.op == "num" and self.text == "\\frac" and node.value.denominator == 1:
            node = self.juxtaposed(node, depth)  # a mixed number binds before the operator
        return Node("neg", (node,)) if negative else node

    def _starts_factor(self, depth: int) -> bool:
        if self.kind in ("number", "word"):
            return True
        if self.kind == "command":
            return self.text not in _BETWEEN
        return self.text in ("(", "{", "[") or (self.text == "|" and not self._bars)

    def juxtaposed(self, left: Node, depth: int) -> Node:
        """Two factors side by side: a product, or a mixed number."""
        previous = self._tokens[self._at - 1]
        last = left
        while last.op == "mul":
            last = last.args[-1]
        if self.kind == "number" and last.op in ("num", "sym", "const"):
            self.refuse()  # "1 2", "x2"
        digits = left.op == "num" and previous[0] == "number" and previous[1].isdigit()
        is_fraction = self.text == "\\frac"
        right = self.power(depth)
        if digits and is_fraction and right.op == "div" and all(a.op == "num" for a in right.args):
            top, bottom = (a.value for a in right.args)
            if top.denominator * bottom.denominator > 1 or not 0 < top < bottom:
                raise Unreadable("an improper fraction after a whole number")
            return Node("num", value=left.value + top / bottom)
        return Node("mul", (left, right))

    def power(self, depth: int) -> Node:
        base = self.postfix(self.atom(depth + 1))
        if self.take("^", "**"):
            return self._raised(base, depth)
        return base

    def _raised(self, base: Node, depth: int) -> Node:
        if self.take("\\circ"):
            return Node("deg", (base,))
        if self.take("{"):
            if self.take("\\circ"):
                self.need("}")
                return Node("deg", (base,))
            exponent = self.group(depth, "}")
        else:
            negative = self.take("-")
            exponent = self.postfix(self.atom(depth + 1))
            exponent = Node("neg", (exponent,)) if negative else exponent
        if self.take("^", "**"):
            exponent = self._raised(exponent, depth + 1)
        return self.postfix(Node("pow", (base, exponent)))

    def postfix(self, node: Node) -> Node:
        if self.take("!"):
            if self.text == "!":
                self.refuse()
            return Node("fact", (node,))
        return Node("deg", (node,)) if self.take("\\circ") else node

    def group(self, depth: int, close: str) -> Node:
        node = self.stacked(depth + 1) if close == "}" else self.sum(depth + 1)
        self.need(close)
        return node

    def stacked(self, depth: int) -> Node:
        r"""A sum, or two of them around `\over` or `\choose`."""
        node = self.sum(depth)
        if self.take("\\over"):
            return Node("div", (node, self.sum(depth)))
        if self.take("\\choose"):
            return Node("binom", (node, self.sum(depth)))
        return node

    def atom(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise Unreadable("nested too deeply")
        kind, text = self.kind, self.text
        if kind == "number":
            self._at += 1
            return Node("num", value=numeral(text))
        if text in _CLOSING:
            self._at += 1
            bars, self._bars = self._bars, 0
            node = self.group(depth, _CLOSING[text])
            self._bars = bars
            return node
        if text == "|":
            self._at += 1
            self._bars += 1
            node = self.group(depth, "|")
            self._bars -= 1
            return Node("abs", (node,))
        if kind == "word":
            return self.word(depth)
        if kind == "command":
            return self.command(depth)
        self.refuse()

    def word(self, depth: int) -> Node:
        """The first symbol or known name of a run of letters; the rest of the run stays for the next factor."""
        run = self.text
        if len(run) >= _MIN_PROSE and not run.startswith(tuple(_WORDS)):
            self.refuse()  # a word of prose, not a product of its letters
        name = next((word for word in _WORDS if run.startswith(word)), run[0])
        rest = run[len(name) :]
        if rest:
            self._tokens[self._at] = ("word", rest)
        else:
            self._at += 1
        if name == "pi":
            return Node("const", name="pi")
        if name in ("sqrt", "cbrt", "abs"):
            self.need("(")
            inside = self.group(depth, ")")
            if name == "abs":
                return Node("abs", (inside,))
            return Node("root", (inside, number(2 if name == "sqrt" else 3)))
        if name in _FUNCTIONS:
            return self.function(name, depth)
        return self.symbol(name, depth)

    def command(self, depth: int) -> Node:
        name = self.text[1:]
        self._at += 1
        if name == "frac":
            top = self.argument(depth)
            bottom = self.argument(depth)
            return Node("div", (top, bottom))
        if name == "sqrt":
            degree = number(2)
            if self.take("["):
                degree = self.group(depth, "]")
            return Node("root", (self.argument(depth, whole=True), degree))
        if name in ("binom", "dbinom", "tbinom"):
            return Node("binom", (self.argument(depth), self.argument(depth)))
        if name == "pi":
            return Node("const", name="pi")
        if name in _FUNCTIONS:
            return self.function(name, depth)
        if name in ("lfloor", "lceil"):
            inside = self.group(depth, "\\rfloor" if name == "lfloor" else "\\rceil")
            return Node(name[1:], (inside,))
        if name == "Gamma" and self.text == "(":
            return Node("fact", (Node("add", (self.atom(depth), Node("neg", (number(1),)))),))
        if name in _GREEK:
            return self.symbol("\\" + name, depth)
        if name in ("sum", "prod"):
            return self.repeated(name, depth)
        if name in _ACCENTS:
            return self.symbol(f"{name}:{self.raw_group() if self.text == '{' else self.letter()}", depth)
        if name == "text":
            return self.symbol("text:" + self.raw_group(), depth)
        self._at -= 1
        self.refuse()

    def repeated(self, name: str, depth: int) -> Node:
        r"""`\sum_{k=a}^{b} body`: the body reaches to the next plus or minus."""
        self.need("_")
        self.need("{")
        variable = self.letter()
        self.need("=")
        low = self.group(depth, "}")
        self.need("^")
        high = self.argument(depth, whole=True)
        self._bound.append(variable)
        body = self.product(depth + 1)
        self._bound.pop()
        return Node(name, (low, high, body), name=variable)

    def argument(self, depth: int, whole: bool = False) -> Node:
        r"""A braced group or a single token; `\frac12` takes digits one by one, `\sqrt12` the whole number."""
        if self.take("{"):
            return self.group(depth, "}")
        if self.kind == "number" and not whole:
            digits = self.text
            if not digits.isdigit():
                self.refuse()
            if len(digits) == 1:
                self._at += 1
            else:
                self._tokens[self._at] = ("number", digits[1:])
            node = number(int(digits[0]))
            if len(digits) > 2:
                raise Unreadable("digits without braces")
            return node
        if self.kind == "word" and not whole and len(self.text) > 1 and self.text not in _WORDS:
            letter, rest = self.text[0], self.text[1:]
            self._tokens[self._at] = ("word", rest)
            return Node("sym", name=letter)
        return self.atom(depth + 1)

    def function(self, name: str, depth: int) -> Node:
        name = _RENAMED.get(name, name)
        base: tuple[Node, ...] = ()
        exponent: Node | None = None
        if name == "log" and self.take("_"):
            base = (self.argument(depth, whole=True),)
        if self.take("^", "**"):
            exponent = self.argument(depth, whole=True) if not self.take("-") else Node("neg", (self.atom(depth),))
            if exponent == Node("neg", (number(1),)):
                if name not in _INVERSE:
                    raise Unreadable("an inverse of that function")
                name, exponent = "arc" + name, None
        node = Node("fn", (self._operand_of_function(depth), *base), name=name)
        return Node("pow", (node, exponent)) if exponent else node

    def _operand_of_function(self, depth: int) -> Node:
        """Brackets, or the factors up to the next function or operator: `sin 2x`, `cos a sin b`."""
        if self.text in ("(", "{", "["):
            node = self.atom(depth + 1)
            # `\sin (x)^2` is left to the reader of powers, `\sin {2}x` is not written by anybody
            return self.postfix(node)
        node = self.power(depth + 1)
        while self.kind in ("number", "word", "command") and not self._is_function() and self._starts_factor(depth):
            node = self.juxtaposed(node, depth + 1)
        if self.text in ("/", "\\div", "("):
            raise Unreadable("the end of a function's argument is unclear")
        return node

    def _is_function(self) -> bool:
        return self.text.lstrip("\\").startswith(tuple(_FUNCTIONS))

    def symbol(self, name: str, depth: int) -> Node:
        if name == "i" and name not in self._bound:
            return Node("const", name="i")
        if name == "e" and self.text != "_" and name not in self._bound:
            return Node("const", name="e")
        if self.take("_"):
            name += "_" + self.subscript()
        primes = 0
        while self.take("'"):
            primes += 1
        name += "'" * primes
        if self.text == "(" and (name[0] in _OPAQUE or self._is_place()):
            self._at += 1
            args = [self.sum(depth + 1)]
            while self.take(","):
                args.append(self.sum(depth + 1))
            self.need(")")
            return Node("apply", tuple(args), name=name)
        return Node("sym", name=name)

    def _is_place(self) -> bool:
        """Whether a bracket holds a single number: `I(0)` is a value of I, not I times 0."""
        ahead = self._tokens[self._at + 1 : self._at + 3]
        return [kind for kind, _ in ahead] == ["number", "other"] and ahead[1][1] == ")"

    def subscript(self) -> str:
        if self.text == "{":
            return self.raw_group()
        if self.kind == "command" and self.text == "\\text":
            self._at += 1
            return self.raw_group()
        if self.kind not in ("number", "word", "command"):
            self.refuse()
        return self.letter()

    def letter(self) -> str:
        """One token, or the first letter of a run."""
        text = self.text
        if self.kind == "word" and len(text) > 1:
            self._tokens[self._at] = ("word", text[1:])
            return text[0]
        self._at += 1
        return text

    def raw_group(self) -> str:
        """The text of a braced group, uninterpreted: subscripts and words."""
        self.need("{")
        depth = 1
        parts: list[str] = []
        while self.kind:
            depth += (self.text == "{") - (self.text == "}")
            self._at += 1
            if depth == 0:
                return "".join(part for part in parts if part not in ("{", "}", "\\text"))
            parts.append(self._tokens[self._at - 1][1])
        self.refuse()
