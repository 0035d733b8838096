"""The sections of a page: overview, timeline, variables, artifacts, state and events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

import msgspec

from turnloom.explain.logic.describe import describe
from turnloom.explain.page.contents import PageContents
from turnloom.explain.page.frames import kind_class, whole
from turnloom.explain.page.markup import (
    Content,
    Html,
    element,
    event_anchor,
    folded,
    joined,
    lines,
    link,
    seq_link,
    table,
    turn_anchor,
)
from turnloom.explain.page.routes import Routes
from turnloom.explain.spec.state import StateExplained
from turnloom.explain.spec.text import counted, one_line
from turnloom.explain.spec.timeline import Timeline, TimelineRow
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import (
    Cause,
    FrameMention,
    VariableChange,
    VariableExplained,
    Write,
)
from turnloom.kernel.values import as_data
from turnloom.log.events import ENDS
from turnloom.log.spec import Event

# The classes of statuses that end a run badly.
_BAD = frozenset({"failed", "cancelled"})

# The height of a column of the strip; few and many turns, and the widths of columns for them.
HEIGHT = 64
FEW, MANY = 30, 120
WIDE, MEDIUM, NARROW = 36, 12, 5

# Causes of a change that are told before the first one.
NEAR = 5

# The length of a bar of the timeline.
SPAN = 1000


def status_class(status: str) -> str:
    """The class of a run's status."""
    if status == "finished":
        return "pill good"
    return "pill bad" if status in _BAD else "pill"


def write_header(page: PageContents) -> Html:
    """What the run is, and what it used."""
    found = page.timeline
    title = [
        element("h1", found.workflow),
        element("span", found.status, class_=status_class(found.status)),
    ]
    return element(
        "header",
        element("p", "Run of a Turnloom workflow", class_="soft"),
        element("div", title, class_="title"),
        element("p", found.headline, class_="lead"),
        element("dl", (_fact(*each) for each in _facts(page)), class_="facts"),
        lines(found.about),
        _failure(page),
    )


# Facts that take a line of their own.
_WIDTHS = {"Files": "wide"}


def _fact(name: str, value: Content) -> Html:
    return element("div", element("dt", name), element("dd", value), class_=_WIDTHS.get(name))


def _facts(page: PageContents) -> Iterator[tuple[str, Content]]:
    found, started = page.timeline, page.started
    yield "Run", element("code", found.run)
    yield "Form", started.form
    yield "Tokens used", str(found.usage)
    if found.spent:
        yield "Budget used", found.spent
    yield "User", found.user or "-"
    yield "App", found.tenant
    yield "Definition", element("code", started.definition[:16], title=started.definition)
    yield "Time zone", _zone(found.started)
    if started.files:
        yield "Files", ", ".join(sorted(started.files))


def _zone(at: datetime) -> str:
    return at.astimezone().strftime("UTC%z").replace("UTC+0000", "UTC")


def _failure(page: PageContents) -> Content:
    last = page.events[-1]
    if page.timeline.status not in _BAD or last.kind not in ENDS:
        return None
    failed = [each for each in page.turns if each.status == "failed"]
    return element(
        "div",
        element("p", element("b", describe(last.data)), " ", seq_link(last.seq)),
        element("p", page.state.failure) if page.state.failure else None,
        [element("p", _failed_turn(each)) for each in failed[-3:]],
        class_="callout",
        role="note",
    )


def _failed_turn(found: TurnExplained) -> Content:
    name = link(turn_anchor(found.turn), f"Turn {found.turn} of {found.agent}")
    return [name, f" {found.status}: {one_line(found.error, 200)}"]


def write_strip(turns: Sequence[TurnExplained]) -> Html:
    """A column per turn: its height is the size of the frame, its parts the kinds of segments."""
    most = max((each.tokens for each in turns), default=0) or 1
    width = WIDE if len(turns) <= FEW else MEDIUM if len(turns) <= MANY else NARROW
    columns = (
        element(
            "a",
            element("title", f"Turn {each.turn} of {each.agent}: {each.tokens} tokens"),
            element("rect", x=place * width, y=0, width=width - 1, height=HEIGHT, class_="back"),
            _column(each, place * width, width - 2, most),
            href=f"#{turn_anchor(each.turn)}",
            tabindex="-1",
        )
        for place, each in enumerate(turns)
    )
    size = f'width="{len(turns) * width}" height="{HEIGHT}"'
    drawn = Html(f'<svg class="strip" aria-hidden="true" {size}>{joined(columns)}</svg>')
    kinds = dict.fromkeys(segment.kind for each in turns for segment in each.segments)
    legend = [element("span", kind, class_=f"tag {kind_class(kind)}") for kind in kinds]
    return element(
        "div",
        element("div", drawn, class_="scroll"),
        element("p", f"Tokens per turn, at most {most:,}: ", legend, class_="legend"),
        class_="panel",
    )


def _column(found: TurnExplained, x: int, width: int, most: int) -> Iterator[Html]:
    top = float(HEIGHT)
    for kind, some in groupby(found.segments, key=lambda each: kind_class(each.kind)):
        height = sum(each.tokens for each in some) / most * HEIGHT
        top -= height
        yield element("rect", x=x, y=f"{top:.1f}", width=width, height=f"{height:.1f}", class_=kind)


def write_timeline(found: Timeline, anchors: Mapping[int, str]) -> Html:
    """The rows of the timeline; `anchors` are the places of turns and routes by event."""
    columns = ("seq", "what", "who", "took", "when", "tokens", "used", "note")
    whole = max(found.seconds, 0.001)
    rows = (_row(each, found.started, whole, anchors) for each in found.rows)
    return table(columns, rows, "Timeline")


