"""From the numbers of an experiment to files: JSON, a PNG, and a page with a panel for each experiment in the folder.

A panel is made from the JSON alone. Its tables also go to the terminal and its plotly figures are also drawn by
matplotlib, so every number and curve is described once.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from killick import __version__
from killick.errors import ConfigError, RecordError
from killick.provenance import make_folder, read_json, write_json
from killick.report import page
from killick.report.markup import element, finite
from killick.report.types import Cell, Figure, Panel, Table

Track = Callable[[Sequence[Any], str], Iterable[Any]]
"""Wraps a loop into a progress bar: (items, what is done) -> the same items."""
EXPERIMENTS = ("anchors", "support", "repair", "shrinkage")
PAGE = "lab.html"
DASHED = {"color": "#8a8a8a", "dash": "dash"}
DOTTED = {"color": "#8a8a8a", "dash": "dot"}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X", "star": "*"}


def silent(items: Sequence[Any], what: str) -> Iterable[Any]:
    """No progress bar."""
    return items


def trace(
    name: str,
    x: Sequence[float],
    y: Sequence[float],
    *,
    line: Mapping[str, Any] | None = None,
    marker: Mapping[str, Any] | None = None,
    error_x: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One plotly scatter trace, drawn as what is given: a line, markers, or both."""
    mode = "+".join(kind for kind, style in (("lines", line), ("markers", marker)) if style is not None)
    styles = {"line": line, "marker": marker, "error_x": error_x}
    found: dict[str, Any] = {"type": "scatter", "mode": mode, "name": name, "x": list(x), "y": list(y)}
    return found | {key: style for key, style in styles.items() if style is not None}


def named_axis(labels: Sequence[str]) -> dict[str, Any]:
    """A vertical axis with a name at 0, 1, 2, …, the first on top."""
    places = {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": list(labels)}
    return places | {"autorange": "reversed", "automargin": True}


def check_drawing() -> None:
    """Ask for matplotlib before anything is computed.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise ConfigError(
            'killick lab draws its PNG files with matplotlib, which is missing. Run: pip install "killick[lab]".'
        ) from error


def panel_of(data: dict[str, Any]) -> Panel:
    """The panel of one experiment, made by the `panel` function of its module."""
    made: Panel = importlib.import_module(f"killick.lab.{data['experiment']}").panel(data)
    return made


def write(folder: Path, data: dict[str, Any]) -> list[Path]:
    """Write the JSON and the PNG of one experiment, and the page of all experiments found in the folder.

    Args:
        folder: created if need be.
        data: `experiment`, one of `EXPERIMENTS`, `settings`, and its rows.

    Returns:
        The files written.

    Raises:
        RecordError: the folder cannot be written to, or holds a damaged result of another experiment.
    """
    make_folder(folder)
    name = data["experiment"]
    record, picture, html = folder / f"{name}.json", folder / f"{name}.png", folder / PAGE
    write_json(record, finite({"killick": __version__} | data))
    draw([item for item in panel_of(data).items if isinstance(item, Figure)], picture)
    panels = []
    for other in EXPERIMENTS:
        if (folder / f"{other}.json").exists():
            panels.append((other, _stored_panel(folder / f"{other}.json", other)))
    facts = "Each objective against its closed form, on problems small enough to enumerate."
    header = element("header", element("h1", "killick lab"), element("p", facts))
    try:
        html.write_text(page.frame("killick lab", header, panels), encoding="utf-8", newline="\n")
    except OSError as error:
        raise RecordError(f"Cannot write {html}: {error.strerror}. Choose a writable folder with room.") from error
    return [record, picture, html]


def _stored_panel(path: Path, name: str) -> Panel:
    stored = read_json(path)
    try:
        if stored["experiment"] != name:
            raise ValueError(f"it holds {stored['experiment']!r}")
        return panel_of(stored)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RecordError(
            f"{path} is no result of `killick lab {name}` of this version ({type(error).__name__}: {error}). "
            "Remove it, or choose another folder."
        ) from error


def terminal_tables(panel: Panel) -> list[Any]:
    """The panel's tables for a rich console."""
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = []
    for item in panel.items:
        if isinstance(item, Table):
            table = RichTable(title=escape(item.heading), title_justify="left", caption_justify="left")
            texts = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in item.rows]
            for place, column in enumerate(item.columns):
                # As narrow as its entries and the words of its heading: headings wrap, entries do not. Else rich may
                # make a wide table wider than the terminal and cut off its last columns.
                heading = column.replace("@", " @")
                width = max(map(len, [*heading.split(), *(row[place] for row in texts)]))
                table.add_column(escape(heading), justify="left" if place == 0 else "right", width=width)
            for row in texts:
                table.add_row(*map(escape, row))
            shown.append(table)
    return shown


def draw(figures: Sequence[Figure], path: Path) -> None:
    """Draw the scatter traces of plotly figures one below the other into a PNG.

    Knows what the lab's panels use: lines, markers, error bars, log axes, named ticks.

    Raises:
        RecordError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9.0, 0.011 * sum(figure.height for figure in figures)), layout="constrained")
    FigureCanvasAgg(canvas)
    heights = [figure.height for figure in figures]
    all_axes = canvas.subplots(len(figures), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, figure in zip(all_axes, figures, strict=True):
        _draw_axes(axes, figure)
    try:
        canvas.savefig(path, dpi=110, metadata={"Software": None})
    except OSError as error:
        raise RecordError(f"Cannot write {path}: {error.strerror}. Choose a writable folder with room.") from error


def _draw_axes(axes: Any, figure: Figure) -> None:
    axes.set_title(figure.heading, fontsize=10, loc="left")
    for drawn in figure.traces:
        line, marker, mode, bars = drawn.get("line", {}), drawn.get("marker", {}), drawn["mode"], drawn.get("error_x")
        axes.errorbar(
            drawn["x"],
            drawn["y"],
            xerr=None if bars is None else [bars["arrayminus"], bars["array"]],
            label=drawn["name"],
            color=marker.get("color", line.get("color")),
            linestyle=_DASHES[line.get("dash", "solid")] if "lines" in mode else "none",
            marker=_MARKERS[marker.get("symbol", "circle")] if "markers" in mode else None,
            markersize=0.7 * marker.get("size", 8),
            elinewidth=1,
        )
    for side in ("x", "y"):
        axis = figure.layout[f"{side}axis"]
        if axis.get("type") == "log":
            getattr(axes, f"set_{side}scale")("log")
        if "tickvals" in axis:
            getattr(axes, f"set_{side}ticks")(axis["tickvals"], axis["ticktext"])
        if axis.get("autorange") == "reversed":
            getattr(axes, f"invert_{side}axis")()
        getattr(axes, f"set_{side}label")(axis.get("title", {}).get("text", ""))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
