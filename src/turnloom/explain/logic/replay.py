"""Explain the result of a replay."""

from collections.abc import Iterator
from typing import Any, cast

from turnloom.explain.logic.describe import describe
from turnloom.explain.spec.replay import DifferentField, Divergence, Replay, ReplayedEvent
from turnloom.kernel.values import as_data
from turnloom.log.spec import Event
from turnloom.runtime.replay.comparing import comparable
from turnloom.runtime.replay.spec import Difference, ReplayedRun

# Stands for an event that nothing leads to, and for a part that only the other side has.
NOTHING = "nothing"


def explain_replay(found: ReplayedRun) -> Replay:
    """A replayed run as people see it."""
    return Replay(
        found.run,
        found.workflow,
        found.form,
        found.events,
        same=found.same,
        turns=found.turns,
        divergence=_divergence(found.difference) if found.difference is not None else None,
        changed_code=found.changed_code,
    )


def _divergence(found: Difference) -> Divergence | None:
    recorded, decided = found.recorded, found.decided
    if recorded is None:
        return None
    return Divergence(
        recorded.seq,
        _side(recorded),
        None if decided is None else _side(decided),
        tuple(_fields(recorded, decided)),
    )


def _side(event: Event) -> ReplayedEvent:
    data = comparable(event.data)
    words = describe(event.data)
    return ReplayedEvent(event.id, event.kind, event.actor, event.cause, words=words, data=data)


def _fields(recorded: Event, decided: Event | None) -> Iterator[DifferentField]:
    """What happened on both sides, then the parts that differ."""
    one, other = describe(recorded.data), describe(decided.data) if decided else NOTHING
    yield DifferentField("what", f"{recorded.kind} {one}", _said(decided, other))
    if decided is None:
        return
    for name in ("id", "actor", "cause"):
        before, now = getattr(recorded, name), getattr(decided, name)
        if before != now:
            yield DifferentField(name, str(before), str(now))
    if recorded.kind == decided.kind:
        yield from different_fields(recorded, decided)


def different_fields(recorded: Event, decided: Event) -> Iterator[DifferentField]:
    """The innermost parts of two facts that differ."""
    yield from _different("", comparable(recorded.data), comparable(decided.data))


def _said(decided: Event | None, words: str) -> str:
    return words if decided is None else f"{decided.kind} {words}"


def _different(name: str, before: Any, now: Any) -> Iterator[DifferentField]:
    """The innermost parts of two values that differ, by path."""
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        ours, theirs = cast(dict[str, Any], before), cast(dict[str, Any], now)
        for key in dict.fromkeys((*ours, *theirs)):
            inside = f"{name}.{key}" if name else str(key)
            yield from _different(inside, ours.get(key, _ABSENT), theirs.get(key, _ABSENT))
        return
    if isinstance(before, list) and isinstance(now, list):
        some, others = cast(list[Any], before), cast(list[Any], now)
        if len(some) == len(others):
            for place, (one, other) in enumerate(zip(some, others, strict=True)):
                yield from _different(f"{name}[{place}]", one, other)
            return
    yield DifferentField(name, _shown(before), _shown(now))


def _shown(value: Any) -> str:
    return NOTHING if value is _ABSENT else as_data(value)


_ABSENT = object()
