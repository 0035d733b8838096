"""Open a run from its log and drive it until it ends or parks."""

import asyncio
import logging
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import anyio

from turnloom.agents.spec import Component, RunState
from turnloom.board.service.rebuilding import index
from turnloom.errors import (
    CodeMissing,
    Conflict,
    DefinitionError,
    LeaseLost,
    LogDamaged,
    MissingContext,
    PlanChanged,
    RunBusy,
    StoreUnavailable,
    TurnloomError,
    UsageError,
)
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.guards.service import Selector
from turnloom.kernel.threads import on_behalf_of
from turnloom.kernel.values import as_data, writable
from turnloom.log.events import ENDS, RunLimited, RunResumed, RunRetried, RunStarted
from turnloom.log.logic import repinned
from turnloom.log.ports import Clock, EventLog
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, Fact, RunKey
from turnloom.runtime.branches import RunBranch
from turnloom.runtime.drive.intake import park
from turnloom.runtime.drive.live import FREEZE, LiveRun, RunDelivery, RunResources, TextListener
from turnloom.runtime.drive.loop import Loop
from turnloom.runtime.journal import MOST_QUESTIONS, Journal, Tell, telling
from turnloom.runtime.limits import CallLimits
from turnloom.runtime.logic import ENDED, base_context, fresh, is_untouched, read_snapshot, thaw
from turnloom.runtime.ports import (
    Artifacts,
    Claims,
    Definitions,
    Entropy,
    Inbox,
    Plans,
    Removals,
    Snapshots,
)
from turnloom.runtime.retrying import LIVE, retry, terms_of, undriven, with_budget
from turnloom.runtime.spec import LimitWait, LoadedWorkflow, RetryRequest
from turnloom.runtime.world import UNLIMITED
from turnloom.variables.logic.secrets import NO_SECRETS, Secrets, secrets_of
from turnloom.variables.service import ContextSource

T = TypeVar("T")

hook_log = logging.getLogger("turnloom.lifecycle")


class Notices:
    """Logs the start and the end of runs that are driven here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._announced: set[tuple[str, str]] = set()

    def begin(self, state: RunState) -> None:
        """Log the start of a run if this drive is its first."""
        run = (state.tenant, state.run)
        if is_untouched(state) and run not in self._announced:
            self._announced.add(run)
            self.log_workflow_start(state)

    def end(self, state: RunState, began: datetime) -> None:
        """Log the end of a run that this drive ended."""
        self._announced.discard(
            (state.tenant, state.run)
        )  # from here on, the run's log shows that it began
        if state.status in ENDED:
            self.log_workflow_completion(state, began)

    def log_workflow_start(self, state: RunState) -> None:
        """Log the start of a run, with its user and app."""
        if not hook_log.isEnabledFor(logging.INFO):
            return
        hook_log.info(
            "🚀 Workflow Initialized | workflow=%s | chat=%s | user=%s | app=%s | timestamp=%s",
            *map(_word, (state.workflow, state.run, state.user, state.tenant)),
            _instant(self._clock.now()),
        )

    def log_workflow_completion(self, state: RunState, began: datetime) -> None:
        """Log how a run ended, and how long it took."""
        if not hook_log.isEnabledFor(logging.INFO):
            return
        now = self._clock.now()
        done = state.status == "finished"
        hook_log.info(
            "%s | workflow=%s | chat=%s%s | duration=%.2fs | timestamp=%s",
            "✅ Workflow Completed" if done else "❌ Workflow Failed",
            *map(_word, (state.workflow, state.run)),
            "" if done else f" | status={state.status}",
            (now - began).total_seconds(),
            _instant(now),
        )


def _word(text: str) -> str:
    """A name as it is, unless it could break the line."""
    return text if text.isprintable() else as_data(text)


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


log = logging.getLogger("turnloom.observers")

# Seconds that the drive which ended a run has to let go of it, and between two looks at it.
LETTING_GO, PAUSE = 5.0, 0.02

# Parked runs kept in memory, so that waking one need not read its log.
WARM = 256


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of a driver. `per_turn`: answers of models are stored at the end of a turn.
    `is_shared`: other processes drive the same runs, so that what is known here may be old.
    `limits` are those of model calls, and at most `questions` of a run are open at once."""

    log: EventLog
    inbox: Inbox
    claims: Claims
    snapshots: Snapshots
    artifacts: Artifacts
    beliefs: BeliefStore
    results: Results
    plans: Plans
    per_turn: bool = False
    removals: Removals | None = None
    is_shared: bool = False
    limits: CallLimits | None = None
    questions: int = MOST_QUESTIONS


