"""Formatting of text that is safe to print: control characters are made visible."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from turnloom.kernel.markup import visible, written


def one_line(text: str, limit: int = 80) -> str:
    """Put a text on one line and cut it at `limit`."""
    flat = visible(text.replace("\n", "⏎").replace("\t", " "))
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def indent(text: str, by: str = "    ") -> str:
    """Indent each line of a text."""
    return "\n".join(f"{by}{line}" for line in text.split("\n"))


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Align rows in columns."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def counted(count: int, thing: str) -> str:
    """Format a count with its noun."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def duration(seconds: float | None) -> str:
    """Format a duration for people."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def moment(at: datetime) -> str:
    """Format an instant in local time."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


class ReadableExplanation(msgspec.Struct, frozen=True):
    """An explanation whose repr is its text, and HTML in notebooks."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        headline, _, rest = str(self).partition("\n")
        return written(headline, rest)
