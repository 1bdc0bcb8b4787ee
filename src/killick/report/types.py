"""What a panel hands to the page: figures, tables and text, in the order they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from killick.report.markup import Markup, plot_text

if TYPE_CHECKING:
    from killick.report.study import Arm, Study


@dataclass(frozen=True)
class Figure:
    """One plotly figure as plain data, so no plotting package is imported to describe it.

    Attributes:
        heading: shown above the plot as HTML, never inside it, so it cannot overlap a legend.
        traces: plotly traces.
        layout: plotly layout; colours of text and grid are added by the page, which knows the reader's theme.
        height: pixels.
        caption: what was measured and how, shown below.
        min_width: pixels below which it scrolls sideways instead of shrinking; 0 for never.
    """

    heading: str
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 420
    caption: str = ""
    min_width: int = 0


def arm_axis(arms: "Sequence[Arm]") -> dict[str, Any]:
    """A vertical axis with one place an arm, the first on top.

    Places are numbers, not labels: plotly would merge two bars whose labels are equal after shortening.
    """
    labels = [plot_text(arm.label) for arm in arms]
    return {
        "tickmode": "array",
        "tickvals": list(range(len(arms))),
        "ticktext": labels,
        "range": [len(arms) - 0.4, -0.6],
        "automargin": True,
    }


@dataclass(frozen=True)
class Cell:
    """One table cell.

    Attributes:
        text: what is shown.
        detail: second line in small print, e.g. an interval.
        mark: highlight it.
        colour: a swatch before the text, or None.
    """

    text: str
    detail: str = ""
    mark: bool = False
    colour: str | None = None


@dataclass(frozen=True)
class Table:
    """A table whose first column names the row.

    Attributes:
        folded: closed until the reader opens it.
        numeric: numbers, set to the right; texts otherwise.
    """

    heading: str
    columns: list[str]
    rows: list[list[Cell | str]]
    caption: str = ""
    folded: bool = False
    numeric: bool = True


@dataclass(frozen=True)
class Panel:
    """One section of the page.

    Attributes:
        title: heading of the section and entry in the table of contents.
        items: figures, tables and finished fragments, in reading order.
        note: one paragraph: how to read it, and what it cannot show.
    """

    title: str
    items: Sequence[Figure | Table | Markup] = ()
    note: str = ""


class PanelMaker(Protocol):
    """A frozen dataclass whose fields are its settings: a study in, a section out.

    `order` places the section on the page (low first).
    """

    title: str
    order: int

    def __call__(self, study: "Study") -> Panel | None:
        """The section, or None when the study holds nothing to show in it."""
        ...
