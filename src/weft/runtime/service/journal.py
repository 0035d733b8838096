"""The one writer of a run's log, and the state that follows from it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar, cast

from weft.agents.spec import RunState, Workflow
from weft.assembly.logic import View
from weft.errors import Conflict
from weft.log.ports import Clock, Effect, EventLog
from weft.log.spec import Event, Fact, Intent
from weft.runtime.logic import derive, evolve

F = TypeVar("F", bound=Fact)


class Diverged(Exception):
    """What is about to be done is not what the log says was begun."""


class Journal:
    """Records facts of one run and stores them, whole batches at a time.

    A fact counts from the moment it is recorded: the state has it, and what is decided from it
    joins the same batch, at the same instant. `commit` stores the batch; nobody touches the world,
    and nobody outside sees anything, before that. If the log turns out to hold something else, the
    journal is void.
    """

    def __init__(self, log: EventLog, clock: Clock, workflow: Workflow, state: RunState) -> None:
        self.workflow = workflow
        self.state = state
        self.views: dict[str, tuple[int, View]] = {}
        self._log = log
        self._clock = clock
        self._stored = state.position
        self._batch: list[Event] = []
        self._at: datetime | None = None
        self._cause: int | None = state.position or None

    def record(self, id: str, fact: Fact, actor: str = "driver") -> Event:
        """Put a fact and everything derived from it on record."""
        event = self._add(id, fact, actor, self._cause)
        self._cause = event.seq
        for change in derive(self.workflow, self.state, event):
            self._add(f"{id}>{change.name}", change, change.writer, event.seq)
        return event

    def keep(self, id: str, make: Callable[[], F], actor: str = "driver") -> F:
        """The fact on record under an id in this turn; if there is none, the one made now."""
        turn = self.state.open
        if turn is not None and id in turn.recorded:
            return cast(F, turn.recorded[id])
        return self.record(id, make(), actor).data

    async def once(self, key: str, effect: Effect, *, intent: Intent) -> Sequence[Fact]:
        """The facts on record under `key`; if none, store the intent, act, and record the outcome.

        Raises:
            Diverged: another request is on record under this key.
        """
        done = self._recorded(key)
        if done:
            return done
        if self.keep(f"{key}?", lambda: intent).request != intent.request:
            raise Diverged(f"{key} was begun with another request than it is repeated with.")
        await self.commit()
        facts = await effect()
        for number, fact in enumerate(facts):
            self.record(f"{key}.{number}", fact)
        return facts

    def _recorded(self, key: str) -> list[Fact]:
        turn = self.state.open
        found: list[Fact] = []
        while turn is not None and (fact := turn.recorded.get(f"{key}.{len(found)}")) is not None:
            found.append(fact)
        return found

    async def commit(self) -> None:
        """Store what was recorded since the last time.

        Raises:
            Conflict: the log holds something else at this place; the journal is void.
        """
        if not self._batch:
            return
        batch, self._batch, self._at = self._batch, [], None
        stored = await self._log.append(self.state.run, batch, self._stored)
        if stored is not batch and list(stored) != batch:
            raise Conflict(f"Run {self.state.run!r} went on elsewhere.")
        self._stored = self.state.position

    def catch_up(self, events: Sequence[Event]) -> None:
        """Fold events that somebody else stored."""
        for event in events:
            evolve(self.workflow, self.state, event)
            self._cause = event.seq
        self._stored = self.state.position

    def _add(self, id: str, fact: Fact, actor: str, cause: int | None) -> Event:
        state = self.state
        if self._at is None:
            self._at = self._clock.now()
        event = Event(
            id,
            state.run,
            state.position + 1,
            self._at,
            fact.kind,
            actor,
            fact,
            cause,
            fact.version,
        )
        evolve(self.workflow, state, event)
        self._batch.append(event)
        return event
