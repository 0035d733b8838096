"""Drive recorded runs again with an edited definition."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import msgspec

from turnloom.agents.events import QuestionAnswered, TurnFinished, TurnStarted, UserText
from turnloom.agents.spec import WORKFLOW
from turnloom.flow.events import StepStarted
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.folding import TIMEOUT
from turnloom.kernel.contained import error_name
from turnloom.kernel.durations import later
from turnloom.kernel.threads import UserCalls, counted, on_behalf_of
from turnloom.kernel.values import error_text
from turnloom.log.events import RunRetried, RunStarted
from turnloom.log.spec import Event, Fact
from turnloom.runtime.backtest.filling import RecordedAnswers
from turnloom.runtime.backtest.first_values import edited_values, suppressed_names
from turnloom.runtime.backtest.plans import DeclaredAgents
from turnloom.runtime.backtest.spec import BacktestedRun, RecordedCase
from turnloom.runtime.backtest.world import EditedWorld
from turnloom.runtime.drive.intake import expirations
from turnloom.runtime.journal import Journal
from turnloom.runtime.logic import ENDED
from turnloom.runtime.replay.idle import IdleSelector, run_until_over
from turnloom.runtime.replay.reading import RecordedRun
from turnloom.runtime.replay.record import BOUNDARIES, CLOCK, Stopped, is_mail
from turnloom.runtime.replay.replaying import Replayer, is_first
from turnloom.runtime.replay.spec import RecordedLog, may_change_definition
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextLoaded, ContextSuppressed, TimerSet
from turnloom.variables.logic.conditions import UndecidedCondition

# The ids of the message that opens a conversation, and of a flow's timeout.
OPENING, DEADLINE = "opening", "timeout"


def backtest_all(cases: Iterable[RecordedCase]) -> list[BacktestedRun]:
    """Backtest runs in a loop of their own."""

    async def each(selector: IdleSelector) -> list[BacktestedRun]:
        return [await _backtest(selector, case) for case in cases]

    return run_until_over(each)


async def _backtest(selector: IdleSelector, case: RecordedCase) -> BacktestedRun:
    calls, started = UserCalls(), cast(RunStarted, case.events[0].data)
    world = EditedWorld(case.events, calls)
    with counted(calls), on_behalf_of(started.tenant):
        tester = Backtester(selector, case, world)
        try:
            await tester.replay()
        except Stopped:
            pass  # the record ends, or no longer applies
        except UndecidedCondition as error:
            tester.note_undecided(error)
        except Exception as error:  # noqa: BLE001 - recorded: one run must not end the others
            world.end_at(f"it cannot be decided further: {error_name(error)}: {error_text(error)}")
    world.close()
    return tester.result()


class EditedJournal(Journal):
    """A journal that stores nothing: what is recorded is compared with the record of the run."""

    record_of: EditedWorld

    def _accept(self, event: Event, id: str) -> Event:
        return self.record_of.accept(event)


class EditedRun(RecordedRun):
    """A run that gets its messages and its time from the record, as far as they apply."""

    record_of: EditedWorld  # pyright: ignore[reportIncompatibleVariableOverride]

    def _take_one(self) -> bool:
        event = self.record_of.next
        if event is not None and is_mail(event) and not self._applies(event):
            return False
        return super()._take_one()

    def _applies(self, event: Event) -> bool:
        """Whether a message can be taken in: an answer needs its question."""
        fact = event.data
        if not isinstance(fact, QuestionAnswered):
            return True
        return fact.question in self.journal.state.questions

    def expire(self) -> None:
        """Record what has expired by the time of the next event: as in the record, and what the
        record does not have."""
        event = self.record_of.next
        if event is None:
            return
        if event.actor == CLOCK:
            super().expire()
            return
        for id, fact in [*expirations(self.journal)]:
            if not self.record_of.has(id):
                self.journal.record(id, fact, actor=CLOCK)


class Backtester(Replayer):
    """Drives one recorded run again, with an edited definition."""

    _journal_of = EditedJournal
    _run_of = EditedRun

    def __init__(self, selector: IdleSelector, case: RecordedCase, world: EditedWorld) -> None:
        self._world = world
        self._agents = DeclaredAgents(case)
        self._threshold = case.threshold
        changes = sum(may_change_definition(event.data) for event in case.events)
        log = RecordedLog(
            case.loaded,
            case.events,
            [case.loaded] * changes,
            case.secrets,
            has_components=case.has_components,
        )
        super().__init__(selector, log, world)
        budget, first, last = case.loaded.guards.budget, case.events[0], case.events[-1]
        most = budget.wall_time if budget else None
        if most is not None and (last.at - first.at).total_seconds() > most:
            world.findings.is_assumed = True  # a call might have been cut off

    def _read(self, loaded: LoadedWorkflow) -> Any:
        if loaded.embedder is not None:
            loaded = replace(loaded, embedder=_UnknownEmbedder(loaded.embedder, self._world))
        loaded, journal = super()._read(loaded)
        RecordedAnswers(self._world, journal, loaded, self._agents, self._threshold)
        return loaded, journal

    def result(self) -> BacktestedRun:
        """What was found."""
        findings, world = self._world.findings, self._world
        started: RunStarted = world.events[0].data
        turns = sum(isinstance(event.data, TurnFinished) for event in world.written)
        return BacktestedRun(
            world.events[0].run,
            started.workflow,
            started.form,
            turns,
            compared=dict(findings.compared),
            counts=dict(findings.counts),
            first=findings.first_in_full(world.events, self._journal.state),
            end=findings.end,
            last_frame=findings.last_in_full(world.written),
        )

    def note_undecided(self, error: UndecidedCondition) -> None:
        """Note that a hook's condition depends on something unknown."""
        unknown = [f"{each.what} ({each.why})" for each in error.unknown]
        try:
            self._world.undecide("a condition", unknown)
        except Stopped:
            pass  # it always stops

    def _past(self) -> Sequence[Event]:
        """The events that the edited definition led to so far."""
        return self._world.written

    async def replay(self) -> None:
        """Drive a run from its first event, as far as the record applies."""
        world = self._world
        self._begin()
        while (event := world.next) is not None and world.findings.end is None:
            if self._is_over(event):
                return
            before = self._progress()
            if isinstance(event.data, BOUNDARIES):
                self._cross(event)
                continue
            await self._live.take_in()
            if not self._is_at_boundary():
                await self._drive()
            if self._progress() == before and world.findings.end is None:
                self._pass_over(event)

    def _is_at_boundary(self) -> bool:
        """Whether the record ends here, or another process continued the run."""
        event = self._world.next
        return event is None or isinstance(event.data, BOUNDARIES)

    def _progress(self) -> tuple[int, int]:
        return self._world.position, len(self._world.written)

    def _is_over(self, event: Event) -> bool:
        """Whether the edited run ended; that is where the comparison ends, if the record has more
        turns or steps."""
        if self._journal.state.status not in ENDED or isinstance(event.data, RunRetried):
            return False
        self._world.end_early(self._journal.state.status)
        return True

    def _pass_over(self, event: Event) -> None:
        """Pass over an event that nothing leads to; stop at a turn, a step or an answer."""
        match event.data:
            case TurnStarted(turn=turn, agent=agent):
                self._world.end_at(f"{agent} would not have spoken", turn)
            case StepStarted(step=step):
                self._world.end_at(f"step {step!r} would not have run")
            case QuestionAnswered(question=question):
                self._world.end_at(f"question {question!r} would not have been asked")
            case _:
                self._world.skip()

    def _begin(self) -> None:
        """Record the first facts, as the edited definition makes them of the record."""
        world = self._world
        while (event := world.next) is not None and is_first(event):
            fact = self._edited(event)
            if fact is None:
                world.skip()
            else:
                self._journal.record(event.id, fact, event.actor)
        self._add_firsts()
        super()._begin()

    def _edited(self, event: Event) -> Fact | None:
        """A first fact, as the edited definition makes it; None if it has none."""
        fact = event.data
        match fact:
            case ContextLoaded():
                return edited_values(self._loaded, fact, self._gates())
            case ContextSuppressed(reason=reason):
                names = suppressed_names(self._loaded, reason)
                return ContextSuppressed(names, reason) if names else None
            case UserText() if event.id == OPENING:
                text = self._loaded.opening
                return msgspec.structs.replace(fact, text=text) if text else None
            case TimerSet() if event.id == DEADLINE:
                return self._timeout(event.at, fact)
            case _:
                return super()._first(event)

    def _add_firsts(self) -> None:
        """Record first facts that only the edited definition has."""
        world, recorded = self._world, {event.id for event in self._world.events}
        start = world.events[0].at
        if self._loaded.opening and OPENING not in recorded:
            self._journal.record(OPENING, UserText(WORKFLOW, self._loaded.opening))
        timer = self._timeout(start, None)
        if timer is not None and DEADLINE not in recorded:
            self._journal.record(DEADLINE, timer, CLOCK)

    def _gates(self) -> Sequence[str]:
        """The reasons for which the deployment of the run had no variables of a kind."""
        events = self._world.events
        return [e.data.reason for e in events[:10] if isinstance(e.data, ContextSuppressed)]

    def _timeout(self, start: datetime, recorded: TimerSet | None) -> TimerSet | None:
        """The timeout of a flow, from its start on."""
        form = self._loaded.workflow
        seconds = form.plan.timeout if isinstance(form, FlowForm) else None
        if seconds is None:
            return None
        if recorded is not None and abs((recorded.due - start).total_seconds() - seconds) < 1e-3:
            return recorded
        return TimerSet(TIMEOUT, later(start, seconds))


class _UnknownEmbedder:
    """Stands for an embedder: what it would say is unknown."""

    def __init__(self, embedder: Any, world: EditedWorld) -> None:
        self.name = embedder.name
        self.version = embedder.version
        self._world = world

    async def embed(self, texts: Sequence[str]) -> Any:
        """End the comparison: whether this is a loop is undecided."""
        self._world.undecide("whether this is a loop", ["the similarity of texts"])
