"""A long timeline is shown page by page, as a short one is shown at once."""

import tracemalloc
from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from turnloom.agents.spec import Usage
from turnloom.cli.explanations import render
from turnloom.cli.tables import PAGE
from turnloom.explain.spec.timeline import Timeline, TimelineRow

AT = datetime(2026, 1, 1, tzinfo=UTC)


def timeline(*notes: str) -> Timeline:
    rows = tuple(
        TimelineRow(seq, "turn", f"Agent{seq % 3}", AT, 0.1, 7, Usage(10, 20), note, seq % 2)
        for seq, note in enumerate(notes, 1000)
    )
    about = ("r", "W", "1", "finished", "u", "t", AT, 1.0, len(rows), len(rows), Usage(1, 1))
    return Timeline(*about, rows)


def shown(found: Timeline, width: int) -> list[str]:
    out = StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    for part in render(found, width):
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_pages_look_like_one_table() -> None:
    """Also where cells are folded, have several lines, are wide, or could steer a terminal."""
    notes = ["short", "long " * 30, "two\nlines", "走る走る", "\x1b[31m"]
    short = timeline(*notes, *["end"] * (PAGE - 5))
    long = timeline(*notes, *["end"] * (2 * PAGE))
    for width in (100, 400):
        before, after = shown(short, width)[1:], shown(long, width)[1:]
        assert after[: len(before)] == before
        assert len(after) == len(before) + PAGE + 5
        assert max(map(len, after)) <= width


def test_pages_take_the_memory_of_a_page() -> None:
    found = timeline(*["a note of some length"] * (6 * PAGE))
    sizes: list[int] = []
    console = Console(file=StringIO(), width=160)
    tracemalloc.start()
    for part in render(found, 160):
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        console.print(part, soft_wrap=True)
        sizes.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert len(sizes) == 2 + 6
    assert max(sizes) < 3_000_000
