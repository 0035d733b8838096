"""Render explanations for people: tables, colour, the width of the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from turnloom.cli.tables import NUMBERS, PAGE, long_table
from turnloom.cli.terminal import UNSEEN_WIDTH, joined, safe
from turnloom.explain.spec.board import ARRIVED, NAMED, ConsumptionExplained, OfferExplained
from turnloom.explain.spec.explanations import Explanation
from turnloom.explain.spec.route import FlowRouteExplained, RouteExplained
from turnloom.explain.spec.timeline import COLUMNS, Timeline
from turnloom.explain.spec.turn import ShownSegment, TurnExplained
from turnloom.explain.spec.variable import VariableChange, VariableExplained

_KINDS = {
    "instruction": "cyan",
    "variable": "green",
    "history": "magenta",
    "tool": "yellow",
    "context": "bright_blue",
    "artifact": "bright_blue",
    "input": "bright_green",
    "output": "blue",
}
_BAR = 20


def render(
    found: Explanation, width: int = UNSEEN_WIDTH, *, brief: bool = False
) -> Iterator[RenderableType]:
    """An explanation for a terminal of this width, part by part; `brief` leaves out the prompt of a
    turn."""
    match found:
        case TurnExplained():
            return chain(_turn(found), () if brief else _prompt(found))
        case VariableExplained():
            return _variable(found)
        case RouteExplained():
            return _route(found)
        case FlowRouteExplained():
            return _flow_route(found)
        case OfferExplained():
            return _offer(found)
        case ConsumptionExplained():
            return _consumption(found)
        case Timeline():
            return _timeline(found, width)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        number = column in NUMBERS
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(safe(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def _heading(text: str) -> Text:
    return safe(text, "bold")


def _turn(found: TurnExplained) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for doubt in found.doubts:
        yield safe(f"  ! {doubt}", "bold red")
    if (woken := found.woken) is not None:
        yield safe(woken.says)
        yield _table(NAMED, (each.cells for each in woken.artifacts))
    yield _table(
        ("#", "kind", "origin", "tokens", "share", "", "reason"),
        (_segment(number, each) for number, each in enumerate(found.segments, 1)),
    )
    if found.withheld:
        yield _heading("Withheld")
        rows = ((each.origin, each.reason, each.detail) for each in found.withheld)
        yield _table(("origin", "reason", "detail"), rows)
    else:
        yield safe("Withheld: nothing")
    for line in found.outcome:
        yield safe(line)


def _prompt(found: TurnExplained) -> Iterator[RenderableType]:
    """The exact prompt of the engines."""
    yield _heading("The prompt, segment by segment")
    for number, each in enumerate(found.segments, 1):
        yield safe(f"── {number} {each.kind} {each.origin} ──", "dim")
        yield safe(each.text, _KINDS.get(each.kind, ""))
    if found.exchanges:
        yield _heading("Exchanges, given to later model calls")
    for number, said in enumerate(found.exchanged, 1):
        yield safe(f"── {number} ──", "dim")
        yield safe(said)
    for part in found.parts:
        yield safe("\n".join(part.lines))


def _segment(number: int, each: ShownSegment) -> tuple[str | Text, ...]:
    style = _KINDS.get(each.kind, "")
    bar = Text("█" * round(each.share / 100 * _BAR), style)
    share = f"{each.share:.1f} %"
    return (
        str(number),
        safe(each.kind, style),
        each.origin,
        str(each.tokens),
        share,
        bar,
        each.reason,
    )


def _flow_route(found: FlowRouteExplained) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.parts:
        yield safe(line)


def _variable(found: VariableExplained) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.origin:
        yield safe(line)
    yield _heading("Changes") if found.history else safe("Changes: none")
    for write in found.history:
        style = "green" if isinstance(write, VariableChange) else "red"
        yield joined(f"  seq {write.seq}: ", (write.says, style))
        rows = ((f"    ← {each.seq}", each.kind, each.says) for each in write.causes)
        yield _table(("    because of", "kind", "what"), rows)
    yield _heading("Frames that showed it") if found.frames else safe("Frames: none showed it")
    if found.frames:
        shown = (
            (str(each.seq), f"turn {each.turn}", each.agent, each.withheld or each.text)
            for each in found.frames
        )
        yield _table(("seq", "turn", "agent", "shown as"), shown)
    if not found.judged:
        yield safe("Conditions: none looked at it")
        return
    yield _heading("Conditions that looked at it")
    judged = ((str(each.seq), each.who, each.condition, each.verdict) for each in found.judged)
    yield _table(("seq", "whose", "condition", "verdict"), judged)


def _route(found: RouteExplained) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    if found.rules:
        rows = (
            (
                str(each.rule),
                each.target,
                each.wants,
                each.sight,
                safe(each.verdict, "green" if each.fired else "dim"),
            )
            for each in found.rules
        )
        yield _table(("rule", "target", "condition", "saw", "verdict"), rows)
    else:
        yield safe("Rules: none was considered")
    for line in found.alternatives:
        yield safe(line)


def _offer(found: OfferExplained) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    yield _table(NAMED, [found.artifact.cells])
    if not found.to:
        yield safe(found.nobody)
        return
    rows = (
        (each.subscription, safe(each.told, "dim" if each.refused else "green"))
        for each in found.to
    )
    yield _table(("subscription", "verdict"), rows)
    for line in found.choice:
        yield safe(line)


def _consumption(found: ConsumptionExplained) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    yield _table(ARRIVED, (each.cells for each in found.artifacts))
    yield safe(found.reason)


def _timeline(found: Timeline, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.about:
        yield safe(line)
    if len(found.rows) <= PAGE:
        yield _table(COLUMNS, (row.cells for row in found.rows))
    else:
        yield from long_table(COLUMNS, lambda: (row.cells for row in found.rows), width)
