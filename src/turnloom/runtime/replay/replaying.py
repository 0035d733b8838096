"""Replay runs: the loop that drove them drives them again, and their logs are the world."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from turnloom.agents.events import TurnFinished
from turnloom.agents.spec import Answer, Task
from turnloom.board.events import ArtifactPublished
from turnloom.kernel.threads import UserCalls, counted, on_behalf_of
from turnloom.log.events import RunForked, RunPaused, RunRetried, RunStarted
from turnloom.log.logic import ranges, standing
from turnloom.log.spec import Event, Fact, RunKey
from turnloom.runs.retries import Redo
from turnloom.runtime.boards import UNTAKEN, end_untaken
from turnloom.runtime.drive.intake import park, resting
from turnloom.runtime.drive.live import RunResources
from turnloom.runtime.drive.loop import Loop
from turnloom.runtime.forking import FORK
from turnloom.runtime.logic import fresh
from turnloom.runtime.replay.idle import IdleSelector, run_until_over
from turnloom.runtime.replay.reading import (
    JournalReader,
    RecordedClock,
    RecordedComponent,
    RecordedObjects,
    RecordedRun,
    RecordedTime,
)
from turnloom.runtime.replay.record import BOUNDARIES, RecordedWorld, Stopped
from turnloom.runtime.replay.secrets import fact_of, known_secrets
from turnloom.runtime.replay.spec import RecordedLog, ReplayedRun, may_change_definition
from turnloom.runtime.retrying import fitted, record_redo, stop_of
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow
from turnloom.variables.events import ContextLoaded
from turnloom.variables.logic.resolution import resolve_again
from turnloom.variables.logic.secrets import NO_SECRETS

# Ids of the first facts of a run, besides messages.
_FIRST = frozenset({"start", "context", "state", "timeout", "opening", "given"})
_SUPPRESSED = "context/suppressed."
_COLLECTS = "rest@0"


def replay_all(logs: Iterable[RecordedLog]) -> list[ReplayedRun]:
    """Replay runs in a loop of their own."""

    async def each(selector: IdleSelector) -> list[ReplayedRun]:
        return [await _replay(selector, log) for log in logs]

    return run_until_over(each)


async def _replay(selector: IdleSelector, log: RecordedLog) -> ReplayedRun:
    """Replay a run; once more with placeholders, if it differs with the secrets that are read now:
    they may be others than those of then."""
    found = await _replay_once(selector, log)
    if found.difference is None or not log.secrets:
        return found
    other = await _replay_once(selector, replace(log, secrets=NO_SECRETS))
    return other if other.difference is None else found


async def _replay_once(selector: IdleSelector, log: RecordedLog) -> ReplayedRun:
    events, loaded = log.events, log.loaded
    calls, started = UserCalls(), cast(RunStarted, events[0].data)
    record = RecordedWorld(events, calls)
    with counted(calls), on_behalf_of(started.tenant):
        try:
            await Replayer(selector, log, record).replay()
        except Stopped:
            pass  # the log ends, or differs
    done = events[: record.position]
    turns = sum(isinstance(event.data, TurnFinished) for event in done)
    return ReplayedRun(
        events[-1].run,
        started.workflow,
        started.form,
        len(events),
        same=record.position,
        turns=turns,
        difference=record.difference,
        changed_code=loaded.changed_code,
    )


class Replayer:
    """Drives one run again, with a record as its world."""

    _journal_of = JournalReader
    _run_of = RecordedRun

    def __init__(self, selector: IdleSelector, log: RecordedLog, record: RecordedWorld) -> None:
        self._selector = selector
        self._log = log
        self._record = record
        self._loaded, self._journal = self._read(log.loaded)
        self._changes = 0
        self._live = self._open()

    def _read(self, loaded: LoadedWorkflow) -> tuple[LoadedWorkflow, JournalReader]:
        """A definition, and a journal that reads the log with it."""
        record = self._record
        staff = {name: self._recorded(each) for name, each in loaded.staff.items()}
        loaded = replace(loaded, staff=staff)
        first = record.events[0]
        run = RunKey(first.data.tenant, first.run)
        clock = RecordedClock(record)
        journal = self._journal_of(
            cast(Any, None),
            clock,
            loaded,
            fresh(run, loaded.workflow, loaded.guards),
            known_secrets(loaded.workflow.variables, self._log.secrets),
            objects=RecordedObjects(record),
        )
        journal.record_of = record
        journal.world = record
        journal.time = RecordedTime(clock)
        record.journal = journal
        return loaded, journal

    def _recorded(self, agent: AgentRuntime) -> AgentRuntime:
        """An agent without what it shares with other runs, and without code around its effects. It
        needs no engine: none is asked."""
        is_wrapped = self._log.has_components or agent.components
        components = (RecordedComponent(self._record),) if is_wrapped else ()
        engines = agent.engines or (_never_asked,)
        return replace(agent, most=None, components=components, engines=engines)

    def _open(self) -> RecordedRun:
        nothing: Any = None
        means = RunResources(
            nothing,
            nothing,
            nothing,
            nothing,
            log=cast(Any, _PastLog(self._past)),
            selecting=cast(Any, _FollowsLog()),
            entropy=cast(Any, _NoChance()),
            hear=None,
            post=None,
            rooms={},
        )
        live = self._run_of(self._journal, self._loaded, means, 0, self._record.events[0].at)
        live.record_of = self._record
        return live

    def _past(self) -> Sequence[Event]:
        """The events before the present, as they are stored."""
        return self._record.stored[: self._record.position]

    async def replay(self) -> None:
        """Replay a run from its first event."""
        record = self._record
        self._begin()
        while (event := record.next) is not None:
            position = record.position
            if isinstance(event.data, BOUNDARIES):
                self._cross(event)
                continue
            await self._live.take_in()
            event = self._record.next
            if event is None or isinstance(event.data, BOUNDARIES):
                continue
            if record.position > position and isinstance(event.data, RunPaused):
                park(self._journal)  # it was taken in by a process that did not drive the run
                continue
            await self._drive()
            if record.difference is not None:
                return
            if record.position == position:
                record.diverge(None)
                return

    def _cross(self, event: Event) -> None:
        """Continue as another process did, or after a retry: without what no longer counts."""
        redo, fact = Redo(frozenset()), event.data
        if isinstance(fact, RunRetried):
            redo = self._redo(fact)
            fact = msgspec.structs.replace(fact, voided=ranges(redo.voided))
        if isinstance(fact, RunForked):  # ids are derived from the id of the run
            self._journal.state.run = event.run
        self._journal.record(event.id, fact, event.actor)
        if may_change_definition(fact):
            run = self._journal.state.run
            self._loaded, self._journal = self._read(self._log.changed[self._changes])
            self._changes += 1
            self._journal.catch_up(self._past())
            self._journal.state.run = run
        while (given := self._record.next) is not None and given.actor == FORK:
            change = fact_of(self._journal, given)
            self._journal.record(given.id, change, FORK, derives=given.data.name != "chat_id")
        self._live = self._open()
        record_redo(self._journal, redo, event.seq - 1)

    def _redo(self, fact: RunRetried) -> Redo:
        """What a retry does again, decided again."""
        events = standing(self._past())
        what, _, since = fact.since.partition(" ")
        stop = stop_of(self._loaded, self._journal.run, events)
        at = int(since) if what == "event" else None
        wanted = int(since) if what == "turn" else since or None
        redo = self._loaded.workflow.redo(events, stop, wanted if at is None else None, at)
        if redo is None:
            voided = {seq for first, last in fact.voided for seq in range(first, last + 1)}
            return Redo(voided)
        present = self._log.changed[self._changes].workflow
        return fitted(self._loaded.workflow, present, events, redo)

    def _begin(self) -> None:
        """Take the first facts as the log has them."""
        journal, record = self._journal, self._record
        while (event := record.next) is not None and is_first(event):
            journal.record(event.id, self._first(event), event.actor)
        if event is None:
            return
        if event.id == _COLLECTS:
            journal.record(event.id, resting(journal, None))
        elif isinstance(event.data, ArtifactPublished):
            journal.record(event.id, fact_of(journal, event), event.actor)
            if record.next is not None and record.next.data == UNTAKEN:
                end_untaken(journal)

    def _first(self, event: Event) -> Fact:
        """A first fact; values of variables are made again, as far as the log has their source."""
        fact = event.data
        if not isinstance(fact, ContextLoaded):
            return fact_of(self._journal, event)
        variables = self._loaded.workflow.variables
        values = tuple(resolve_again(variables, each) for each in fact.values)
        return ContextLoaded(values)

    async def _drive(self) -> None:
        record = self._record
        loop = Loop(self._live)
        record.begin(loop.rouse)
        self._selector.on_idle = record.on_idle
        drive, over = asyncio.create_task(loop.drive()), asyncio.create_task(record.over.wait())
        try:
            await asyncio.wait([drive, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            record.end()
            self._selector.on_idle = None
            over.cancel()
            drive.cancel()
            await asyncio.wait([drive, over])
        error = None if drive.cancelled() else drive.exception()
        if error is not None and not isinstance(error, Stopped):
            raise error
        record.over.clear()


def is_first(event: Event) -> bool:
    """Whether an event is one of the first facts of a run, which its start records."""
    return event.id in _FIRST or event.id.startswith(_SUPPRESSED)


class _PastLog:
    """The log of a run up to the present of its replay."""

    def __init__(self, past: Callable[[], Sequence[Event]]) -> None:
        self._past = past

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events before the present."""
        return self._past()[after:]


async def _never_asked(task: Task) -> Answer:
    """Stand for an engine that this program lacks."""
    raise AssertionError("a replay asks no engine")


class _FollowsLog:
    """A selector that is asked nothing."""

    follows_log = True


class _NoChance:
    """Chance decides delays only, which the log has."""

    def below(self, limit: int) -> int:
        """The first of the choices."""
        return 0
