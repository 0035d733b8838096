"""A run's timeline from its log."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.agents.events import (
    ModelAnswered,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
    TurnStarted,
)
from weft.agents.spec import Usage
from weft.assembly.events import FrameAssembled
from weft.conversation.events import RouteDecided
from weft.errors import UsageError
from weft.explain.logic.words import words
from weft.explain.spec.timeline import Row, Timeline
from weft.kernel.values import preview
from weft.log.events import ENDS, RunPaused, RunResumed, RunStarted
from weft.log.spec import Event


def timeline(events: Sequence[Event]) -> Timeline:
    """Each turn, question, route, resumption and the end, with how long it took and what it used.

    Raises:
        UsageError: there are no events, or they do not begin with the run's start.
    """
    if not events or not isinstance(events[0].data, RunStarted):
        raise UsageError("A timeline needs the events of a run from its first one on.")
    rows = _Rows(events[0])
    for event in events:
        rows.take(event)
    started: RunStarted = events[0].data
    return Timeline(
        events[0].run,
        started.workflow,
        started.workflow_version,
        status_of(events[-1]),
        started.user,
        started.tenant,
        events[0].at,
        _seconds(events[0], events[-1]),
        events[-1].seq,
        rows.turns,
        rows.usage,
        tuple(rows.rows),
    )


def status_of(last: Event) -> str:
    """How a run stands whose last event this is."""
    if last.kind in ENDS:
        return last.kind.removeprefix("run.")
    return "waiting" if isinstance(last.data, RunPaused) else "unfinished"


def _seconds(first: Event, last: Event) -> float:
    return (last.at - first.at).total_seconds()


class _Rows:
    """The rows so far, and those whose end is still to come."""

    def __init__(self, first: Event) -> None:
        self.rows: list[Row] = []
        self.turns = 0
        self.usage = Usage()
        self._first = first
        self._open: dict[Any, tuple[int, Event]] = {}

    def take(self, event: Event) -> None:
        """Take in the next event."""
        if event.kind in ENDS:
            self._end(event)
        elif handle := _HANDLERS.get(event.kind):
            handle(self, event, event.data)

    def add(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)

    def open(self, key: Any, event: Event, row: Row) -> None:
        """Add a row that a later event completes."""
        self._open[key] = (len(self.rows), event)
        self.rows.append(row)

    def fill(self, key: Any, **values: Any) -> None:
        """Say more in an open row."""
        if key in self._open:
            place = self._open[key][0]
            self.rows[place] = msgspec.structs.replace(self.rows[place], **values)

    def close(self, key: Any, event: Event, note: str = "") -> None:
        """Complete an open row: it took until now."""
        if key in self._open:
            place, begun = self._open[key]
            note = note or self.rows[place].note
            self.fill(key, seconds=_seconds(begun, event), note=note)
            del self._open[key]

    def _end(self, event: Event) -> None:
        took = _seconds(self._first, event)
        what = event.kind.removeprefix("run.")
        self.add(Row(event.seq, what, event.actor, event.at, took, None, self.usage, words(event)))


def _on_turn(rows: _Rows, event: Event, fact: TurnStarted) -> None:
    rows.turns += 1
    rows.open(fact.turn, event, Row(event.seq, f"turn {fact.turn}", fact.agent, event.at))


def _on_frame(rows: _Rows, event: Event, fact: FrameAssembled) -> None:
    rows.fill(fact.turn, tokens=fact.tokens)


def _on_answer(rows: _Rows, event: Event, fact: ModelAnswered) -> None:
    rows.fill(fact.turn, usage=fact.usage)
    rows.usage = Usage(
        rows.usage.input_tokens + fact.usage.input_tokens,
        rows.usage.output_tokens + fact.usage.output_tokens,
    )


def _on_turn_end(rows: _Rows, event: Event, fact: TurnFinished) -> None:
    note = "" if fact.status == "done" else f"{fact.status} {fact.error}".strip()
    rows.close(fact.turn, event, note)


def _on_question(rows: _Rows, event: Event, fact: QuestionAsked) -> None:
    rows.open(fact.question, event, Row(event.seq, "question", fact.to, event.at, note=fact.prompt))


def _on_answered(rows: _Rows, event: Event, fact: QuestionAnswered) -> None:
    rows.close(fact.question, event, f"{fact.by} answered {preview(fact.value)}")


def _on_route(rows: _Rows, event: Event, fact: RouteDecided) -> None:
    who = f"{fact.source or 'start'} → {fact.target}"
    rows.add(Row(event.seq, "route", who, event.at, note=fact.reason))


def _on_resumed(rows: _Rows, event: Event, fact: RunResumed) -> None:
    changed = f"changed since: {', '.join(fact.changed_code)}" if fact.changed_code else ""
    rows.add(Row(event.seq, "resumed", event.actor, event.at, note=changed))


_HANDLERS: dict[str, Callable[[_Rows, Event, Any], None]] = {
    TurnStarted.kind: _on_turn,
    FrameAssembled.kind: _on_frame,
    ModelAnswered.kind: _on_answer,
    TurnFinished.kind: _on_turn_end,
    QuestionAsked.kind: _on_question,
    QuestionAnswered.kind: _on_answered,
    RouteDecided.kind: _on_route,
    RunResumed.kind: _on_resumed,
}
