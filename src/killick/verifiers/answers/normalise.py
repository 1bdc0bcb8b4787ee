r"""One spelling for what is written in many: LaTeX or plain text of an answer, without any change of meaning.

Each rule is a named step, so that `killick verify` can show what it did. Rules that depend on the other side (units,
per cent, decimal commas) are not here but where the two sides are compared.
"""

import re
from collections.abc import Callable, Iterator

from killick.verifiers.number import clean

_CHARACTERS = str.maketrans(
    {
        "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div ", "√": r"\sqrt ", "π": r"\pi ",
        "∞": r"\infty ", "≤": r"\leq ", "≥": r"\geq ", "⩽": r"\leq ", "⩾": r"\geq ", "≠": r"\neq ", "±": r"\pm ",
        "∓": r"\mp ", "°": r"^\circ ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
        "…": r"\ldots ", "⋯": r"\ldots ", "⁄": "/", "≈": r"\approx ", "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}",
        "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "⅛": r"\frac{1}{8}", "²": "^2 ", "³": "^3 ",
        "ℝ": r"\mathbb{R}", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ", "’": "'", "′": "'",
        "，": ",", "（": "(", "）": ")", "：": ":", "；": ";", "％": "%", "∖": r"\setminus ", "￥": "¥",
        "“": '"', "”": '"', "．": ".", "＋": "+", "－": "-", "＝": "=",
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},  # full-width digits
    }
)  # fmt: skip
_WORD_END = r"(?![A-Za-z])"
_NAMES = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "le": "leq", "ge": "geq", "leqslant": "leq",
    "geqslant": "geq", "ne": "neq", "dots": "ldots", "cdots": "ldots", "dotsc": "ldots", "dotsb": "ldots",
    "varnothing": "emptyset", "ast": "cdot", "lbrace": "{", "rbrace": "}", "mbox": "text", "textbf": "text",
    "textit": "text", "textrm": "text", "textnormal": "text", "mathbf": "mathrm", "mathit": "mathrm",
    "mathsf": "mathrm", "boldsymbol": "mathrm", "bm": "mathrm", "bold": "mathrm", "degree": "circ",
    "operatorname": "mathrm",
    "lvert": "|", "rvert": "|", "vert": "|", "mid": "|", "backslash": "setminus", "imath": "mathrm{i}", "iff": "equiv",
    "to": "rightarrow", "approxeq": "approx", "simeq": "approx", "tg": "tan", "ctg": "cot",
}  # fmt: skip
_LETTER = {
    "lt": "<", "gt": ">", "lparen": "(", "rparen": ")", "lbrack": "[", "rbrack": "]", "langle": "(", "rangle": ")",
}  # fmt: skip
_RENAME = re.compile(rf"\\({'|'.join(_NAMES)}){_WORD_END}")
_AS_LETTER = re.compile(rf"\\({'|'.join(_LETTER)}){_WORD_END}")
_DROPPED = re.compile(
    rf"\\(?:left|right){_WORD_END}\.?|\\(?:[hv]space|phantom) ?(?:\{{[^{{}}]*\}}|(?=-))"
    rf"|\\(?:[bB]igg?[lrm]?|displaystyle|textstyle|limits|nolimits|bf|rm|it){_WORD_END}"
)
_BLANK = re.compile(r"(?:(?<!\\)\\[,;:> ]|~|\\(?:q?quad|thinspace|enspace)(?![A-Za-z])|\\(?:text|mathrm)\{\s*\}|\s)+")
_MATHRM = re.compile(r"\\mathrm ?\{([^{}\\]*)\}")
_LATEX_ENDS = re.compile(r"^(?:\$\$?|\\\(|\\\[|\*\*)\s*|\s*(?:\$\$?|\\\)|\\\]|\*\*)$")
_JOINED_COMMA = re.compile(r"(?<=[0-9])(?<![^0-9]0)(?<!^0)(?:\{,\}|,\\!) ?(?=[0-9])")
_GROUPED = re.compile(
    r"(?<![0-9A-Za-z.,^_/])(?<![0-9A-Za-z.^_] )[1-9][0-9]{0,2}(?: [0-9]{3})+(?! ?[0-9/^])(?!,[0-9])"
)  # 12 345 678, but not the 1 234 of "5 1 234", "1 234/5" or "1,234 567"
_THOUSANDS = re.compile(r"(?<![0-9.,^_])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
_POINTED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,}(?![0-9.,])")  # 1.234.567
_MIXED = re.compile(r"(?<![0-9.^_/])(?<![0-9.] )([0-9]{1,9}) ([0-9]{1,9})/([0-9]{1,9})(?! ?[0-9/^.])")
_SPACED_FRACTION = re.compile(r"(\\frac) ?([0-9]) ?([0-9])(?![0-9])")  # \frac 1 2
_SPELLINGS = (
    ("<=", r"\\leq "),
    (">=", r"\\geq "),
    ("!=", r"\\neq "),
    (r"(?<![=<>!])==(?!=)", "="),
    (r"\bnp\.", ""),
    (r"(?<=[0-9]) ?[xX] ?(?=10 ?\^)", r"\\times "),
    (r"\.{3,}", r"\\ldots "),
    (r"\^ ?\{? ?\\prime ?\}?", "'"),
    (r"^\s*\\approx(?![a-z])", ""),
)
_OPENING, _CLOSING = "([", ")]"


