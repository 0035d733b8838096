"""Render explanations for people: tables, colour, the width of the terminal."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import UNSEEN_WIDTH, joined, safe
from turnloom.explain.spec.blame import PLACES, BlameExplained
from turnloom.explain.spec.board import ARRIVED, NAMED, ConsumptionExplained, OfferExplained
from turnloom.explain.spec.diff import SegmentChange, TurnDiff, marked
from turnloom.explain.spec.explanations import Explanation
from turnloom.explain.spec.route import FlowRouteExplained, RouteExplained, WeighedRule
from turnloom.explain.spec.state import StateExplained
from turnloom.explain.spec.timeline import COLUMNS, Timeline
from turnloom.explain.spec.turn import ShownSegment, TurnExplained
from turnloom.explain.spec.variable import FrameMention, VariableChange, VariableExplained, Write
from turnloom.explain.spec.what_if import WhatIf

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
_CHANGES = {"added": "green", "gone": "red", "changed": "yellow"}
_BAR = 20


def render(
    found: Explanation, width: int = UNSEEN_WIDTH, *, brief: bool = False
) -> Iterator[RenderableType]:
    """An explanation for a terminal of this width, part by part; `brief` leaves out the prompt of a
    turn."""
    if isinstance(found, TurnExplained):
        return chain(_turn(found, width), () if brief else _prompt(found))
    return _RENDERERS[type(found)](found, width)


def _heading(text: str) -> Text:
    return safe(text, "bold")


def _turn(found: TurnExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for doubt in found.doubts:
        yield safe(f"  ! {doubt}", "bold red")
    if (woken := found.woken) is not None:
        yield safe(woken.says)
        yield from lay_out(NAMED, woken.artifacts, lambda each: each.cells, width)
    columns = ("#", "kind", "origin", "tokens", "share", "", "reason")
    yield from lay_out(columns, [*enumerate(found.segments, 1)], _segment, width)
    if found.withheld:
        yield _heading("Withheld")
        yield from lay_out(
            ("origin", "reason", "detail"),
            found.withheld,
            lambda each: (each.origin, each.reason, each.detail),
            width,
        )
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


def _segment(numbered: tuple[int, ShownSegment]) -> tuple[str | Text, ...]:
    number, each = numbered
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


def _diff(found: TurnDiff, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    yield safe(found.summary, "dim")
    for change in found.changes:
        yield safe("")
        yield safe(change.headline, f"bold {_CHANGES[change.change]}")
        yield _indented(_words(change), 4, width)
        yield _indented(joined("because of ", (change.cause.line, "bold")), 2, width)
        for line in change.cause.chain:
            yield _indented(safe(line, "dim"), 4, width)


def _indented(text: Text, by: int, width: int) -> RenderableType:
    """A text with an indent, also of wrapped lines; output for programs is not wrapped."""
    if width < UNSEEN_WIDTH:
        return Padding(text, (0, 0, 0, by), expand=False)
    return Text("\n").join(Text(" " * by).append_text(line) for line in text.split("\n"))


def _words(change: SegmentChange) -> Text:
    """The words of a change: coloured, and marked where both texts are mixed."""
    if change.change != "changed":
        return joined(*((each.text, _CHANGES[change.change]) for each in change.shown))
    words = joined(*((marked(each), _CHANGES.get(each.change, "")) for each in change.shown))
    start = len(words.plain) - len(words.plain.lstrip("\n"))
    return words[start:]


def _blame(found: BlameExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    if found.entries:
        yield _heading("Entered at")
    for entry in found.entries:
        yield _indented(safe(entry.line, "green"), 2, width)
        for line in entry.chain:
            yield _indented(safe(line, "dim"), 4, width)
    if found.places:
        yield _heading("Occurs in")
        yield from lay_out(PLACES, found.places, lambda each: each.cells, width, whole=("seq",))


def _flow_route(found: FlowRouteExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.parts:
        yield safe(line)


def _variable(found: VariableExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.origin:
        yield safe(line)
    history, judged = found.history, found.judged
    yield _heading("Changes") if history else safe("Changes: none")
    for write in history:
        yield from _write(write, width)
    yield _heading("Frames that showed it") if found.frames else safe("Frames: none showed it")
    if found.frames:
        yield from lay_out(("seq", "turn", "agent", "shown as"), found.frames, _mention, width)
    if not judged:
        yield safe("Conditions: none read it")
        return
    yield _heading("Conditions that read it")
    yield from lay_out(
        ("seq", "owner", "condition", "verdict"),
        judged,
        lambda each: (str(each.seq), each.who, each.condition, each.verdict),
        width,
    )


def _write(write: Write, width: int) -> Iterator[RenderableType]:
    style = "green" if isinstance(write, VariableChange) else "red"
    yield joined(f"  seq {write.seq}: ", (write.says, style))
    yield from lay_out(
        ("    because of", "kind", "what"),
        write.causes,
        lambda each: (f"    ← {each.seq}", each.kind, each.says),
        width,
    )


def _mention(each: FrameMention) -> tuple[str, ...]:
    return str(each.seq), f"turn {each.turn}", each.agent, each.withheld or each.text


def _route(found: RouteExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    if found.rules:
        yield from lay_out(
            ("rule", "target", "condition", "saw", "verdict"), found.rules, _rule, width
        )
    else:
        yield safe("Rules: none was considered")
    for line in found.alternatives:
        yield safe(line)


def _rule(each: WeighedRule) -> tuple[str | Text, ...]:
    verdict = safe(each.verdict, "green" if each.fired else "dim")
    return str(each.rule), each.target, each.wants, each.sight, verdict


def _offer(found: OfferExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    yield from lay_out(NAMED, [found.artifact], lambda each: each.cells, width)
    if not found.to:
        yield safe(found.no_verdicts)
        return
    yield from lay_out(
        ("subscription", "verdict"),
        found.to,
        lambda each: (
            each.subscription,
            safe(each.description, "dim" if each.refused else "green"),
        ),
        width,
    )
    for line in (*found.otherwise, *found.choice):
        yield safe(line)


def _consumption(found: ConsumptionExplained, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    yield from lay_out(ARRIVED, found.artifacts, lambda each: each.cells, width)
    yield safe(found.reason)


def _timeline(found: Timeline, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.about:
        yield safe(line)
    yield from lay_out(COLUMNS, found.rows, lambda row: row.cells, width)


def _what_if(found: WhatIf, width: int) -> Iterator[RenderableType]:
    yield _heading(found.headline)
    for line in found.lines:
        yield safe(line)


_RENDERERS: Mapping[type, Callable[[Any, int], Iterator[RenderableType]]] = {
    VariableExplained: _variable,
    RouteExplained: _route,
    FlowRouteExplained: _flow_route,
    OfferExplained: _offer,
    ConsumptionExplained: _consumption,
    Timeline: _timeline,
    TurnDiff: _diff,
    BlameExplained: _blame,
    WhatIf: _what_if,
}


def render_state(found: StateExplained, width: int) -> Iterator[RenderableType]:
    """The state of a run for a terminal of this width, part by part."""
    yield _heading(found.headline)
    for line in found.about:
        yield safe(line)
    for title, columns, rows in found.sections:
        yield _heading(title)
        yield from lay_out(
            columns, rows, lambda row: row, width, whole=("seq", "name", "id", "type")
        )
    for line in found.notes:
        yield safe(line, "yellow")