def _untold(run: RunKey) -> Tell | None:
    """No callback."""
    return None


@dataclass(frozen=True, slots=True)
class Listeners:
    """Callbacks of a driver: for text deltas, for stored events, for deliveries between runs, and
    for observers."""

    hear: TextListener | None = None
    tell: Callable[[RunKey], Tell | None] = _untold
    post: RunDelivery | None = None
    observe: Callable[[RunKey, RunStarted], Tell] | None = None


class Driver:
    """Drives runs. `components` wrap every turn and call; `window` is the context window of every
    model in tokens, if a setting gives it."""

    def __init__(
        self,
        stores: Stores,
        chance: tuple[Clock, Entropy],
        definitions: Definitions,
        context: ContextSource,
        listeners: Listeners | None = None,
        components: tuple[Component, ...] = (),
        window: int = 0,
    ) -> None:
        self._stores = stores
        self._clock, entropy = chance
        self._definitions = definitions
        self._context = context
        listeners = listeners or Listeners()
        self._tell = listeners.tell
        self._observe = listeners.observe
        self._selecting = Selector(stores.beliefs, entropy.token)
        self._means = RunResources(
            stores.inbox,
            stores.artifacts,
            stores.snapshots,
            stores.results,
            log=stores.log,
            selecting=self._selecting,
            entropy=entropy,
            hear=listeners.hear,
            post=listeners.post,
            rooms={},
            permits=stores.limits.permits if stores.limits and stores.is_shared else None,
            components=components,
            window=window,
        )
        self._loops: dict[RunKey, Loop] = {}
        self._notices = Notices(self._clock)
        self._warm: OrderedDict[RunKey, LiveRun] = OrderedDict()
        self._objects: dict[RunKey, dict[tuple[str, str], Any]] = {}
        self._interrupted: dict[RunKey, int] = {}
        self._hidden: dict[RunKey, Secrets] = {}
        self._begun: dict[RunKey, LoadedWorkflow] = {}
        self._congested: set[RunKey] = set()

    async def begin(
        self,
        run: RunKey,
        loaded: LoadedWorkflow,
        started: RunStarted,
        facts: Sequence[tuple[str, Fact, str]] = (),
    ) -> LiveRun:
        """A new run whose first facts are recorded, but not stored yet: its pinned definition and
        its variables.

        Raises:
            MissingContext: a variable that it requires has no value.
        """
        base = base_context(run.id, started)
        variables = loaded.workflow.variables
        context = await self._context.load(variables, base, loaded.database, loaded.data)
        state = fresh(run, loaded.workflow, loaded.guards)
        journal = self._journal(loaded, state, secrets_of(context.secrets), started)
        began = journal.record("start", started).at
        journal.record("context", context.loaded)
        for number, each in enumerate((*context.suppressed, *loaded.suppressed)):
            journal.record(f"context/suppressed.{number}", each)
        for id, fact, actor in facts:
            journal.record(id, fact, actor)
        return LiveRun(journal, loaded, self._means, 0, began=began)

    def adopt(self, live: LiveRun, *, pinned: bool = False) -> None:
        """Drive a run that was started here as it is in memory; a pinned one keeps the code it was
        started with to its end. Runs that other processes drive too are not kept."""
        if self._stores.is_shared:
            return
        run = live.journal.run
        self._keep(run, live)
        if pinned:
            self._begun[run] = live.loaded

    def _journal(
        self, loaded: LoadedWorkflow, state: RunState, secrets: Secrets, started: RunStarted
    ) -> Journal:
        run = RunKey(state.tenant, state.run)
        observe = self._observe and self._observe(run, started)
        tell = self._tell(run)
        learn = None if self._selecting.follows_log else self._selecting.learn
        journal = Journal(
            telling(self._stores.log, observe, tell, learn),
            self._clock,
            loaded,
            state,
            secrets=secrets,
            objects=self._objects.get(run),
            verbose=self._context.is_verbose,
        )
        journal.per_turn = self._stores.per_turn
        journal.most_questions = self._stores.questions
        return journal

    async def drive(self, run: RunKey, held: LimitWait | None = None) -> LiveRun:
        """Take in mail, then decide and act until the run ends or has to wait; returns the run.
        That a limit held it before is recorded.

        Raises:
            Conflict: the log holds something unexpected, and no other process drives the run.
            DefinitionError: some agent of it cannot answer here.
            RunBusy: another process holds the run.
            LeaseLost: another process took the run over.
        """
        with on_behalf_of(run.tenant):
            return await self._hold(run, partial(self._drive, held))

    async def _drive(self, held: LimitWait | None, run: RunKey, fence: int) -> LiveRun:
        live: LiveRun | None = None
        try:
            live = await self._open_here(run, fence)
            if held is not None and live.journal.state.status not in ENDED:
                limited = RunLimited(held.reason, round(held.seconds, 3))
                live.journal.record(f"limited@{live.journal.state.position}", limited)
            self._objects[run] = live.journal.objects
            self._hidden[run] = live.journal.secrets
            loop = self._loops[run] = Loop(live)
            await self._run(loop, live)
        except asyncio.CancelledError:
            position = live.journal.stored if live else 0
            seen = await self._show_late(run, position)
            if not self._stores.is_shared:
                self._interrupted[run] = seen
            raise
        finally:
            self._loops.pop(run, None)
        self._hidden.pop(run, None)
        self._put_away(run, live)
        return live

    async def _run(self, loop: Loop, live: LiveRun) -> None:
        """Drive a run, and log its start and its end."""
        state = live.journal.state
        was_over = state.status in ENDED
        self._notices.begin(state)
        await loop.drive()
        if not was_over:
            self._notices.end(state, live.began)

    async def salvage(self, run: RunKey, loaded: LoadedWorkflow) -> None:
        """Drive a run once with a definition that ends it.

        Raises:
            RunBusy: another process holds the run.
        """
        self._warm.pop(run, None)
        self._begun[run] = loaded
        try:
            await self.drive(run)
        finally:
            self._begun.pop(run, None)
            self._warm.pop(run, None)

    def trace(self, run: RunKey, error: Exception) -> str:
        """The traceback of the error that ended a drive, masked for the program's log; a sentence
        for what other processes or the store caused."""
        if isinstance(error, LeaseLost | RunBusy | StoreUnavailable):
            return str(error)
        lines = writable("".join(traceback.format_exception(error))).rstrip()
        return self._hidden.pop(run, NO_SECRETS).masked(lines)

    async def retry(self, run: RunKey, asked: RetryRequest) -> None:
        """Make an ended run continue; the next drive does again what failed, or what is asked for.

        The drive that ended the run may still be letting go of it.

        Raises:
            RunBusy: another process holds the run.
            UsageError: the run has not ended, or there is nothing to do again.
        """
        until = anyio.current_time() + LETTING_GO
        while True:
            try:
                return await self._hold(run, partial(self._retry, asked))
            except RunBusy:
                _, last = await ends_of(self._stores.log, run)
                if last.kind not in ENDS or anyio.current_time() > until:
                    raise
            await anyio.sleep(PAUSE)

    async def _retry(self, asked: RetryRequest, run: RunKey, fence: int) -> None:
        self._abandon(run)
        first, _ = await ends_of(self._stores.log, run)
        observe = self._observe and self._observe(run, first.data)
        log = telling(self._stores.log, observe)
        journal = undriven(log, self._clock, run, fence)
        # What a snapshot remembers may not count any more.
        await self._stores.snapshots.save(run, 0, b"")
        await retry(self._stores.log, self._definitions, journal, asked)

    async def take_in(self, run: RunKey) -> None:
        """Record what came from outside, and do nothing else."""
        await self._hold(run, self._take_in)

    async def _take_in(self, run: RunKey, fence: int) -> None:
        live = await self._open_here(run, fence, resume=False)
        await live.take_in()
        if live.journal.state.questions:
            park(live.journal)
        await live.journal.commit()

    async def _hold(self, run: RunKey, act: Callable[[RunKey, int], Awaitable[T]]) -> T:
        """Hold a run while a function acts on it, under the claim's fence.

        Raises:
            Conflict: the log refused the events, and no other process holds the run: a fault.
            RunBusy: another process holds it.
            LeaseLost: another process took it over.
        """
        claims = self._stores.claims
        try:
            async with claims.claim(run) as fence:
                return await act(run, fence)
        except LeaseLost:
            self._abandon(run)
            raise
        except Conflict as error:
            if await claims.held(run):
                raise RunBusy(f"Run {run.id!r} is driven by another process. {error}") from error
            raise

    def _abandon(self, run: RunKey) -> None:
        """Forget a run that another process drives now."""
        for kept in (self._warm, self._objects, self._interrupted, self._begun):
            kept.pop(run, None)

    async def _open_here(self, run: RunKey, fence: int, *, resume: bool = True) -> LiveRun:
        """The run as its log has it now.

        Raises:
            CodeMissing: this process lacks its code, and others may have it.
        """
        try:
            return await self._open(run, fence, resume=resume)
        except (UsageError, PlanChanged, DefinitionError, MissingContext) as error:
            if not self._stores.is_shared:
                raise
            first, _ = await ends_of(self._stores.log, run)
            raise CodeMissing(_needs(first.data), str(error)) from error

    async def _open(self, run: RunKey, fence: int, *, resume: bool = True) -> LiveRun:
        """The run as its log has it now; a drive that was interrupted is marked as resumed."""
        live, missed = await self._warmed(run) or await self._thaw(run)
        journal = live.journal
        journal.fence = fence
        is_held = getattr(self._stores.claims, "is_held", None)
        journal.is_held = partial(is_held, fence) if is_held else None
        journal.limits = self._stores.limits or UNLIMITED
        if resume and live.loaded.lacking:
            raise DefinitionError(journal.workflow.name, live.loaded.lacking)
        journal.catch_up(missed)
        if not live.driven:
            _check_secrets(journal)
            await _migrate(live)
        if journal.state.tools != LIVE and journal.origin is None:
            journal.origin = RunBranch(journal, self._stores.log)
        ours = live.driven or run in self._interrupted
        await self._show_late(run, self._interrupted.pop(run, 0))
        if resume and not ours and _is_cut_off(live):
            mark = RunResumed(live.loaded.changed_code)
            journal.record(f"resumed@{journal.state.position}", mark)
            await journal.commit()
        if not (live.driven or self._stores.artifacts.follows_log):
            await self._index(journal, missed)
        if not (live.driven or self._selecting.follows_log):
            await self._selecting.learn(run, missed)
        live.driven = True
        return live

    async def _warmed(self, run: RunKey) -> tuple[LiveRun, Sequence[Event]] | None:
        """The run as it rests here, and what other processes stored since; None if it does not, or
        was retried since: then what it remembers may not count any more."""
        live = self._warm.pop(run, None)
        if live is None:
            return None
        missed = await self._stores.log.read(run, live.journal.state.position)
        if missed and self._stores.is_shared:  # another process drove it
            self._abandon(run)
            return None
        return None if any(event.kind == RunRetried.kind for event in missed) else (live, missed)

    async def _show_late(self, run: RunKey, position: int) -> int:
        """Show observers what was stored after a position while a drive was being interrupted;
        returns the position that they have seen."""
        if self._observe is None or not position:
            return position
        late: Sequence[Event] = ()
        try:
            with anyio.CancelScope(shield=True):
                late = await self._stores.log.read(run, position)
                if late:
                    first, _ = await ends_of(self._stores.log, run)
                    await self._observe(run, first.data)(run, late)
        except TurnloomError as error:
            log.warning("observers may have missed events of run %s: %s", run.id, error)
            return position
        return late[-1].seq if late else position

    async def _index(self, journal: Journal, missed: Sequence[Event]) -> None:
        """Index artifacts that another process may have stored without indexing them."""
        if journal.state.status not in _AT_REST:
            await index(self._stores.artifacts, journal.run.tenant, missed)

    async def _thaw(self, run: RunKey) -> tuple[LiveRun, Sequence[Event]]:
        """The run from its last snapshot, or from nothing, and what follows that."""
        log = self._stores.log
        first, last = await ends_of(log, run)
        kept = await self._stores.snapshots.load(run) if last.seq >= FREEZE else None
        state = kept and read_snapshot(kept[1])
        if kept and state and not state.position == kept[0] <= last.seq:
            state = None  # the snapshot contradicts its own position
        if state and state.position > last.seq:
            raise LogDamaged(run.id, last.seq + 1, state.position)
        missed = await log.read(run, state.position if state else 0)
        terms = terms_of(missed, state)
        started = repinned(first.data, terms.pin) if terms.pin else first.data
        loaded = self._begun.get(run) or await self._definitions.restore(started)
        loaded = with_budget(loaded, terms.budget)
        if state and thaw(loaded.workflow, state) is None:
            state, missed = None, await log.read(run)
        frozen = state.position if state else 0
        state = state or fresh(run, loaded.workflow, loaded.guards)
        secrets = await read_secrets(self._context, run, loaded, started)
        journal = self._journal(loaded, state, secrets, started)
        return LiveRun(journal, loaded, self._means, frozen, began=first.at), missed

    def _put_away(self, run: RunKey, live: LiveRun) -> None:
        """Keep a parked run while there is room, and its objects as long as this process."""
        status = live.journal.state.status
        (self._congested.discard if live.congested is None else self._congested.add)(run)
        if status in ENDED or not live.journal.objects:
            self._objects.pop(run, None)
        if status in ENDED:
            self._begun.pop(run, None)
        if status == "paused":
            self._keep(run, live)

    def _keep(self, run: RunKey, live: LiveRun) -> None:
        """Keep a run in memory until its next drive, while there is room."""
        self._warm[run] = live
        if len(self._warm) > WARM:
            self._warm.popitem(last=False)

    def heeds(self, run: RunKey) -> bool | None:
        """Whether the drive of a run reads mail at once; None if it is not driven here."""
        return self._loops[run].heeds_mail if run in self._loops else None

    def keeps(self, run: RunKey) -> bool:
        """Whether a run rests here, and may continue."""
        return run in self._warm

    def is_behind(self, run: RunKey, position: int) -> bool:
        """Whether another process stored more of a run that rests here."""
        live = self._warm.get(run)
        return live is not None and live.journal.state.position < position

    def continues(self, run: RunKey) -> bool:
        """Whether a run that rests here will soon continue by itself."""
        if run in self._congested:
            return True
        live = self._warm.get(run)
        return live is not None and live.journal.workflow.rest(live.journal.state).continues

    def rouse(self, run: RunKey) -> None:
        """Make a drive read mail."""
        if run in self._loops:
            self._loops[run].rouse()


