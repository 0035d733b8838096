"""Runs as their users see them: start, events, answer, resume, cancel."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import anyio
from pydantic import BaseModel

from turnloom.agents.events import AnswerRefused, QuestionAnswered, UserText
from turnloom.agents.spec import WORKFLOW, Component, RunState
from turnloom.errors import (
    CodeMissing,
    Conflict,
    DefinitionError,
    LeaseLost,
    PlanChanged,
    RunBusy,
    StoreUnavailable,
    TurnloomError,
    UsageError,
    WorkflowGone,
)
from turnloom.feedback.ports import FeedbackStore
from turnloom.feedback.service import StoredFeedback
from turnloom.flow.events import FlowRewound, StateGiven, StepCompensated, StepCompleted
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.folding import TIMEOUT
from turnloom.flow.logic.migrating import LOST, undoable_in
from turnloom.flow.logic.plans import describe_plan
from turnloom.kernel.digests import digest
from turnloom.kernel.durations import later
from turnloom.kernel.values import canonical
from turnloom.log.events import (
    ENDS,
    CancelRequested,
    RunCancelled,
    RunRetried,
    RunStarted,
)
from turnloom.log.logic import LIFE, in_life, standing, started_of
from turnloom.log.ports import Clock
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, Fact, RunKey
from turnloom.runtime.activity import ActiveDrives
from turnloom.runtime.boards import BoardPorts, BoardRuns
from turnloom.runtime.drive.driver import Driver, Listeners, Stores
from turnloom.runtime.drive.intake import due
from turnloom.runtime.drive.plans import pin, plan_of
from turnloom.runtime.following import Subscriptions
from turnloom.runtime.forking import Forks
from turnloom.runtime.journal import telling
from turnloom.runtime.logic import ENDED
from turnloom.runtime.mail import GRACE, RETRY, BoardRegistry, MailDelivery
from turnloom.runtime.messages import Messages
from turnloom.runtime.observers import Observers
from turnloom.runtime.ports import (
    Backlog,
    Definitions,
    Entropy,
    Plans,
    Scheduler,
    is_shared,
)
from turnloom.runtime.questions import Questions
from turnloom.runtime.retrying import replacement, undriven
from turnloom.runtime.spec import (
    Delivery,
    LimitWait,
    LoadedWorkflow,
    RetryRequest,
    Stop,
    StoredPlan,
)
from turnloom.runtime.summaries import RunSummaries
from turnloom.variables.events import TimerSet
from turnloom.variables.ports import DocumentStore, Environment
from turnloom.variables.service import ContextSource


async def give_up(
    stores: Stores, clock: Clock, observers: Observers, run: RunKey, stop: Stop
) -> bool:
    """Cancel a run without calling any of its code; returns whether it was open.

    Raises:
        RunBusy: another process drives it after all.
    """
    async with stores.claims.claim(run) as fence:
        events = await stores.log.read(run)
        watch = observers.watch(run, events[0].data) if observers else None
        journal = undriven(telling(stores.log, watch), clock, run, fence)
        journal.catch_up(events)
        state = journal.state
        if state.status in ENDED:
            return False
        by, reason = stop.by, stop.reason
        if state.cancel is None:
            journal.record("cancel", CancelRequested(by, reason), by)
        plan = await plan_of(stores.plans, events[0].data)
        for number, fact in enumerate(_lost(standing(events), plan.text if plan else "{}")):
            journal.record(f"lost/{number}", fact)
        journal.record("end", RunCancelled(by, reason), by)
        await journal.commit()
    return True


def _lost(events: Sequence[Event], plan: str) -> Iterator[StepCompensated]:
    """Completed steps that have a compensation which did not run, the last one first."""
    undoable, completed = undoable_in(plan), dict[str, StepCompleted]()
    for event in events:
        match event.data:
            case StepCompleted(cached=False, step=step, place=place) as fact if step in undoable:
                completed[place] = fact
            case StepCompensated(place=place):
                completed.pop(place, None)
            case FlowRewound(kept=kept):
                completed = {place: each for place, each in completed.items() if place in kept}
            case _:
                pass
    for fact in reversed(completed.values()):
        message = f"The code is not there that makes up for step {fact.step!r}."
        yield StepCompensated(fact.step, fact.place, fact.number, "", error=LOST, message=message)


class FlowStart(NamedTuple):
    """A flow, and the initial state of a run of it."""

    loaded: LoadedWorkflow
    state: BaseModel

    @property
    def request(self) -> str:
        """The digest of what the caller gave; defaults, which may be drawn, are not part of it."""
        return digest(canonical(self.state.model_dump(mode="json", exclude_unset=True)))


def first_facts(given: FlowStart, user: str, now: datetime) -> list[tuple[str, Fact, str]]:
    """The first facts of a run of a flow.

    Raises:
        InvalidUpdate: it is not a state of the flow.
    """
    workflow = _flowing(given.loaded)
    facts: list[tuple[str, Fact, str]] = [
        ("state", StateGiven(workflow.states.dump(given.state)), user)
    ]
    if workflow.plan.timeout is not None:
        due = later(now, workflow.plan.timeout)
        facts.append(("timeout", TimerSet(TIMEOUT, due), "clock"))
    return facts


async def pin_flow(plans: Plans, tenant: str, loaded: LoadedWorkflow) -> None:
    """Store a tenant's plan of a flow."""
    plan = _flowing(loaded).plan
    await pin(plans, tenant, plan, describe_plan(plan))


