"""Records -> one HTML file that works without a network and shows the same bytes for the same inputs.

The page forbids itself everything it does not need: its content security policy allows no request at all, and only
the scripts whose hashes it names, so text smuggled past the escaping still could not run.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from killick import __version__
from killick.errors import ContractError, RecordError
from killick.report.load import load_study
from killick.report.markup import Markup, element, join, script_json
from killick.report.panels import PANELS
from killick.report.study import Study
from killick.report.types import Cell, Figure, Panel, Table


def write_report(study_dir: Path | Sequence[Path], out: Path | None = None, *, study: Study | None = None) -> Path:
    """Write the report of a study, a single run, or evaluation folders.

    Args:
        study_dir: what `load_study` takes: a folder, or a list of folders that hold evaluations.
        out: the file to write; when None, `report.html` in the folder, or `comparison.html` in the first of several,
            which may have a report of its own.
        study: what `load_study` read from there, to save reading it again.

    Returns:
        The file written.

    Raises:
        RecordError: the folder is none of these, a file in it is damaged, or the page cannot be written.
    """
    study = load_study(study_dir) if study is None else study
    if isinstance(study_dir, str | Path):
        default = Path(study_dir) / "report.html"
    else:
        default = Path(study_dir[0]) / "comparison.html"
    target = default if out is None else Path(out)
    try:
        if target.is_dir():
            raise RecordError(
                f"{target} is a folder; the report is one file. Name a file, e.g. {target / 'report.html'}."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
    except RecordError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise _unwritable(target, error) from error
    page = render(study)
    try:
        # Half a character, which a title or completion read from JSON may hold, becomes a question mark.
        target.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise _unwritable(target, error) from error
    return target


def _unwritable(target: Path, error: Exception) -> RecordError:
    return RecordError(f"Cannot write {str(target)[:200]!r}: {error}. Name a file in a writable folder.")


def render(study: Study) -> str:
    """The page of a study as text."""
    return frame(study.title, _header(study), panels_of(study))


def frame(title: str, header: Markup, panels: Sequence[tuple[str, Panel]]) -> str:
    """A page as text: contents, header, and a section for each (name, panel)."""
    figures: dict[str, Figure] = {}
    sections = [_section(slug, panel, figures) for slug, panel in panels]
    data = {
        name: {"data": figure.traces, "layout": figure.layout | {"height": figure.height}}
        for name, figure in figures.items()
    }
    scripts = [_plotly(), _asset("page.js")] if figures else []
    head = join(
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", _asset("page.css")),
    )
    body = join(
        element("nav", element("strong", "Contents"), *(element("a", p.title, href=f"#{s}") for s, p in panels)),
        element("main", header, *sections, element("footer", f"Written by killick {__version__}.")),
        element("script", script_json(data), type="application/json", id="figures"),
        *(element("script", code) for code in scripts),
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


def panels_of(study: Study) -> list[tuple[str, Panel]]:
    """(name, section) of every registered panel that has something to show, in reading order."""
    makers = sorted(((name, PANELS.build(name)) for name in PANELS.names()), key=lambda pair: (pair[1].order, pair[0]))
    made = [(name, maker(study)) for name, maker in makers]
    return [(name, panel) for name, panel in made if panel is not None]


def _header(study: Study) -> Markup:
    trained = [arm for arm in study.arms if not arm.is_base]
    runs = sum(len(arm.runs) for arm in trained)
    facts = {
        "study": f"{study.name}: {len(trained)} arms, {runs} training runs, seeds {', '.join(map(str, study.seeds))}",
        "run": f"One training run, {study.name}.",
        "evaluations": f"Evaluations of {len(trained)} model{'s' if len(trained) != 1 else ''}{_compared(study)}.",
    }[study.kind]
    warnings = [
        _warning("Incomplete: these results are missing, and the numbers below leave them out.", study.missing),
        _warning("Not comparable: no differences are computed where the questions differ.", study.unlike),
        _warning("Allowed to differ, so part of every difference:", study.differing),
    ]
    return element("header", element("h1", study.title), element("p", facts), *warnings)


def _compared(study: Study) -> str:
    return "" if study.baseline is None else f", compared with {study.arm(study.baseline).label}"


def _warning(heading: str, sentences: list[str]) -> Markup:
    if not sentences:
        return Markup("")
    items = [element("li", sentence) for sentence in sentences]
    return element("aside", element("strong", heading), element("ul", *items))


def _section(slug: str, panel: Panel, figures: dict[str, Figure]) -> Markup:
    parts = [element("h2", panel.title)]
    if panel.note:
        parts.append(element("p", prose(panel.note), class_="note"))
    for item in panel.items:
        if isinstance(item, Figure):
            name = f"{slug}-{len(figures) + 1}"
            figures[name] = item
            parts.append(_figure(name, item))
        elif isinstance(item, Table):
            parts.append(_table(item))
        else:
            parts.append(item)
    return element("section", *parts, id=slug)


def _figure(name: str, figure: Figure) -> Markup:
    size = f"min-height:{figure.height}px;min-width:{figure.min_width}px"
    plot = element("div", class_="plot", id=name, style=size)
    if figure.min_width:
        plot = element("div", plot, class_="scroll")
    caption = element("p", prose(figure.caption), class_="caption") if figure.caption else ""
    return element("div", element("h3", figure.heading), plot, caption, class_="figure")


def _table(table: Table) -> Markup:
    head = element("thead", element("tr", *(element("th", column, scope="col") for column in table.columns)))
    body = element("tbody", *(element("tr", *(_cell(cell, i) for i, cell in enumerate(row))) for row in table.rows))
    grid = element("table", head, body, class_="numbers" if table.numeric else "texts")
    caption = element("p", prose(table.caption), class_="caption") if table.caption else ""
    inner = join(element("div", grid, class_="scroll"), caption)
    if table.folded:
        return element("details", element("summary", table.heading), inner)
    return join(element("h3", table.heading), inner)


def _cell(cell: Cell | str, place: int) -> Markup:
    cell = Cell(cell) if isinstance(cell, str) else cell
    swatch = element("span", class_="swatch", style=f"background:{cell.colour}") if cell.colour else ""
    detail = element("small", cell.detail) if cell.detail else ""
    children = (swatch, cell.text, detail)
    if place == 0:
        return element("th", *children, scope="row")
    return element("td", *children, class_="mark" if cell.mark else None)


def prose(text: str) -> Markup:
    """Escaped text in which `backticks` set code."""
    pieces = text.split("`")
    return join(*(element("code", piece) if i % 2 else piece for i, piece in enumerate(pieces)))


def _asset(name: str) -> Markup:
    return _inline(name, resources.files("killick.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _plotly() -> Markup:
    from plotly.offline import get_plotlyjs

    return _inline("plotly.js", get_plotlyjs())


def _inline(name: str, code: str) -> Markup:
    """Code fit to stand inside an element: it cannot end it, and browsers hash it as it is written."""
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in code.lower() or "</style" in code.lower() or "<!--" in code:
        raise ContractError(f"{name} holds a closing tag and cannot be embedded in a page. Install another version.")
    return Markup(code)


def _policy(scripts: Sequence[str]) -> str:
    """Nothing may be requested; only these scripts may run. Plotly writes style rules and saves images as blobs."""
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