async def read_secrets(
    context: ContextSource, run: RunKey, loaded: LoadedWorkflow, started: RunStarted
) -> Secrets:
    """The secrets of a run, from their sources."""
    base = base_context(run.id, started)
    return secrets_of(await context.secrets(loaded.workflow.variables, base, loaded.database))


def _needs(started: RunStarted) -> str:
    """The code that a run needs."""
    return f"{started.form} {started.workflow!r} as of {started.definition[:12]}"


def _is_cut_off(live: LiveRun) -> bool:
    """Whether the last drive of the run was interrupted, or its code changed while it was
    parked."""
    state = live.journal.state
    if state.status == "paused":
        return bool(live.loaded.changed_code)
    if live.journal.is_begun_anew:
        return bool(live.loaded.changed_code)
    return state.status not in ENDED and not is_untouched(state)


async def _migrate(live: LiveRun) -> None:
    """Record the migration of the state of a run that began with another model of it."""
    journal = live.journal
    if live.loaded.migrate is not None and journal.state.status not in ENDED:
        for id, fact in await live.loaded.migrate(journal.state):
            journal.record(id, fact)
        await journal.commit()


def _check_secrets(journal: Journal) -> None:
    """Refuse to continue with a secret that cannot be read any more: a mark is not its value.

    Raises:
        MissingContext: a source does not give its secret.
    """
    lost = [
        f"{name!r} is secret, and its source does not give it now"
        for name, definition in journal.workflow.variables.definitions.items()
        if definition.secret and journal.state.values.get(name) and name not in journal.secrets
    ]
    if lost:
        raise MissingContext(lost, f"Run {journal.state.run!r} cannot continue")


_AT_REST = ENDED | {"paused"}
