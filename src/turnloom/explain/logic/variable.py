"""A variable from the log: its first value, its changes, its readers."""

from collections.abc import Iterator, Sequence

from turnloom.errors import UsageError
from turnloom.explain.logic.causes import Causes
from turnloom.explain.logic.readers import conditions, frames, hooks
from turnloom.explain.spec.explanations import NOTHING_DECLARED, Declared
from turnloom.explain.spec.variable import Change, Omission, Refusal, VariableExplained
from turnloom.kernel.values import nearest
from turnloom.log.spec import Event
from turnloom.variables.events import (
    ContextChanged,
    ContextLoaded,
    ContextMissed,
    ContextRefused,
    ContextSuppressed,
    Loaded,
)


def explain_variable(
    events: Sequence[Event],
    name: str,
    at: int | None = None,
    declared: Declared = NOTHING_DECLARED,
) -> VariableExplained:
    """Why a variable has its value, as of an event or as of the last one.

    Raises:
        UsageError: the run has no such variable, or no such event.
    """
    _check(events, name, at)
    until = [event for event in events if at is None or event.seq <= at]
    loaded, suppressed = _loaded(until, name), _suppressed(until, name)
    causes = Causes(until)
    changes = tuple(_changes(until, name, causes, loaded is not None and not suppressed))
    last = changes[-1] if changes else None
    first = loaded or Loaded(name, "")
    return VariableExplained(
        run=events[0].run,
        name=name,
        description=declared.descriptions.get(name, ""),
        at=until[-1].seq,
        present=not last.removed if last else loaded is not None and not suppressed,
        value=last.value if last else first.value,
        ephemeral=last is not None and last.ephemeral,
        undeclared=_undeclared(until, name),
        source=first.source,
        place=first.origin,
        raw=first.raw,
        first=first.value,
        defaulted=first.defaulted,
        note=first.note,
        suppressed=suppressed,
        changes=changes,
        refused=tuple(_refused(until, name, causes)),
        missed=tuple(_missed(until, name, causes)),
        frames=tuple(frames(until, name, declared.conversation)),
        conditions=tuple(conditions(until, name, declared.conversation)),
        hooks=tuple(hooks(until, name, declared.conversation)),
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
            case ContextChanged(name=name) | ContextRefused(name=name) | ContextMissed(name=name):
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


def _undeclared(events: Sequence[Event], name: str) -> bool:
    facts = (event.data for event in events if isinstance(event.data, ContextChanged))
    return any(fact.undeclared for fact in facts if fact.name == name)


def _changes(events: Sequence[Event], name: str, causes: Causes, present: bool) -> Iterator[Change]:
    for event in events:
        fact = event.data
        if isinstance(fact, ContextChanged) and fact.name == name:
            yield Change(
                event.seq,
                event.at,
                fact.previous,
                fact.value,
                fact.writer,
                causes.of(event),
                not present,
                fact.removed,
                fact.ephemeral,
            )
            present = not fact.removed


def _refused(events: Sequence[Event], name: str, causes: Causes) -> Iterator[Refusal]:
    for event in events:
        fact = event.data
        if isinstance(fact, ContextRefused) and fact.name == name:
            yield Refusal(event.seq, event.at, fact.writer, fact.reason, causes.of(event))


def _missed(events: Sequence[Event], name: str, causes: Causes) -> Iterator[Omission]:
    for event in events:
        fact = event.data
        if isinstance(fact, ContextMissed) and fact.name == name:
            yield Omission(event.seq, event.at, fact.tool, fact.key, fact.value, causes.of(event))
