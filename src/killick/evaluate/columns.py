"""Tables of numbers for a terminal of any width: no digit is cut off, whole columns are left out instead."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

_NARROWEST = 12  # of a column of texts, which are folded


class Column(NamedTuple):
    """One column.

    Attributes:
        heading: may have several lines, as the cells may.
        cells: one a row.
        is_text: set to the left and folded where room is short; numbers are set to the right and never folded.
    """

    heading: str
    cells: Sequence[str]
    is_text: bool = False

    @property
    def width(self) -> int:
        """Characters of the longest line."""
        return max(cell_len(line) for text in (self.heading, *self.cells) for line in text.split("\n"))


def total_width(columns: Sequence[Column]) -> int:
    """Characters of a table of these columns, nothing folded."""
    return sum(column.width + 1 for column in columns) - 1


def fitting(columns: Sequence[Column], room: int) -> list[int]:
    """Places of the columns that fit: the first, the last, and as many evenly spaced between them as there is room for.

    The first and the last are among them even where there is no room.
    """
    for count in range(len(columns), 2, -1):
        chosen = _evenly(len(columns), count)
        if total_width([columns[place] for place in chosen]) <= room:
            return chosen
    return _evenly(len(columns), min(2, len(columns)))


def _evenly(total: int, count: int) -> list[int]:
    return [int(i * (total - 1) / max(1, count - 1) + 0.5) for i in range(count)]


def number_table(columns: Sequence[Column], width: int, ends: Collection[int] = ()) -> Table:
    """A rich table as wide as its numbers need, which may be more than `width`: print it with `crop=False`.

    Args:
        columns: at most one of texts, which is folded into what the others leave of `width`.
        width: of the terminal.
        ends: rows that an empty line follows.
    """
    left = width - total_width([column for column in columns if not column.is_text]) - 1
    widths = [min(one.width, max(_NARROWEST, left)) if one.is_text else one.width for one in columns]
    # A width of its own keeps rich from narrowing the columns to fit, which cuts off digits.
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, width=sum(widths) + len(widths) - 1)
    for column, own in zip(columns, widths, strict=True):
        justify, overflow = ("left", "fold") if column.is_text else ("right", "ellipsis")
        table.add_column(Text(column.heading), justify=justify, overflow=overflow, width=own)  # type: ignore[arg-type]
    for number, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        # Text: brackets are not markup
        table.add_row(*map(Text, cells), end_section=number in ends)
    return table
