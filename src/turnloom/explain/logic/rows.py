"""The rows of a timeline, as they grow with the events."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from turnloom.agents import events as agents
from turnloom.agents.spec import Usage
from turnloom.explain.logic.costs import added, cost_of_call
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.frames import call_of, step_of, turn_of
from turnloom.explain.spec.cost import Cost
from turnloom.explain.spec.timeline import TimelineRow
from turnloom.guards.spec import Price
from turnloom.log.events import ENDS, RunRetried
from turnloom.log.spec import Event


class Rows:
    """The rows so far, by key: of a turn, a call, a question or an event.

    An event without a turn in its id belongs to the open turn, unless turns may overlap.
    """

    def __init__(
        self, handlers: "Handlers", prices: Mapping[str, Price], *, overlapping: bool = False
    ) -> None:
        self._handlers = handlers
        self._prices = prices
        self._overlapping = overlapping
        self.cost: Cost | None = None
        self.turns = 0
        self.usage = Usage()
        self._rows: dict[str, TimelineRow] = {}
        self._paths: dict[str, tuple[int, ...]] = {}
        self._asked: dict[str, int] = {}
        self._retries: Counter[str] = Counter()
        self._models: dict[str, list[str]] = {}
        self._notes: dict[str, str] = {}
        self._within: dict[str, str] = {}
        self._ended: dict[str, int] = {}
        self._interrupted: dict[str, TimelineRow] = {}
        self._turn = ""
        self._began: datetime | None = None

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def in_order(self) -> tuple[TimelineRow, ...]:
        """All rows in the order they began, nested."""
        return tuple(self._rows[key] for key in sorted(self._paths, key=self._paths.__getitem__))

    def take(self, event: Event) -> None:
        """Take in the next event."""
        self._began = self._began or event.at
        if isinstance(event.data, RunRetried):
            self._set_aside(event, event.data)
        elif self._interrupted:
            self._enter_again(event)
        if event.kind in ENDS:
            self._end(event, self._began)
        elif handle := self._handlers.get(event.kind):
            handle(self, event, event.data)

    def _set_aside(self, event: Event, fact: RunRetried) -> None:
        """Keep the rows that a retry voids, or whose ends it voids, beside those of what is done
        again."""
        voided = {seq for first, last in fact.voided for seq in range(first, last + 1)}
        for key, row in [*self._rows.items()]:
            if not voided & {row.seq, self._ended.get(key, row.seq)}:
                continue
            before = f"{key}@{event.seq}"
            self._rows[before], self._paths[before] = self._rows.pop(key), self._paths.pop(key)
            for counts in (self._asked, self._models, self._retries, self._ended):
                counts.pop(key, None)
            if row.seq not in voided:
                self._interrupted[key] = row
        self._turn = ""

    def _enter_again(self, event: Event) -> None:
        """Add rows for the step and the turn of an event that were interrupted before a retry."""
        turn = turn_of(event)
        for key in (step_of(event) or "", "" if turn is None else f"t{turn}", call_of(event)):
            self._reopen(key, event)

    def _reopen(self, key: str, event: Event) -> None:
        row = self._interrupted.pop(key, None)
        if row is not None:
            self.add(key, event, row.what, row.who, note="again")

    def add(self, key: str, event: Event, what: str, who: str, **more: Any) -> None:
        """Add a row inside the call or turn of the event."""
        path = (*self._paths.get(self._around(key, event), ()), event.seq)
        self._paths[key] = path
        self._rows[key] = TimelineRow(event.seq, what, who, event.at, depth=len(path) - 1, **more)

    def _around(self, key: str, event: Event) -> str:
        """The key of the enclosing row: call, step, turn, or the open turn."""
        call, step, turn = call_of(event), step_of(event), turn_of(event)
        if call != key and call in self._paths:
            return call
        if key in self._within or step is not None and step != key:
            return self._within.get(key, step or "")
        return self._turn if turn is None else f"t{turn}"

    def place(self, key: str, within: str) -> None:
        """Nest a row that comes later inside another one."""
        self._within[key] = within

    def announce(self, key: str, note: str) -> None:
        """Set the first note of a row that comes later."""
        self._notes[key] = note

    def fill(self, key: str, **more: Any) -> None:
        """Replace fields of a row."""
        if key in self._rows:
            self._rows[key] = msgspec.structs.replace(self._rows[key], **more)

    def extend(self, key: str, note: str) -> None:
        """Append to the note of a row."""
        if key in self._rows:
            self.fill(key, note=f"{self._rows[key].note}{note}")

    def close(self, key: str, event: Event, note: str = "") -> None:
        """Set the duration of a row, and its note."""
        self._reopen(key, event)
        if key in self._rows:
            row, self._ended[key] = self._rows[key], event.seq
            took = (event.at - row.at).total_seconds()
            notes = (note or row.note, *self._retried(key))
            self.fill(key, seconds=took, note=", ".join(filter(None, notes)))

    def begin_turn(self, event: Event, fact: agents.TurnStarted) -> None:
        """Add the row of a turn; following rows are nested in it."""
        self.turns += 1
        key = f"t{fact.turn}"
        self.add(key, event, f"turn {fact.turn}", fact.agent, note=self._notes.pop(key, ""))
        self._turn = "" if self._overlapping else key

    def end_turn(self, event: Event, fact: agents.TurnFinished) -> None:
        """Close the row of a turn."""
        key = f"t{fact.turn}"
        asked = self._asked.get(key, 0)
        notes = [note] if key in self._rows and (note := self._rows[key].note) else []
        notes += [f"{asked} model calls"] if asked > 1 else []
        notes += self._models.get(key, [])
        notes += [f"{fact.status} {fact.error}".strip()] if fact.status != "done" else []
        self.close(key, event, ", ".join(notes))
        self._turn = ""

    def retry(self, key: str) -> None:
        """Count a retried attempt of a model call."""
        self._retries[key] += 1

    def _retried(self, key: str) -> list[str]:
        retries = self._retries[key]
        return [f"{retries} {'retry' if retries == 1 else 'retries'}"] if retries else []

    def spend(self, key: str, call: agents.ModelAnswered) -> None:
        """Add the usage and the cost of a model call to its row and to the run, and note the
        model."""
        usage, model = call.usage, call.model
        cost = cost_of_call(call, self._prices)
        self.usage, self.cost = self.usage + usage, added(self.cost, cost)
        self._asked[key] = self._asked.get(key, 0) + 1
        if model and model not in self._models.setdefault(key, []):
            self._models[key].append(model)
        if key in self._rows:
            row = self._rows[key]
            self.fill(key, usage=(row.usage or Usage()) + usage, cost=added(row.cost, cost))

    def _end(self, event: Event, began: datetime) -> None:
        took = (event.at - began).total_seconds()
        what = event.kind.removeprefix("run.")
        note = describe(event.data)
        used = {"usage": self.usage, "cost": self.cost}
        self.add(event.id, event, what, event.actor, seconds=took, note=note, **used)


# Handlers of events by kind.
Handlers = Mapping[str, Callable[[Rows, Event, Any], None]]
