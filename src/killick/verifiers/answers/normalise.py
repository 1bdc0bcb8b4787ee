r"""One spelling for what is written in many: LaTeX or plain text of an answer, without any change of meaning.

Each rule is a named step, so that `killick verify` can show what it did. Rules that depend on the other side (units,
per cent, decimal commas) are not here but where the two sides are compared.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

from killick.verifiers.number import clean

_CHARACTERS = str.maketrans(
    {
        "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div ", "√": r"\sqrt ", "π": r"\pi ",
        "∞": r"\infty ", "≤": r"\leq ", "≥": r"\geq ", "⩽": r"\leq ", "⩾": r"\geq ", "≠": r"\neq ", "±": r"\pm ",
        "∓": r"\mp ", "°": r"^\circ ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
        "…": r"\ldots ", "⋯": r"\ldots ", "⁄": "/", "≈": r"\approx ", "∛": r"\sqrt[3]", "∗": "*", "⟨": "(", "⟩": ")",
        "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "≡": r"\equiv ", "∨": r"\lor ",
        "∠": r"\angle ", "″": "''", "ℯ": "e", "ℝ": r"\mathbb{R}", "θ": r"\theta ", "α": r"\alpha ",
        "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ", "’": "'", "′": "'",
        "，": ",", "（": "(", "）": ")", "：": ":", "；": ";", "％": "%", "∖": r"\setminus ", "￥": "¥",
        "“": '"', "”": '"', "．": ".", "＋": "+", "－": "-", "＝": "=",
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},  # full-width digits
        **{
            sign: rf"\frac{{{top}}}{{{bottom}}}"
            for bottom, tops in {
                2: "1½", 3: "1⅓2⅔", 4: "1¼3¾", 5: "1⅕2⅖3⅗4⅘", 6: "1⅙5⅚", 7: "1⅐", 8: "1⅛3⅜5⅝7⅞", 9: "1⅑",
            }.items()
            for top, sign in zip(tops[::2], tops[1::2], strict=True)
        },
    }
)  # fmt: skip
_ALPHABETS = re.compile("[\U0001d400-\U0001d7ff]+")  # bold, italic and other letters and digits of mathematics
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉ₙ]+")
_TO_LINE = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉ₙ", "0123456789+-n0123456789n")
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
    "bigcup": "cup", "bigcap": "cap",
}  # fmt: skip
_LETTER = {
    "lt": "<", "gt": ">", "lparen": "(", "rparen": ")", "lbrack": "[", "rbrack": "]", "langle": "(", "rangle": ")",
}  # fmt: skip
_RENAME = re.compile(rf"\\({'|'.join(_NAMES)}){_WORD_END}")
_AS_LETTER = re.compile(rf"\\({'|'.join(_LETTER)}){_WORD_END}")
_DROPPED = re.compile(
    rf"\\(?:left|right){_WORD_END}\.?|\\(?:[hv]space|phantom) ?(?:\{{[^{{}}]*\}}|(?=-))"
    r"|\\(?:color|textcolor|tag|label) ?\{[^{}]*\}"
    rf"|\\(?:[bB]igg?[lrm]?|displaystyle|textstyle|limits|nolimits|bf|rm|it|large|Large|LARGE|huge|Huge|small|checkmark|nonumber){_WORD_END}"
)
_BLANK = re.compile(r"(?:(?<!\\)\\[,;:> ]|~|\\(?:q?quad|thinspace|enspace)(?![A-Za-z])|\\(?:text|mathrm)\{\s*\}|\s)+")
_MATHRM = re.compile(r"\\mathrm ?\{([^{}\\]*)\}")
_PER_LETTER = re.compile(r"(\\text\{[A-Za-z]+\} ?/) {0,2}([smhgL])(?![A-Za-z])")  # \text{km} / h
_LATEX_ENDS = re.compile(r"^(?:\$\$?|\\\(|\\\[|\*\*)\s*|\s*(?:\$\$?|\\\)|\\\]|\*\*)$")
_JOINED_COMMAS = re.compile(r"(?<![0-9])[0-9]+(?:(?:\{,\}|,\\!) ?[0-9]+)+")
_JOINT = re.compile(r"(\{,\}|,\\!) ?")
_GROUPED = re.compile(
    r"(?<![0-9A-Za-z.,^_/])(?<![0-9A-Za-z.^_] )[1-9][0-9]{0,2}(?: [0-9]{3})+(?! ?[0-9/^])(?!,[0-9])"
)  # 12 345 678, but not the 1 234 of "5 1 234", "1 234/5" or "1,234 567"
_THOUSANDS = re.compile(r"(?<![0-9.,^_])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
_POINTED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,}(?![0-9.,])")  # 1.234.567
_MIXED = re.compile(r"(?<![0-9.^_/])(?<![0-9.] )([0-9]{1,9}) ([0-9]{1,9})/([0-9]{1,9})(?! ?[0-9/^.])")
_SPACED_FRACTION = re.compile(r"(\\frac) ?([0-9]) ?([0-9])(?![0-9])")  # \frac 1 2
_SPELLINGS = tuple(  # (what a text must hold for it, pattern, replacement)
    (hint, re.compile(pattern), replacement)
    for hint, pattern, replacement in (
        ("<=", "<=", r"\\leq "),
        (">=", ">=", r"\\geq "),
        ("!=", "!=", r"\\neq "),
        ("==", r"(?<![=<>!])==(?!=)", "="),
        ("np.", r"\bnp\.", ""),
        ("^", r"(?<=[0-9]) ?[xX] ?(?=10 ?\^)", r"\\times "),
        ("...", r"\.{3,}", r"\\ldots "),
        ("frac", r"(?:(?<=[^\\A-Za-z])|^)([dt]?frac)(?=\s?\{)", r"\\\1"),  # its backslash lost
        ("sqrt", r"(?:(?<=[^\\A-Za-z])|^)(sqrt)(?=\s?\{)", r"\\\1"),
        ("approx", r"^\s*\\approx(?![a-z])", ""),
        ("U", r"([(\[][^()\[\]]*,[^()\[\]]*[)\]]) ?U ?(?=[(\[][^()\[\]]*,)", r"\1\\cup "),  # (0,1) U (2,3)
        ("circ", r"(\^ ?(?:\{ ?\\circ ?\}|\\circ)) ?([CF])(?![A-Za-z])", r"\1\\text{\2}"),  # 20^\circ C
        ("^{\\text", r"\^ ?\{ ?(\\text ?\{ ?(?:st|nd|rd|th) ?\}) ?\}", r"\1"),  # 11^{\text{th}}
        ("{\\$}", r"\\text ?\{ ?(\\\$) ?\}", r"\1"),
    )
)
_PRIMES = re.compile(r"\^ ?(?:\{ ?)?((?:\\prime ?)+)\}?")
_INDEX = r"(?:\{ ?([0-9]{1,4}) ?\}|([0-9]))"
_COMBINATIONS = (
    re.compile(rf"(?:\{{ ?\}} ?|(?<![A-Za-z0-9)}}\]]))[_^] ?{_INDEX} ?C ?_ ?{_INDEX}"),  # _{10}C_3
    re.compile(rf"(?<![A-Za-z\\])C ?_ ?{_INDEX} ?\^ ?{_INDEX}"),  # C_{10}^3
    re.compile(r"(?<![A-Za-z\\])C ?\( ?([0-9]{1,4}) ?, ?([0-9]{1,4}) ?\)"),
)
_MODULO = re.compile(
    r"\(? ?(?:\\[pb]?mod|(?<![A-Za-z\\])mod(?:ulo)?|\\(?:text|mathrm|operatorname) ?\{ ?\(? ?mod(?:ulo)? ?\})"
    r"(?![A-Za-z])[~\s]*(?:\\[,; ])*\s*(?:\{ ?([0-9A-Za-z]{1,9}) ?\}|([0-9]+|[A-Za-z])(?![0-9A-Za-z])) ?\)?"
)
_OUTWARD = re.compile(
    r"(?:^|(?<=[=:])|(?<=\\in)|(?<=\\cup)|(?<=\\cap)|(?<=\\setminus))\s*"
    r"([\[\]])([^\[\]]+)([\[\]])(?=\s*(?:$|\\(?:cup|cap|setminus)|[,;]))"
)
_ENVIRONMENT = re.compile(
    r"\\begin ?\{((?:equation|align|gather|multline|displaymath|split|cases)(?:ed)?\*?)\}(.*)\\end ?\{\1\}", re.DOTALL
)
_ROW_END = re.compile(r"\\\\(?:\[[^\[\]]*\])?")
_GOES_ON = re.compile(r"[=<>]|\\(?:leq?|geq?|approx|equiv)(?![A-Za-z])")
_OPENING, _CLOSING = "([", ")]"


def _wrapping(text: str) -> str:
    """Delimiters of mathematics and bold print around the whole, and the full stop behind it."""
    previous = None
    while previous != text:
        previous = text
        text = _LATEX_ENDS.sub("", text.strip()).strip()
        text = re.sub(r"(?<!\\)\\$", "", re.sub(r"(?<![.])[.,;:]$", "", text)).strip()
    return text


def _rows(text: str) -> str:
    r"""Rows of an environment around the whole: a row that starts with a relation goes on, others make a list."""
    match = _ENVIRONMENT.fullmatch(text) if "\\begin" in text else None
    if not match or "\\begin" in match[2] or ("cases" in match[1] and "&" in match[2]):  # with & it is a function
        return text
    rows = [row.replace("&", " ").strip().rstrip(",.;") for row in _ROW_END.split(match[2])]
    first, *rest = [row for row in rows if row] or [""]
    return first + "".join(f" {row}" if _GOES_ON.match(row) else f", {row}" for row in rest)


def _box(text: str) -> str:
    """A box or a line inside an answer says nothing more."""
    return re.sub(r"\\(?:boxed|fbox|framebox|underline)(?=\s?\{)", "", text)


def _spelling(text: str) -> str:
    if not text.isascii():
        text = _ALPHABETS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
        text = _RAISED.sub(lambda match: f"^{{{match[0].translate(_TO_LINE)}}} ", text)
        text = _LOWERED.sub(lambda match: f"_{{{match[0].translate(_TO_LINE)}}} ", text)
        text = text.translate(_CHARACTERS)
    if "prime" in text:
        text = _PRIMES.sub(lambda match: "'" * match[1].count("prime"), text)
    text = _RENAME.sub(lambda match: "\\" + _NAMES[match[1]], text)
    text = _AS_LETTER.sub(lambda match: _LETTER[match[1]], text).replace("\\|", "|")
    for hint, pattern, replacement in _SPELLINGS:
        if hint in text:
            text = pattern.sub(replacement, text)
    return _DROPPED.sub(" ", text)


def _joined(match: re.Match[str]) -> str:
    r"""Digits joined by `{,}` or `,\!`: groups of thousands, else a decimal comma if it is one `{,}`, else a list."""
    first, *rest = _JOINT.split(match[0])
    groups, signs = rest[1::2], rest[::2]
    in_threes = len(first) <= 3 and all(len(group) == 3 for group in groups)
    in_twos = len(first) <= 2 and [len(group) for group in groups] == [2] * (len(groups) - 1) + [3]  # 12,34,567
    if first[0] != "0" and (in_threes or in_twos):
        return first + "".join(groups)
    return f"{first}.{groups[0]}" if signs == ["{,}"] else ",".join([first, *groups])


def _blanks(text: str) -> str:
    text = re.sub(r"(?<!\\)\$", " ", text)  # what is left between formulas: "$1$, $2$"
    text = _JOINED_COMMAS.sub(_joined, text)  # before "\\!" goes: 32,\! 349 is one number
    return _BLANK.sub(" ", text.replace("\\!", "").replace("{,}", ",")).strip()


def _roman(text: str) -> str:
    r"""`\mathrm{1,000}` and `\mathrm{e}` are what they hold; `\mathrm{cm}` is text, as in `\text{cm}`."""

    def plain(match: re.Match[str]) -> str:
        inside = match[1].strip()
        short = len(inside) == 1 or not re.search(r"[A-Za-z]", inside) or inside in _FUNCTION_NAMES
        return f" {inside} " if short else rf"\text{{{inside}}}"

    text = _MATHRM.sub(plain, text)
    return _PER_LETTER.sub(r"\1\\text{\2}", text) if "/" in text else text


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


def _combinations(text: str) -> str:
    r"""Numbers of combinations in their other spellings, and `(mod 7)`, `\bmod 7` and the like as `\pmod{7}`."""

    def binomial(match: re.Match[str]) -> str:
        top, bottom = (group for group in match.groups() if group)
        return rf"\binom{{{top}}}{{{bottom}}}" if 2 < int(top) >= int(bottom) else match[0]  # C_2^2 may be a square

    if "C" in text:
        for pattern in _COMBINATIONS:
            text = pattern.sub(binomial, text)
    return _MODULO.sub(lambda match: rf" \pmod{{{match[1] or match[2]}}}", text) if "mod" in text else text


def _outward(text: str) -> str:
    """Intervals with brackets turned outward at an open end, `]0,1]`, as `(0,1]`."""

    def usual(match: re.Match[str]) -> str:
        if not re.search("[,;]", match[2]):
            return match[0]
        return f"{'(' if match[1] == ']' else '['}{match[2]}{')' if match[3] == '[' else ']'}"

    return _OUTWARD.sub(usual, text) if "[" in text or "]" in text else text


STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("invisible and control characters", clean),
    ("delimiters around the whole", _wrapping),
    ("rows of an environment", _rows),
    ("boxes inside", _box),
    ("one name per symbol", _spelling),
    ("blanks", _blanks),
    ("upright letters", _roman),
    ("combinations and moduli", _combinations),
    ("brackets turned outward", _outward),
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