def _wrapping(text: str) -> str:
    """Delimiters of mathematics and bold print around the whole, and the full stop behind it."""
    previous = None
    while previous != text:
        previous = text
        text = _LATEX_ENDS.sub("", text.strip()).strip()
        text = re.sub(r"(?<!\\)\\$", "", re.sub(r"(?<![.])[.,;:]$", "", text)).strip()
    return text


def _box(text: str) -> str:
    """A box inside an answer says nothing more."""
    return re.sub(r"\\(?:boxed|fbox|framebox)(?=\s?\{)", "", text)


def _spelling(text: str) -> str:
    text = text.translate(_CHARACTERS)
    text = _RENAME.sub(lambda match: "\\" + _NAMES[match[1]], text)
    text = _AS_LETTER.sub(lambda match: _LETTER[match[1]], text).replace("\\|", "|")
    for pattern, replacement in _SPELLINGS:
        text = re.sub(pattern, replacement, text)
    return _DROPPED.sub(" ", text)


def _blanks(text: str) -> str:
    text = re.sub(r"(?<!\\)\$", " ", text)  # what is left between formulas: "$1$, $2$"
    text = _JOINED_COMMA.sub("", text)  # before "\\!" goes: 32,\! 349 is one number
    return _BLANK.sub(" ", text.replace("\\!", "").replace("{,}", ",")).strip()


def _roman(text: str) -> str:
    r"""`\mathrm{1,000}` and `\mathrm{e}` are what they hold; `\mathrm{cm}` is text, as in `\text{cm}`."""

    def plain(match: re.Match[str]) -> str:
        inside = match[1].strip()
        short = len(inside) == 1 or not re.search(r"[A-Za-z]", inside) or inside in _FUNCTION_NAMES
        return f" {inside} " if short else rf"\text{{{inside}}}"

    return _MATHRM.sub(plain, text)


_FUNCTION_NAMES = {"sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "lg", "exp", "arcsin", "arccos", "arctan"}


def _digits(text: str) -> str:
    """Separators inside one number: spaces always, commas only outside brackets, where they part coordinates."""
    text = _GROUPED.sub(lambda match: match[0].replace(" ", ""), text)
    text = _POINTED.sub(lambda match: match[0].replace(".", ""), text)
    depths, depth = [], 0
    for position, character in enumerate(text):
        if character in _OPENING or (character == "{" and text[position - 1 : position] == "\\"):
            depth += 1
        depths.append(depth)
        if character in _CLOSING or (character == "}" and text[position - 1 : position] == "\\"):
            depth -= 1
    return _THOUSANDS.sub(lambda match: match[0] if depths[match.start()] > 0 else match[0].replace(",", ""), text)


def _fractions(text: str) -> str:
    text = _SPACED_FRACTION.sub(r"\1{\2}{\3}", text)
    return _MIXED.sub(
        lambda m: rf"{m[1]}\frac{{{m[2]}}}{{{m[3]}}}" if int(m[2]) < int(m[3]) else m[0], text
    )  # 2 7/4 stays: it may be a slip of either reading


STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("invisible and control characters", clean),
    ("delimiters around the whole", _wrapping),
    ("boxes inside", _box),
    ("one name per symbol", _spelling),
    ("blanks", _blanks),
    ("upright letters", _roman),
    ("digit groups", _digits),
    ("mixed numbers and bare fractions", _fractions),
    ("delimiters left over", _wrapping),
)


def steps(text: str) -> Iterator[tuple[str, str]]:
    """The steps that changed the text: (name of the step, text after it)."""
    for name, step in STEPS:
        after = step(text)
        if after != text:
            yield name, after
        text = after


def normalise(text: str) -> str:
    """The text after all steps."""
    for _, step in STEPS:
        text = step(text)
    return text
