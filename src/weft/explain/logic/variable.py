"""A variable from the log: its first value, its changes, its readers."""

from collections.abc import Iterator, Mapping, Sequence

from weft.assembly.events import FrameAssembled
from weft.conversation.events import Considered, RouteDecided
from weft.errors import UsageError
from weft.explain.logic.frames import Frames
from weft.explain.logic.words import causes, numbered
from weft.explain.spec.variable import Change, Judged, Refusal, Sight, VariableExplained
from weft.kernel.values import nearest
from weft.log.spec import Event
from weft.variables.events import (
    ContextChanged,
    ContextLoaded,
    ContextRefused,
    ContextSuppressed,
    Loaded,
)


def explain_variable(
    events: Sequence[Event], name: str, at: int | None = None, description: str = ""
) -> VariableExplained:
    """Why a variable has its value, as of an event or as of the last one.

    `description` is what its definition says it is for.

    Raises:
        UsageError: the run has no such variable, or no such event.
    """
    _check(events, name, at)
    until = [event for event in events if at is None or event.seq <= at]
    loaded = _loaded(until, name)
    suppressed = _suppressed(until, name)
    changes = tuple(_changes(until, name))
    value = changes[-1].value if changes else loaded.value if loaded else None
    first = loaded or Loaded(name, "")
    return VariableExplained(
        run=events[0].run,
        name=name,
        description=description,
        at=until[-1].seq,
        present=bool(changes) or (loaded is not None and not suppressed),
        value=value,
        source=first.source,
        place=first.origin,
        raw=first.raw,
        first=first.value,
        defaulted=first.defaulted,
        note=first.note,
        suppressed=suppressed,
        changes=changes,
        refused=tuple(_refused(until, name)),
        frames=tuple(_frames(until, name)),
        conditions=tuple(_conditions(until, name)),
    )


def _check(events: Sequence[Event], name: str, at: int | None) -> None:
    last = events[-1].seq
    if at is not None and not 1 <= at <= last:
        raise UsageError(f"There is no event {at} in this run. Events: 1 to {last}.")
    known = dict.fromkeys(_names(events))
    if name not in known:
        hint = nearest(name, known)
        remedy = f"Did you mean {hint!r}?" if hint else f"There is: {', '.join(known)}."
        raise UsageError(f"This run has no variable {name!r}. {remedy}")


def _names(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        match event.data:
            case ContextLoaded(values=values):
                yield from (each.name for each in values)
            case ContextSuppressed(names=names):
                yield from names
            case ContextChanged(name=name) | ContextRefused(name=name):
                yield name
            case _:
                pass


def _loaded(events: Sequence[Event], name: str) -> Loaded | None:
    for event in events:
        if isinstance(event.data, ContextLoaded):
            return next((each for each in event.data.values if each.name == name), None)
    return None


def _suppressed(events: Sequence[Event], name: str) -> str:
    for event in events:
        if isinstance(event.data, ContextSuppressed) and name in event.data.names:
            return event.data.reason
    return ""


def _changes(events: Sequence[Event], name: str) -> Iterator[Change]:
    by_seq: Mapping[int, Event] = numbered(events)
    for event in events:
        if isinstance(event.data, ContextChanged) and event.data.name == name:
            fact = event.data
            led = causes(event, by_seq)
            yield Change(event.seq, event.at, fact.previous, fact.value, fact.writer, led)


def _refused(events: Sequence[Event], name: str) -> Iterator[Refusal]:
    by_seq: Mapping[int, Event] = numbered(events)
    for event in events:
        if isinstance(event.data, ContextRefused) and event.data.name == name:
            fact = event.data
            yield Refusal(event.seq, event.at, fact.writer, fact.reason, causes(event, by_seq))


def _frames(events: Sequence[Event], name: str) -> Iterator[Sight]:
    origin = f"context_variables.{name}"
    frames = Frames()
    for event in events:
        frames.take(event)
        if not isinstance(event.data, FrameAssembled):
            continue
        sighted = frames.sighted(event.data)
        if sighted is None:
            continue
        turn, agent = event.data.turn, event.data.agent
        for segment in sighted.segments:
            if segment.origin == origin:
                text = frames.texts.get(segment.digest, "").strip()
                yield Sight(event.seq, turn, agent, text)
        for each in sighted.withheld:
            if each.origin == origin:
                why = f"withheld, {each.reason}: {each.detail}"
                yield Sight(event.seq, turn, agent, "", why)


def _conditions(events: Sequence[Event], name: str) -> Iterator[Judged]:
    for event in events:
        if isinstance(event.data, RouteDecided):
            for rule in event.data.considered:
                if _looked(rule, name):
                    yield Judged(
                        event.seq,
                        event.data.source,
                        rule.target,
                        rule.rule,
                        rule.condition,
                        rule.saw.get(name),
                        rule.fired,
                        rule.why_not,
                    )


def _looked(rule: Considered, name: str) -> bool:
    return name in rule.saw or rule.why_not.startswith(f"{name} is absent")
