"""HTML and JSON that are safe by construction: plain text is escaped unless it was built here.

Completions are written by a model and may hold anything, so no caller ever joins strings into HTML by hand.
"""

import html
import json
import math
from typing import Any


class Markup(str):
    """A finished HTML fragment; every other string is text and gets escaped."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Text as HTML; fragments built by this module pass unchanged."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(str(value), quote=True))


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One HTML element. Children are escaped unless they are `Markup`; attributes always are.

    A trailing underscore keeps Python keywords usable (`class_`), inner ones become hyphens (`aria_label`).
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{shown}>{join(*children)}</{tag}>")


def join(*children: object) -> Markup:
    """Fragments and texts one after the other."""
    return Markup("".join(escape(child) for child in children))


def plot_text(value: object, limit: int = 60) -> str:
    """Text for a plotly label, which reads a small HTML dialect: `<`, `>` and `&` become entities.

    Args:
        value: the text.
        limit: characters kept; the rest becomes an ellipsis, since an axis cannot hold a page.
    """
    text = " ".join(str(value).split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return html.escape(text, quote=False)


def finite(value: Any) -> Any:
    """The same structure with NaN and infinities as None and numbers rounded to 7 significant digits.

    JSON has no NaN, and rounding keeps the last bits of a sum from changing the bytes of a page.
    """
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays, without importing numpy here
        return finite(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def script_json(value: Any) -> Markup:
    r"""JSON that cannot end the script element around it: `<`, `>`, `&` and non-ASCII are written as \u escapes."""
    text = json.dumps(finite(value), ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table cell, or a dash when there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference for a table cell, with its sign."""
    return (
        number(value, digits) if value is None or not math.isfinite(value) else f"{value:+.{digits}f}".replace("-", "−")
    )