def _row(
    row: TimelineRow, began: datetime, whole: float, anchors: Mapping[int, str]
) -> tuple[Content, ...]:
    _, what, who, took, tokens, used, note = row.cells
    name: Content = what.lstrip()
    if row.seq in anchors:
        name = link(anchors[row.seq], what.lstrip())
    nested = element("span", name, class_=f"d{min(row.depth, 4)}")
    x = round((row.at - began).total_seconds() / whole * SPAN)
    width = max(round((row.seconds or 0) / whole * SPAN), 6)
    return seq_link(row.seq), nested, who, took, _bar(min(x, SPAN - 6), width), tokens, used, note


def _bar(x: int, width: int) -> Html:
    return Html(
        '<svg class="bar" aria-hidden="true" viewBox="0 0 1000 10" preserveAspectRatio="none">'
        f'<rect x="{x}" y="1" width="{min(width, SPAN - x)}" height="8"></rect></svg>'
    )


def write_variables(variables: Sequence[VariableExplained]) -> Html:
    """Each variable with its origin, its history and its readers."""
    return joined(map(_variable, variables))


def _variable(found: VariableExplained) -> Html:
    changes = counted(len(found.changes), "change")
    summary = [element("b", found.headline), element("span", f" {changes}", class_="soft")]
    judged = found.judged
    return folded(
        summary,
        lines(found.origin),
        whole(as_data(found.value)) if found.present and len(as_data(found.value)) > 80 else None,
        element("h4", "Changes") if found.history else element("p", "Changes: none"),
        element("ol", map(_write, found.history), class_="steps") if found.history else None,
        element("h4", "Frames that showed it")
        if found.frames
        else element("p", "Frames: none showed it"),
        _mentions(found.frames) if found.frames else None,
        element("h4", "Conditions that read it")
        if judged
        else element("p", "Conditions: none read it"),
        _conditions(found) if judged else None,
        id=f"variable-{found.name}",
        class_="variable",
    )


def _write(write: Write) -> Html:
    style = "good" if isinstance(write, VariableChange) else "bad"
    says = element("span", write.says, class_=style)
    because = element("ul", _causes(write.causes), class_="steps") if write.causes else None
    return element("li", says, " ", seq_link(write.seq), because)


def _causes(causes: Sequence[Cause]) -> Iterator[Html]:
    """The nearest causes and the first one; of those between, the list of events tells."""
    between = causes[NEAR:-1]
    for each in causes[:NEAR]:
        yield _cause(each)
    if between:
        more = counted(len(between), "earlier event")
        yield element(
            "li", f"← {more}, from ", seq_link(between[0].seq), " to ", seq_link(between[-1].seq)
        )
    if len(causes) > NEAR:
        yield _cause(causes[-1])


def _cause(each: Cause) -> Html:
    return element("li", f"← {each.kind}: {each.says} ", seq_link(each.seq))


def _mentions(frames: Sequence[FrameMention]) -> Html:
    """The frames that showed a variable; those of one agent with the same text are one row."""
    some = groupby(frames, key=lambda each: (each.agent, each.withheld or each.text))
    rows = ((_span([*each]), agent, text) for (agent, text), each in some)
    return table(("turns", "agent", "shown as"), rows, "Frames that showed it")


def _span(frames: Sequence[FrameMention]) -> Content:
    first, last = frames[0].turn, frames[-1].turn
    begin = link(turn_anchor(first), str(first))
    return begin if first == last else [begin, " to ", link(turn_anchor(last), str(last))]


def _conditions(found: VariableExplained) -> Html:
    rows = (
        (seq_link(each.seq), each.who, element("code", each.condition), each.verdict)
        for each in found.judged
    )
    return table(("seq", "owner", "condition", "verdict"), rows, "Conditions that read it")


def write_artifacts(page: PageContents, routes: Routes) -> Html:
    """The artifacts of a board's run, each with its payload and the verdicts of subscriptions."""
    names = {each.id: each for each in page.state.artifacts}
    offers = {each.artifact.id: seq for seq, each in page.offers}
    return joined(
        folded(
            [
                element("b", each.type),
                " ",
                element("code", each.id),
                f" by {each.produced_by} ",
                seq_link(names[each.id].seq) if each.id in names else None,
            ],
            element("p", "Made from: ", _parents(each.parents, names)) if each.parents else None,
            whole(msgspec.json.format(as_data(each.payload), indent=2)),
            routes.write(offers[each.id]) if each.id in offers else None,
            id=f"artifact-{each.id}",
            class_="artifact",
        )
        for each in page.artifacts
    )


def _parents(parents: Iterable[str], known: Mapping[str, object]) -> Iterator[Content]:
    for place, id in enumerate(parents):
        yield ", " if place else ""
        yield link(f"artifact-{id}", id) if id in known else id


def write_state(found: StateExplained) -> Html:
    """The state at the end of the run, as tables."""
    sections = (
        [element("h4", title), table(columns, rows, title)]
        for title, columns, rows in found.sections
    )
    return joined(lines(found.about), sections, lines(found.notes))


def write_events(events: Sequence[Event]) -> Html:
    """Every event in one line, each with an anchor."""
    rows = (
        element(
            "tr",
            element("td", link(event_anchor(each.seq), str(each.seq), class_="seq")),
            element("td", each.kind),
            element("td", each.actor),
            element("td", describe(each.data)),
            id=event_anchor(each.seq),
        )
        for each in events
    )
    names = ("seq", "kind", "actor", "what")
    head = element("tr", [element("th", name, scope="col") for name in names])
    return element(
        "div",
        element(
            "table",
            element("caption", "Events", class_="unseen"),
            element("thead", head),
            element("tbody", rows),
            class_="events",
        ),
        class_="scroll",
    )
