"""Text that a terminal can be trusted with: what it must not obey is spelled out."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from turnloom.kernel.markup import visible, written


def one_line(text: str, limit: int = 80) -> str:
    """The text on one line, cut if it is long."""
    flat = visible(text.replace("\n", "⏎").replace("\t", " "))
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def indent(text: str, by: str = "    ") -> str:
    """Each line of a text moved to the right."""
    return "\n".join(f"{by}{line}" for line in text.split("\n"))


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns stand under each other."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def counted(count: int, thing: str) -> str:
    """How many there are of a thing."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def lasting(seconds: float | None) -> str:
    """A duration as people say it."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def moment(at: datetime) -> str:
    """An instant as people of this place read it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


class ReadableExplanation(msgspec.Struct, frozen=True):
    """An explanation that shows itself as the text that it is, in notebooks as HTML."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        headline, _, rest = str(self).partition("\n")
        return written(headline, rest)
