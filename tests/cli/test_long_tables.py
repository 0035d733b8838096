"""Long tables are laid out page by page, and look like one table."""

import tracemalloc
from collections.abc import Iterable
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from turnloom.agents.spec import Usage
from turnloom.cli.explanations import render
from turnloom.cli.tables import NUMBERS, PAGE, lay_out
from turnloom.cli.terminal import safe
from turnloom.explain.spec.board import (
    ArrivedArtifact,
    ArtifactName,
    ConsumptionExplained,
    OfferEntry,
    OfferExplained,
)
from turnloom.explain.spec.explanations import Explanation
from turnloom.explain.spec.timeline import COLUMNS, Timeline, TimelineRow
from turnloom.explain.spec.variable import (
    Cause,
    FrameMention,
    JudgedRule,
    VariableChange,
    VariableExplained,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
LONG = range(1, 2 * PAGE + 2)


def timeline(*notes: str) -> Timeline:
    rows = tuple(
        TimelineRow(seq, "turn", f"Agent{seq % 3}", AT, 0.1, 7, Usage(10, 20), note, seq % 2)
        for seq, note in enumerate(notes, 1000)
    )
    about = ("r", "W", "1", "finished", "u", "t", AT, 1.0, len(rows), len(rows), Usage(1, 1))
    return Timeline(*about, rows)


def variable() -> VariableExplained:
    causes = tuple(Cause(seq, "agent.text", "Ann", "said it") for seq in LONG)
    return VariableExplained(
        **{"run": "r", "name": "x", "description": "", "at": 9, "present": True, "value": 2},
        **{"ephemeral": False, "undeclared": False, "source": "static", "place": ""},
        **{"raw": None, "first": 1, "defaulted": False, "note": "", "suppressed": ""},
        changes=(VariableChange(9, AT, 1, 2, "tool:t", causes),),
        refused=(),
        missed=(),
        frames=tuple(FrameMention(seq, seq, "Ann", "- x: 1") for seq in LONG),
        conditions=tuple(JudgedRule(seq, "Ann", "Bob", 1, "x", 1, True, "") for seq in LONG),
        hooks=(),
    )


def named(seq: int) -> ArtifactName:
    return ArtifactName(seq, f"a{seq}", "Note", "Ann", "r", ())


def offer() -> OfferExplained:
    to = tuple(OfferEntry(seq, f"Bob{seq}", "wants", "taken") for seq in LONG)
    return OfferExplained("r", 1, 1, named(1), True, to)


def consumption() -> ConsumptionExplained:
    artifacts = tuple(ArrivedArtifact(named(seq), seq, AT) for seq in LONG)
    return ConsumptionExplained("r", 9, 9, "Bob", "Bob", 1, "", artifacts, 8, "It was the last.")


def shown(parts: Iterable[RenderableType], width: int) -> list[str]:
    out = StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def whole(found: Timeline) -> Table:
    """The rows of a timeline as one table of rich."""
    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in NUMBERS else "left", overflow="fold")
    for row in found.rows:
        table.add_row(*map(safe, row.cells))
    return table


@pytest.mark.parametrize("width", [100, 400])
def test_pages_look_like_one_table(width: int) -> None:
    """Also where cells are folded, have several lines, are wide, or could steer a terminal."""
    notes = ["short", "long " * 30, "two\nlines", "走る走る", "\x1b[31m"]
    found = timeline(*notes, *["end"] * PAGE)
    lines = shown(render(found, width), width)[1:]
    assert lines == shown([whole(found)], width)
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    "found",
    [timeline(*["note"] * len(LONG)), variable(), offer(), consumption()],
    ids=lambda found: type(found).__name__,
)
def test_no_explanation_is_laid_out_whole(found: Explanation) -> None:
    sizes = [
        part.row_count if isinstance(part, Table) else len(str(part).splitlines())
        for part in render(found, 160)
    ]
    assert max(sizes) == PAGE
    assert sum(sizes) > len(LONG)


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


def test_cells_keep_their_style_and_whole_columns_their_width() -> None:
    def cells(name: str) -> tuple[str | Text, ...]:
        return safe(name * 30, "bold"), name * 30, name * 30

    parts = [*lay_out(("id", "note", "more"), "ab", cells, 60, whole=["id"])]
    assert shown(parts, 60)[1] == "  ".join(["a" * 30, "a" * 13, "a" * 13])
    narrow = shown(lay_out(("id", "note", "more"), "a", cells, 22, whole=["id"]), 22)
    assert narrow[1] == "  ".join(["a" * 6] * 3)
    out = StringIO()
    Console(file=out, width=200, force_terminal=True, color_system="standard").print(
        *lay_out(("id", "note", "more"), "a", cells, 200)
    )
    assert f"\x1b[1m{'a' * 30}\x1b[0m" in out.getvalue()
