"""Long tables, page by page: rich lays out a whole table before it shows the first row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from turnloom.kernel.markup import visible

# Rows that are laid out at once.
PAGE = 500
# Columns that are aligned to the right.
NUMBERS = frozenset({"seq", "tokens", "share", "took", "used"})
# The space between two columns.
GAP = "  "

Rows = Iterable[Sequence[str]]


def long_table(
    columns: Sequence[str], rows: Callable[[], Rows], width: int
) -> Iterator[RenderableType]:
    """A table in pages with the same column widths; `rows` is called twice, to measure and to
    show."""
    widths = _fitting(_natural(columns, rows()), width)
    yield Text(_line(columns, columns, widths), "dim")
    left = iter(rows())
    while page := [*islice(left, PAGE)]:
        yield from _page(columns, page, widths)


def _page(columns: Sequence[str], page: Rows, widths: Sequence[int]) -> Iterator[RenderableType]:
    """Rows of one line together, rows with longer cells alone."""
    lines: list[str] = []
    for row in page:
        cells = [visible(cell) for cell in row]
        if all(map(_fits, cells, widths)):
            lines.append(_line(columns, cells, widths))
            continue
        if lines:
            yield Text("\n".join(lines))
            lines = []
        yield _folded(columns, cells, widths)
    if lines:
        yield Text("\n".join(lines))


def _natural(columns: Sequence[str], rows: Rows) -> list[int]:
    """The widths that the cells need."""
    widths = [*map(cell_len, columns)]
    for row in rows:
        for place, cell in enumerate(row):
            if len(cell) > widths[place] or not cell.isascii() or not cell.isprintable():
                lines = visible(cell).split("\n")
                widths[place] = max(widths[place], *map(cell_len, lines))
    return widths


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    """Widths that fit the terminal: the widest columns shrink."""
    room = max(width - len(GAP) * (len(widths) - 1), len(widths))
    most = max(widths)
    while sum(min(each, most) for each in widths) > room:
        most -= 1
    return [min(each, most) for each in widths]


def _fits(cell: str, width: int) -> bool:
    return "\n" not in cell and cell_len(cell) <= width


def _line(columns: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded: list[str] = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        space = " " * (width - cell_len(cell))
        padded.append(space + cell if column in NUMBERS else cell + space)
    return GAP.join(padded).rstrip()


def _folded(columns: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for column, width in zip(columns, widths, strict=True):
        number = column in NUMBERS
        table.add_column(width=width, justify="right" if number else "left", overflow="fold")
    table.add_row(*map(Text, cells))
    return table
