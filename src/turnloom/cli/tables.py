"""Tables, page by page: rich lays out a whole table before it shows the first row."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from turnloom.cli.terminal import safe

T = TypeVar("T")

# A text, or a styled text that is safe for a terminal.
Cell = str | Text

# Rows that are laid out at once.
PAGE = 500
# Columns that are aligned to the right.
NUMBERS = frozenset({"seq", "tokens", "share", "took", "used"})
# The space between two columns.
GAP = "  "


def lay_out(
    columns: Sequence[str],
    items: Sequence[T],
    cells: Callable[[T], Sequence[Cell]],
    width: int,
    *,
    whole: Collection[str] = (),
) -> Iterator[RenderableType]:
    """A row for each item, in pages with the same column widths; columns in `whole` shrink only if
    the others cannot. `cells` is called twice for each item, to measure and to show."""
    natural = _natural(columns, map(cells, items))
    widths = _fitting(natural, [name in whole for name in columns], width)
    yield from _page(columns, [[Text(name, "dim") for name in columns]], widths)
    left = iter(items)
    while page := [*islice(left, PAGE)]:
        yield from _page(columns, map(cells, page), widths)


def _page(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], widths: Sequence[int]
) -> Iterator[RenderableType]:
    """Rows of one line together, rows with longer cells alone."""
    lines: list[Text] = []
    for row in rows:
        texts = [safe(cell) if isinstance(cell, str) else cell for cell in row]
        if all(map(_fits, texts, widths)):
            lines.append(_line(columns, texts, widths))
            continue
        if lines:
            yield Text("\n").join(lines)
            lines = []
        yield _folded(columns, texts, widths)
    if lines:
        yield Text("\n").join(lines)


def _natural(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[int]:
    """The widths that the cells need."""
    widths = [*map(cell_len, columns)]
    for row in rows:
        for place, cell in enumerate(row):
            text = str(cell)
            if len(text) > widths[place] or not text.isascii() or not text.isprintable():
                lines = safe(text).plain.split("\n")
                widths[place] = max(widths[place], *map(cell_len, lines))
    return widths


def _fitting(widths: Sequence[int], whole: Sequence[bool], width: int) -> list[int]:
    """Widths that fit the terminal: the widest columns shrink, those to keep whole last."""
    room = max(width - len(GAP) * (len(widths) - 1), len(widths))
    kept = sum(each for each, stays in zip(widths, whole, strict=True) if stays)
    if kept + whole.count(False) > room:
        whole = [False] * len(widths)
    fitting, most = [*widths], min(max(widths), room)
    while sum(fitting) > room:
        fitting = [
            each if stays else min(each, most) for each, stays in zip(widths, whole, strict=True)
        ]
        most -= 1
    return fitting


def _fits(cell: Text, width: int) -> bool:
    return "\n" not in cell.plain and cell.cell_len <= width


def _line(columns: Sequence[str], cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for place, (column, cell, width) in enumerate(zip(columns, cells, widths, strict=True)):
        gap = GAP if place else ""
        space = " " * (width - cell.cell_len)
        if column in NUMBERS:
            line.append(gap + space).append_text(cell)
        else:
            line.append(gap).append_text(cell).append(space)
    line.rstrip()
    return line


def _folded(columns: Sequence[str], cells: Sequence[Text], widths: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for column, width in zip(columns, widths, strict=True):
        number = column in NUMBERS
        table.add_column(width=width, justify="right" if number else "left", overflow="fold")
    table.add_row(*cells)
    return table