def _flowing(loaded: LoadedWorkflow) -> FlowForm:
    assert isinstance(loaded.workflow, FlowForm)
    return loaded.workflow


# Seconds after the end of a lease until the run is taken over.
MARGIN = 0.01

# Delay before a worker drives a run again that the store did not let it drive.
AGAIN = timedelta(seconds=1)

# The most runs that are woken at once because their wake was missed.
SWEPT = 1000

log = logging.getLogger("turnloom.runs")


@dataclass(frozen=True, slots=True)
class RuntimePorts:
    """The ports that runs need. A wake that was missed for `sweep` seconds is made up for, as
    `backlog` finds it."""

    stores: Stores
    clock: Clock
    entropy: Entropy
    environment: Environment
    documents: DocumentStore
    definitions: Definitions
    scheduler: Scheduler
    feedback: FeedbackStore
    observers: Observers = field(default_factory=Observers)
    components: tuple[Component, ...] = ()
    window: int = 0
    backlog: Backlog | None = None
    sweep: float = 60.0


class Runs:
    """All runs of a store, with their `log`. `following` holds the subscriptions in this process,
    `claims` say which process drives a run, `summaries` lists runs, `questions` are those that are
    open, `forks` begins forks, `drives` are those of this process, and `messages` sends what users
    say by themselves. It drives the runs that were started or resumed here, and those that
    `also_serves` chooses when they get mail or are given back. If it `is_shared`, workers drive the
    runs, and this process drives some only while it serves."""

    def __init__(self, world: RuntimePorts) -> None:
        self._world = world
        self.log = world.stores.log
        self.is_shared = is_shared(world.scheduler)
        self.claims = world.stores.claims
        self.summaries = RunSummaries(world.stores.log, world.scheduler)
        self._context = ContextSource(world.environment, world.documents)
        self._posting = BoardRegistry(world.stores.artifacts)
        watch = self._posting.watch
        self.drives = ActiveDrives()
        self.following = Subscriptions(world.stores.log)
        observe = world.observers.watch if world.observers else None
        listeners = Listeners(self.following, watch, self._posting, observe)
        chance = (world.clock, world.entropy)
        around = world.components, world.window
        self._driver = Driver(
            world.stores, chance, world.definitions, self._context, listeners, *around
        )
        declares = world.definitions.declares
        self.also_serves: Callable[[RunStarted], bool] = _none
        self._mailing = MailDelivery(
            world.stores, world.scheduler, self._driver, declares, serves=self._serves
        )
        self.forks = Forks(
            world.stores,
            chance,
            world.definitions,
            self._context,
            observe=observe,
            wake=self._mailing.wake,
        )
        self.feedback = StoredFeedback(world.feedback, world.stores.log, world.clock)
        self.messages = Messages(
            world.stores.log, world.entropy, world.definitions, self._mailing, self.forks
        )
        self.questions = Questions(world.stores, world.clock, self._mailing)

    async def serve(self, slots: int, limits: Mapping[str, int], grace: float = 0.0) -> None:
        """Drive what is woken here, and wake runs of this program that get mail, until cancelled.
        Then begin no drive, and give back those that neither end nor park within `grace` seconds.
        `limits` gives the number of runs of a tenant that are driven at once, as for a
        scheduler."""
        if not grace:
            await self._serve(slots, limits)
            return
        serving = asyncio.ensure_future(self._serve(slots, limits))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            with anyio.move_on_after(grace, shield=True):
                await self._world.scheduler.drain()
            raise
        finally:
            serving.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({serving})
            if not serving.cancelled():
                serving.result()

    async def _serve(self, slots: int, limits: Mapping[str, int]) -> None:
        world = self._world
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(world.scheduler.serve(self._drive, slots=slots, limits=limits))
                group.create_task(self._mailing.watch())
                if self.is_shared and world.backlog is not None:
                    group.create_task(self._sweep(world.backlog))
        finally:
            self._posting.stop()
            self.following.stop()
            await self._give_back()

    def _serves(self, started: RunStarted) -> bool:
        return self._posting.serves(started) or self.also_serves(started)

    async def _sweep(self, backlog: Backlog) -> None:
        """Wake runs whose wake was missed: a process died between its commit and the wake."""
        while True:
            await asyncio.sleep(self._world.sweep)
            try:
                for run in await backlog.overdue(self._world.sweep, SWEPT):
                    await self._mailing.wake(run)
            except StoreUnavailable as error:
                log.warning("missed wakes are looked for later: %s", error)

    async def _give_back(self) -> None:
        """Wake other processes for unfinished drives, while the store allows."""
        try:
            with anyio.move_on_after(GRACE, shield=True):
                await self._mailing.give_back()
        except TurnloomError as error:
            log.warning("other processes were not notified of released runs: %s", error)

    async def _drive(self, run: RunKey, held: LimitWait | None = None, /) -> datetime | None:
        """Drive a run; its error is raised in its followers only, or the run is driven again, where
        others may have better luck."""
        self.following.clear_error(run)
        self.drives.begin(run)
        begun, is_told = self._mailing.begin(run), self._posting.attends(run)
        try:
            with self._posting.busy(run, self._driver):
                live = await self._driver.drive(run, held)
            state = live.journal.state
            self.following.rest(run, state)
            self._mailing.rest(run, begun, is_over=state.status in ENDED)
            return _earliest(due(live.journal.workflow, state), live.congested)
        except RunBusy:
            if self.is_shared:
                return self._world.clock.now() + RETRY
            return self._mailing.wake_soon(run)
        except CodeMissing:
            raise  # other workers may have it
        except (Conflict, LeaseLost, StoreUnavailable) as error:
            if not self.is_shared:
                return self._fail(run, begun, error, log_it=not is_told)
            log.warning("run %s is driven again soon: %s", run.id, error)
            return self._world.clock.now() + AGAIN
        except Exception as error:  # noqa: BLE001 - raised in the followers of the run
            return self._fail(run, begun, error, log_it=not is_told)
        finally:
            self.drives.end(run)
            self.following.drop_deltas(run)

    def _fail(self, run: RunKey, begun: int, error: Exception, *, log_it: bool) -> None:
        """Raise the error of a drive in its followers."""
        self._mailing.rest(run, begun, is_over=False)
        self.following.fail(run, error, self._driver.trace(run, error), log_it=log_it)
        if self.is_shared:  # the next drive may be elsewhere
            self.following.clear_error(run)

    def board(
        self, name: str, load: Callable[[], LoadedWorkflow], *, user: str, tenant: str
    ) -> BoardRuns:
        """The runs of a board; `load` returns the board as it is declared now."""
        world = self._world
        stores = world.stores
        place = BoardPorts(
            stores.log,
            stores.plans,
            stores.inbox,
            stores.artifacts,
            clock=world.clock,
            entropy=world.entropy,
            starter=self._driver,
            mail=self._mailing,
            activities=self._posting.activities,
            removals=stores.removals,
            is_shared=self.is_shared,
        )
        return self._posting.add(BoardRuns(name, place, load, user, tenant=tenant))

    async def start(
        self, what: str | FlowStart, *, user: str, tenant: str, id: str | None = None
    ) -> RunKey:
        """Start a run of the workflow at a path, or of a flow with a state; returns its key. With
        an `id`, a run that was started so before is not started again.

        Raises:
            Conflict: the run of this id has another workflow, user or initial state.
            DefinitionError: the workflow does not pass its check; nothing was started.
            InvalidUpdate: it is not a state of the flow; nothing was started.
            MissingContext: a required variable has no value; nothing was started.
        """
        world, facts = self._world, list[tuple[str, Fact, str]]()
        if isinstance(what, str):
            loaded = await world.definitions.load(what)
            if loaded.opening:
                facts.append(("opening", UserText(WORKFLOW, loaded.opening), "driver"))
        else:
            loaded = what.loaded
            facts += first_facts(what, user, world.clock.now())
            await pin_flow(world.stores.plans, tenant, loaded)
        run = RunKey(tenant, world.entropy.token() if id is None else id)
        request = "" if id is None or isinstance(what, str) else what.request
        started = _started(loaded, user, tenant, request)
        if id is None:
            await self._begin(run, loaded, started, facts)
            return run
        while not await self._is_started(run, started):
            try:
                async with self.claims.claim(run):  # others that start it now wait
                    if await self._is_started(run, started):
                        break
                    await self._begin(run, loaded, started, facts, is_woken=False)
            except RunBusy:
                await asyncio.sleep(RETRY.total_seconds())
                continue
            await self._mailing.wake(run)
        return run

    async def _begin(
        self,
        run: RunKey,
        loaded: LoadedWorkflow,
        started: RunStarted,
        facts: Sequence[tuple[str, Fact, str]],
        *,
        is_woken: bool = True,
    ) -> None:
        """Store the beginning of a run, and have it driven."""
        live = await self._driver.begin(run, loaded, started, facts)
        await live.journal.commit()
        if isinstance(loaded.workflow, FlowForm):  # runs of a folder share its modules
            self._driver.adopt(live, pinned=True)
        if is_woken:
            await self._mailing.wake(run)

    async def _is_started(self, run: RunKey, wanted: RunStarted) -> bool:
        """Whether the run of this id is the wanted one, if there is one.

        Raises:
            Conflict: the run of this id has another workflow, user or initial state.
        """
        ends = await self._world.stores.log.ends(run)
        if ends is None:
            return False
        found: RunStarted = ends[0].data
        if (found.workflow, found.user) != (wanted.workflow, wanted.user):
            raise Conflict("The same id was given to a run of another workflow. Give another id.")
        if found.request != wanted.request:
            raise Conflict("The same id was given to a run with another input. Give another id.")
        return True

    async def rested(self, run: RunKey) -> RunState | None:
        """The state of a run at the end of its drive here; None if it is not driven here.

        Raises:
            TurnloomError: the run cannot be driven here, as when the disk is full.
        """
        if self.is_shared:
            return None
        status = self._world.scheduler.status
        while await status(run) == "driving" and run not in self.drives:  # noqa: ASYNC110
            # Its drive is over; the scheduler learns of it in the next iteration of the loop.
            await asyncio.sleep(0)
        if await status(run) not in ("queued", "driving"):
            return None
        return await self.following.rested(run)

    async def definition(self, run: RunKey) -> LoadedWorkflow:
        """The workflow that a run is pinned to."""
        return await self._world.definitions.restore(await self._pinned(run))

    async def plan(self, run: RunKey) -> StoredPlan | None:
        """The plan that a run of a board or a flow is pinned to."""
        return await plan_of(self._world.stores.plans, await self._pinned(run))

    async def _pinned(self, run: RunKey) -> RunStarted:
        """The first fact of a run, with the definition that a retry may have given it."""
        first, last = await self._ends(run)
        if LIFE in last.id or last.kind in _UNMARKED:
            return started_of(await self._world.stores.log.read(run))
        return first.data

    async def position(self, run: RunKey) -> int:
        """The last position in the log of a run."""
        _, last = await self._ends(run)
        return last.seq

    async def resume(self, run: RunKey) -> None:
        """Continue a run that has not ended.

        Raises:
            RunBusy: another process drives it.
        """
        _, last = await self._ends(run)
        if last.kind not in ENDS:
            if not self.is_shared:
                await self._check_free(run)
            self.following.clear_error(run)
            await self._mailing.wake(run)

    async def retry(self, run: RunKey, asked: RetryRequest, source: str | None = None) -> None:
        """Make an ended run continue: from what failed, or from what is asked for. `source` is the
        path of a changed definition.

        Raises:
            DefinitionError: the changed definition does not pass its check.
            RunBusy: another process drives it.
            UsageError: it has not ended, or there is nothing to do again.
        """
        if source is not None:
            world = self._world
            loaded = await replacement(world.stores.log, world.definitions, run, source)
            asked = replace(asked, loaded=loaded)
        self.following.clear_error(run)
        await self._driver.retry(run, asked)
        await self._mailing.wake(run)

    async def _check_free(self, run: RunKey) -> None:
        """Refuse a run that another process drives, and name that process. If it does not respond,
        wait for the end of its lease."""
        if await self._world.scheduler.status(run) == "driving":
            return
        holder = await self.claims.held(run)
        if holder is not None and holder.is_late:
            await asyncio.sleep((holder.seconds or 0) + MARGIN)
        async with self.claims.claim(run):
            return

    async def events(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """The events of a run after a position, live, up to its end.

        Raises:
            TurnloomError: the run cannot be driven here, as when the disk is full.
        """
        await self._ends(run)
        async with aclosing(self.following.events(run, after)) as events:
            async for event in events:
                yield event

    async def cancel(self, run: RunKey, *, by: str, reason: str = "") -> bool:
        """End a run now; returns whether it was open.

        Raises:
            UsageError: no process drives it, and another program declares its board or flow.
        """
        first, last = await self._ends(run)
        if last.kind in ENDS:
            return False
        events = await self._world.stores.log.read(run)
        id = in_life("cancel", sum(isinstance(event.data, RunRetried) for event in events))
        await self._world.stores.inbox.offer(run, id, Stop(by, reason))
        try:
            delivery = await self._mailing.deliver(run, id, last.seq)
            if is_shared(scheduler := self._world.scheduler):
                if run.id not in await scheduler.stranded(run.tenant):
                    return True  # a worker ends it
                was_open = await self._end_otherwise(run, first.data, Stop(by, reason))
                await scheduler.cancel(run)  # no worker takes it from the queue
                return was_open
        except (PlanChanged, DefinitionError, WorkflowGone):
            return await self._end_otherwise(run, first.data, Stop(by, reason))
        if delivery is Delivery.KEPT:
            raise UsageError(
                f"Run {run.id!r} was asked to end, but no process drives it. It ends once a "
                f"program continues it that declares {first.data.workflow!r}."
            )
        if delivery is Delivery.RECORDED:
            await self._driver.drive(run)
        return True

    async def _end_otherwise(self, run: RunKey, started: RunStarted, stop: Stop) -> bool:
        """End a run whose definition cannot be restored: with the present plan of its flow, as far
        as that fits, or else without its code."""
        world = self._world
        present = await world.definitions.salvage(started)
        if present is None:
            return await give_up(world.stores, world.clock, world.observers, run, stop=stop)
        await self._driver.salvage(run, present)
        return True

    async def _ends(self, run: RunKey) -> tuple[Event, Event]:
        return await ends_of(self._world.stores.log, run)


# The kinds of events whose ids do not tell whether a run was retried before: the retry itself, and
# messages from outside.
_UNMARKED = frozenset(
    {
        RunRetried.kind,
        AnswerRefused.kind,
        CancelRequested.kind,
        QuestionAnswered.kind,
    }
)


def _none(started: RunStarted) -> bool:
    return False


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one and other else one or other


def _started(loaded: LoadedWorkflow, user: str, tenant: str, request: str) -> RunStarted:
    return RunStarted(
        loaded.workflow.name,
        loaded.workflow.version,
        loaded.definition,
        loaded.root,
        files=loaded.files,
        code=loaded.code,
        tenant=tenant,
        user=user,
        set_aside=loaded.set_aside,
        form=loaded.workflow.form,
        request=request,
    )
