"""The rows of a timeline: each begins with an event, and another one may complete it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from turnloom.agents import events as agents
from turnloom.agents.spec import SELECTOR, Usage
from turnloom.assembly.events import FrameAssembled
from turnloom.conversation.events import RouteDecided
from turnloom.explain.logic.calls import call_of, step_of, turn_of
from turnloom.explain.logic.words import words
from turnloom.explain.spec.timeline import Row
from turnloom.guards.events import SelectionMade
from turnloom.kernel.values import preview
from turnloom.lifecycle import events as lifecycle
from turnloom.log.events import ENDS, RunResumed
from turnloom.log.spec import Event


class Rows:
    """The rows so far, by what they are about: a turn, a call, a question, or an event alone.

    What belongs to no turn by its id stands in the turn that goes on, unless turns may overlap.
    """

    def __init__(self, handlers: "Handlers", *, overlapping: bool = False) -> None:
        self._handlers = handlers
        self._overlapping = overlapping
        self.turns = 0
        self.usage = Usage()
        self._rows: dict[str, Row] = {}
        self._paths: dict[str, tuple[int, ...]] = {}
        self._asked: dict[str, int] = {}
        self._models: dict[str, list[str]] = {}
        self._notes: dict[str, str] = {}
        self._within: dict[str, str] = {}
        self._turn = ""
        self._began: datetime | None = None

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def in_order(self) -> tuple[Row, ...]:
        """All rows as they began, but each within what it stands in."""
        return tuple(self._rows[key] for key in sorted(self._paths, key=self._paths.__getitem__))

    def take(self, event: Event) -> None:
        """Take in the next event."""
        self._began = self._began or event.at
        if event.kind in ENDS:
            self._end(event, self._began)
        elif handle := self._handlers.get(event.kind):
            handle(self, event, event.data)

    def add(self, key: str, event: Event, what: str, who: str, **more: Any) -> None:
        """Add a row, within the call or turn that the event belongs to."""
        path = (*self._paths.get(self._around(key, event), ()), event.seq)
        self._paths[key] = path
        self._rows[key] = Row(event.seq, what, who, event.at, depth=len(path) - 1, **more)

    def _around(self, key: str, event: Event) -> str:
        """What an event stands in: the call that left it, its step, its turn, or the turn that goes
        on."""
        call, step, turn = call_of(event), step_of(event), turn_of(event)
        if call != key and call in self._paths:
            return call
        if key in self._within or step is not None and step != key:
            return self._within.get(key, step or "")
        return self._turn if turn is None else f"t{turn}"

    def place(self, key: str, within: str) -> None:
        """Have a row that is about to come stand in another one."""
        self._within[key] = within

    def announce(self, key: str, note: str) -> None:
        """Say something in a row that is about to come."""
        self._notes[key] = note

    def fill(self, key: str, **more: Any) -> None:
        """Say more in a row."""
        if key in self._rows:
            self._rows[key] = msgspec.structs.replace(self._rows[key], **more)

    def extend(self, key: str, note: str) -> None:
        """Say more behind what a row says already."""
        if key in self._rows:
            self.fill(key, note=f"{self._rows[key].note}{note}")

    def close(self, key: str, event: Event, note: str = "") -> None:
        """Complete a row: it took until now."""
        if key in self._rows:
            row = self._rows[key]
            took = (event.at - row.at).total_seconds()
            self.fill(key, seconds=took, note=note or row.note)

    def begin_turn(self, event: Event, fact: agents.TurnStarted) -> None:
        """A turn begins; what follows stands in it."""
        self.turns += 1
        key = f"t{fact.turn}"
        self.add(key, event, f"turn {fact.turn}", fact.agent, note=self._notes.pop(key, ""))
        self._turn = "" if self._overlapping else key

    def end_turn(self, event: Event, fact: agents.TurnFinished) -> None:
        """A turn ends."""
        key = f"t{fact.turn}"
        asked = self._asked.get(key, 0)
        notes = [note] if key in self._rows and (note := self._rows[key].note) else []
        notes += [f"{asked} model calls"] if asked > 1 else []
        notes += self._models.get(key, [])
        notes += [f"{fact.status} {fact.error}".strip()] if fact.status != "done" else []
        self.close(key, event, ", ".join(notes))
        self._turn = ""

    def spend(self, key: str, usage: Usage, model: str) -> None:
        """Count what a model call used, for its row and for the run, and keep who answered."""
        self.usage += usage
        self._asked[key] = self._asked.get(key, 0) + 1
        if model and model not in self._models.setdefault(key, []):
            self._models[key].append(model)
        if key in self._rows:
            self.fill(key, usage=(self._rows[key].usage or Usage()) + usage)

    def _end(self, event: Event, began: datetime) -> None:
        took = (event.at - began).total_seconds()
        what = event.kind.removeprefix("run.")
        note = words(event)
        self.add(event.id, event, what, event.actor, seconds=took, usage=self.usage, note=note)


def _on_frame(rows: Rows, event: Event, fact: FrameAssembled) -> None:
    rows.fill(f"t{fact.turn}", tokens=fact.tokens)


def _on_called(rows: Rows, event: Event, fact: agents.ModelCalled) -> None:
    if fact.agent == SELECTOR:
        rows.add(call_of(event), event, "pick", SELECTOR)


def _on_answer(rows: Rows, event: Event, fact: agents.ModelAnswered) -> None:
    key = call_of(event) if fact.agent == SELECTOR else f"t{fact.turn}"
    rows.spend(key, fact.usage, fact.model)


def _on_failed(rows: Rows, event: Event, fact: agents.ModelFailed) -> None:
    if fact.agent == SELECTOR:
        rows.close(call_of(event), event, words(event))


def _on_picked(rows: Rows, event: Event, fact: agents.SpeakerPicked) -> None:
    rows.close(call_of(event), event, words(event))


def _on_drawn(rows: Rows, event: Event, fact: agents.ChanceDrawn) -> None:
    rows.add(event.id, event, "draw", "chance", note=words(event))


def _on_tool(rows: Rows, event: Event, fact: agents.ToolCalled) -> None:
    rows.add(call_of(event), event, "tool", fact.tool)


def _on_returned(rows: Rows, event: Event, fact: agents.ToolReturned) -> None:
    rows.close(call_of(event), event, f"returned {preview(fact.result)}")


def _on_tool_failed(rows: Rows, event: Event, fact: agents.ToolFailed) -> None:
    key = call_of(event)
    if key not in rows:  # nobody could call it
        rows.add(key, event, "tool", fact.tool)
    rows.close(key, event, f"failed: {fact.error}: {fact.message}")


def _on_offered(rows: Rows, event: Event, fact: agents.ToolsOffered) -> None:
    tools = ", ".join(tool.name for tool in fact.tools)
    note = f"failed: {fact.error}" if fact.error else f"offers {tools or 'nothing'}"
    rows.add(event.id, event, "tools", fact.server, note=note)


def _on_hook(rows: Rows, event: Event, fact: lifecycle.LifecycleToolCall) -> None:
    note = f"{fact.trigger}{', restored' if fact.restored else ''}"
    rows.add(call_of(event), event, "hook", fact.hook, note=note)


def _on_hook_end(
    rows: Rows,
    event: Event,
    fact: lifecycle.LifecycleToolResult | lifecycle.LifecycleToolError,
) -> None:
    key = call_of(event)
    if key not in rows:
        rows.add(key, event, "hook", fact.hook)
    again = f", {fact.attempts} attempts" if fact.attempts > 1 else ""
    again += ", restored" if fact.restored else ""
    note = f"{fact.trigger}{again}, {_hook_said(fact)}"
    rows.fill(key, seconds=fact.elapsed_ms / 1000, note=note)


def _hook_said(fact: lifecycle.LifecycleToolResult | lifecycle.LifecycleToolError) -> str:
    if isinstance(fact, lifecycle.LifecycleToolError):
        return f"failed: {fact.error}: {fact.message}"
    return f"skipped: {fact.result}" if fact.status == "skipped" else fact.status


def _on_message_hook(rows: Rows, event: Event, fact: lifecycle.MessageHookCalled) -> None:
    rows.add(call_of(event), event, "hook", fact.function, note=fact.hook_type)


def _on_message_hooked(rows: Rows, event: Event, fact: lifecycle.MessageHooked) -> None:
    rows.close(call_of(event), event, f"{fact.hook_type}, success")


def _on_message_hook_failed(rows: Rows, event: Event, fact: lifecycle.MessageHookFailed) -> None:
    note = f"{fact.hook_type}, failed: {fact.error}: {fact.message}"
    rows.close(call_of(event), event, note)


def _on_question(rows: Rows, event: Event, fact: agents.QuestionAsked) -> None:
    rows.add(fact.question, event, "question", fact.to, note=fact.prompt)


def _on_answered(rows: Rows, event: Event, fact: agents.QuestionAnswered) -> None:
    rows.close(fact.question, event, words(event))


def _on_expired(rows: Rows, event: Event, fact: agents.QuestionExpired) -> None:
    rows.close(fact.question, event, words(event))


def _on_route(rows: Rows, event: Event, fact: RouteDecided) -> None:
    who = f"{fact.source or 'start'} → {fact.target}"
    rows.add(event.id, event, "route", who, note=fact.reason)


def _on_selected(rows: Rows, event: Event, fact: SelectionMade) -> None:
    rows.add(event.id, event, "selection", fact.chosen or "nobody", note=words(event))


def _on_resumed(rows: Rows, event: Event, fact: RunResumed) -> None:
    changed = f"changed since: {', '.join(fact.changed_code)}" if fact.changed_code else ""
    rows.add(event.id, event, "resumed", event.actor, note=changed)


# What is done with events, by their kind.
Handlers = Mapping[str, Callable[[Rows, Event, Any], None]]

HANDLERS: Handlers = {
    agents.TurnStarted.kind: Rows.begin_turn,
    FrameAssembled.kind: _on_frame,
    agents.ModelCalled.kind: _on_called,
    agents.ModelAnswered.kind: _on_answer,
    agents.ModelFailed.kind: _on_failed,
    agents.SpeakerPicked.kind: _on_picked,
    agents.ChanceDrawn.kind: _on_drawn,
    agents.ToolCalled.kind: _on_tool,
    agents.ToolReturned.kind: _on_returned,
    agents.ToolFailed.kind: _on_tool_failed,
    agents.ToolsOffered.kind: _on_offered,
    lifecycle.LifecycleToolCall.kind: _on_hook,
    lifecycle.LifecycleToolResult.kind: _on_hook_end,
    lifecycle.LifecycleToolError.kind: _on_hook_end,
    lifecycle.MessageHookCalled.kind: _on_message_hook,
    lifecycle.MessageHooked.kind: _on_message_hooked,
    lifecycle.MessageHookFailed.kind: _on_message_hook_failed,
    agents.TurnFinished.kind: Rows.end_turn,
    agents.QuestionAsked.kind: _on_question,
    agents.QuestionAnswered.kind: _on_answered,
    agents.QuestionExpired.kind: _on_expired,
    RouteDecided.kind: _on_route,
    SelectionMade.kind: _on_selected,
    RunResumed.kind: _on_resumed,
}
