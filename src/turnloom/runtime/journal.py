"""The one writer of a run's log, and the state folded from it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

import anyio
import msgspec

from turnloom.agents.events import (
    MessageSent,
    ModelCalled,
    QuestionAnswered,
    QuestionExpiredFact,
    UserText,
)
from turnloom.agents.spec import RunState
from turnloom.assembly.logic import View
from turnloom.board.events import ArtifactPublished
from turnloom.errors import Conflict, LeaseLost
from turnloom.guards.spec import NO_GUARDS, Guards
from turnloom.kernel.deadlines import uninterrupted
from turnloom.kernel.values import preview
from turnloom.log.events import RunForked, RunRetried
from turnloom.log.logic import in_life, plain_id, standing
from turnloom.log.ports import Clock, Effect
from turnloom.log.spec import Event, Fact, Intent, RunKey
from turnloom.runs.retries import RETRY
from turnloom.runtime.logic import ENDED, derive, evolve, scope_of
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.runtime.user_code import ask_function
from turnloom.runtime.world import PRESENT, UNLIMITED, CallLimiter, RunOrigin, World
from turnloom.variables.events import ContextChanged, TimerSet
from turnloom.variables.logic.derivation import Change
from turnloom.variables.logic.secrets import NO_SECRETS, PLAIN, Secrets, received_fact

F = TypeVar("F", bound=Fact)


# Characters of a value shown in the program's log, unless its definition sets `max_chars`.
PREVIEW = 80

# The kinds of events that begin a run anew, and of those that may come with them.
_BEGINNINGS = frozenset({RunForked.kind, RunRetried.kind})
_WITH_THEM = frozenset(
    {
        ContextChanged.kind,
        MessageSent.kind,
        QuestionAnswered.kind,
        UserText.kind,
        TimerSet.kind,
    }
)

# Separates, in the id of an event, its cause from what was derived from it.
FOLLOWS = ">"

log = logging.getLogger("turnloom.context")


# Called with the events of a run right after they were stored.
Tell = Callable[[RunKey, Sequence[Event]], Awaitable[None]]


class Appends(Protocol):
    """The part of a log that a journal uses."""

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store events after position `expected`, and return what the log holds there."""
        ...


class NotifyingLog:
    """A log that calls others with what it stored, in order, each once."""

    def __init__(self, log: Appends, tells: Sequence[Tell]) -> None:
        self._log = log
        self._tells = tells
        self._told = [0] * len(tells)
        self.stored = 0

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store events after position `expected`, and return what the log holds there."""
        stored = await self._log.append(run, events, expected, fence)
        self.stored = expected + len(stored)
        for number, tell in enumerate(self._tells):
            if self._told[number] < self.stored:  # not before the append was cancelled
                await tell(run, stored)
                self._told[number] = self.stored
        return stored


def telling(log: Appends, *tells: Tell | None) -> Appends:
    """A log that calls `tells` with what it stored; the log itself if there are none."""
    given = [tell for tell in tells if tell is not None]
    return NotifyingLog(log, given) if given else log


class Diverged(Exception):
    """The request differs from the one that the log has under the same key."""


class BatchTime:
    """The time of what is recorded next: that of the batch, until it is stored or an effect takes
    time. What is decided by it agrees with the log."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: datetime | None = None

    def now(self) -> datetime:
        """The time of what is recorded next."""
        if self._at is None:
            self._at = self._clock.now()
        return self._at

    def pass_on(self) -> None:
        """Note that time has passed."""
        self._at = None


# Open questions of a run, unless a setting says otherwise.
MOST_QUESTIONS = 1_000


class Journal:
    """Records facts of one run and stores them in batches.

    A recorded fact takes effect at once: the state has it, and what is decided from it joins the
    same batch, with the same time. `commit` stores the batch; no effect is performed and no reader
    sees anything before. If the log holds something else at that position, the journal is void.
    `objects` holds values of this process that are not JSON, by variable and by the call that wrote
    them. Without `secrets`, facts arrive masked, and marks in them are genuine.
    """

    def __init__(
        self,
        log: Appends,
        clock: Clock,
        loaded: LoadedWorkflow,
        state: RunState,
        secrets: Secrets | None = NO_SECRETS,
        *,
        objects: dict[tuple[str, str], Any] | None = None,
        verbose: bool = False,
    ) -> None:
        # Whether answers of models are stored at the end of the turn, or before the next call.
        self.per_turn = False
        # The most questions that may be open at once, and those that are about to be recorded.
        self.most_questions = MOST_QUESTIONS
        self.asking: set[str] = set()
        self.workflow = loaded.workflow
        self._triggering = loaded.workflow.triggers.kinds
        self._guards = loaded.guards
        self.state = state
        self.run = RunKey(state.tenant, state.run)
        # The fence of the claim under which the run is driven; None while a run is being started.
        self.fence: int | None = None
        # Whether the lease of that claim lasts; None where claims have no clock.
        self.is_held: Callable[[], bool] | None = None
        self.secrets = NO_SECRETS if secrets is None else secrets
        self.has_secrets = bool(secrets)
        self._receives = secrets is not None
        self.objects = {} if objects is None else objects
        self._functions = loaded.functions
        self._verbose = verbose
        self._is_storing = False
        self._stored_all: asyncio.Event | None = None
        self.views: dict[str, tuple[int, View]] = {}
        self._log = log
        self.clock = clock
        self.time = BatchTime(clock)
        self.world: World = PRESENT
        self.limits: CallLimiter = UNLIMITED
        self.origin: RunOrigin | None = None
        # Whether the run was forked or retried, and nothing happened since.
        self.is_begun_anew = False
        self._stored = state.position
        self._error: BaseException | None = None
        self._unsettled: deque[tuple[Event, set[str]]] = deque()
        self._batch: list[Event] = []
        # A batch whose append was cancelled: whether it is stored shows when it is stored again.
        self._unsure: list[Event] = []
        self._rewritten: set[str] = set()
        # Called when a question of the run is closed.
        self.on_closed: list[Callable[[], None]] = []
        # Positions of the last artifact, which readers of the board must find, and of the last
        # result of a call, which is stored before the next model call.
        self._published = self._result = 0
        self._last: Event | None = None
        self._cause: int | None = state.position or None

    @property
    def guards(self) -> Guards:
        """The guards in force: none while steps are being compensated."""
        return NO_GUARDS if self.state.unguarded else self._guards

    def record(
        self,
        id: str,
        fact: Fact,
        actor: str = "driver",
        cause: int | None = None,
        *,
        derives: bool = True,
        is_given: bool = False,
    ) -> Event:
        """Record a fact and everything derived from it. Pass `derives=False` to derive later, with
        `derive`. An id that `is_given` comes from outside, and is stored as it is."""
        if cause is None:
            scope = self.state.scopes.get(id.partition("/")[0])
            cause = (scope and scope.last) or self._cause
        event = self._add(id, fact, actor, cause, is_given=is_given)
        self._cause = event.seq
        if derives and event.kind in self._triggering:
            self._derive(event, set())
        return event

    def derive(self, id: str) -> None:
        """Record what derives from an event of an open turn that was recorded with
        `derives=False`."""
        scope = scope_of(self.state, id)
        event = scope and scope.recorded.get(id)
        if event and event.kind in self._triggering:
            self._derive(event, set())

    def _derive(self, event: Event, spoke: set[str]) -> None:
        """Record what derives from an event, then what derives from that.

        `spoke` holds the functions that were called since the original fact: each is called once,
        so that two of them cannot trigger each other forever.
        """
        causes = deque([event])
        while causes:
            cause = causes.popleft()
            for change in derive(self.workflow, self.state, cause):
                follower = change.timer if isinstance(change, TimerSet) else change.name
                causes.append(self._follow(cause, change, follower))
            if self.workflow.triggers.functions and cause.kind in self.workflow.triggers.kinds:
                self._unsettled.append((cause, spoke))

    def _follow(self, cause: Event, change: Change, follower: str) -> Event:
        writer = change.timer if isinstance(change, TimerSet) else change.writer
        return self._add(f"{cause.id}{FOLLOWS}{follower}", change, writer, cause.seq)

    async def settle(self) -> None:
        """Call functions with the events recorded since the last call."""
        while self._unsettled:
            event, spoke = self._unsettled.popleft()
            if self.state.status in ENDED:
                continue  # nothing follows the end of a run
            for rule in self.workflow.triggers.functions:
                if rule.writer in spoke or rule.is_spent(self.state.fired):
                    continue
                change = await ask_function(rule, self._functions, event, self.state.values)
                if change is not None:
                    await self.world.reach(f"{event.id}{FOLLOWS}")
                    spoke.add(rule.writer)
                    self._derive(self._follow(event, change, rule.writer), spoke)

    def recorded(self, id: str) -> Fact | None:
        """The fact recorded under an id, in an open turn or in a call outside turns."""
        state = self.state
        if state.life:
            id = plain_id(id, state.life)
        scope = state.scopes.get(id.partition("/")[0])
        if scope is None:
            return state.chat.get(id)
        event = scope.recorded.get(id)
        return None if event is None else event.data

    def keep(self, id: str, make: Callable[[], F], actor: str = "driver") -> F:
        """The fact recorded under an id in this turn; if there is none, record a new one."""
        found = self.recorded(id)
        return cast(F, found) if found is not None else self.record(id, make(), actor).data

    async def once(
        self, key: str, effect: Effect, *, intent: Intent | None = None
    ) -> Sequence[Fact]:
        """The facts recorded under `key`; if none, store the intent, perform the effect, record the
        outcome.

        What only reads needs no intent; it finds on the board what was published so far.

        Raises:
            Diverged: another request is recorded under this key.
        """
        done = self.outcome(key)
        if done:
            return done
        if intent is not None:
            self._begin(key, intent)
        is_model = isinstance(intent, ModelCalled)
        waits = intent is None or (self.per_turn and is_model and self._result <= self._stored)
        if self._published > self._stored or not waits:
            await self.commit()
        self._check_held()
        facts = await self.world.perform(key, effect, key)
        self.time.pass_on()  # even if nothing was stored meanwhile
        if intent is None or is_model:
            return self._complete(key, facts)
        return self.complete(key, facts)

    async def perform(self, key: str, effect: Effect, scope: str = "") -> Sequence[Fact]:
        """The facts that an effect leaves under a key; its scope is the key, unless given.

        Raises:
            Parked: it asked a person.
            CallFailed: a step failed.
        """
        self._check_held()
        facts = await self.world.perform(key, effect, scope or key)
        self.time.pass_on()
        return facts

    def _check_held(self) -> None:
        """Refuse to act for a run that another process may drive by now.

        Raises:
            LeaseLost: the lease is over.
        """
        if self.is_held is not None and not self.is_held():
            raise LeaseLost(self.run.id)

    def outcome(self, key: str) -> list[Fact]:
        """The facts recorded under a key; empty if the effect was not completed."""
        found: list[Fact] = []
        while (fact := self.recorded(f"{key}.{len(found)}")) is not None:
            found.append(fact)
        return found

    def _begin(self, key: str, intent: Intent) -> None:
        """Record the intent to perform an effect.

        Raises:
            Diverged: another request is recorded under this key.
        """
        if self.keep(f"{key}?", lambda: intent).request != intent.request:
            raise Diverged(f"{key} was begun with another request than it is repeated with.")

    def complete(self, key: str, facts: Iterable[Fact], *, derives: bool = True) -> list[Fact]:
        """Record the outcome of an effect. It is stored before the next model call."""
        done = self._complete(key, facts, derives=derives)
        self._result = self.state.position
        return done

    def _complete(self, key: str, facts: Iterable[Fact], *, derives: bool = True) -> list[Fact]:
        return [
            self.record(
                f"{key}.{number}", fact, getattr(fact, "writer", "driver"), derives=derives
            ).data
            for number, fact in enumerate([*facts])
        ]

    async def put(self, id: str, fact: Fact) -> None:
        """Record a fact and store it at once, shielded from cancellation."""
        self.record(id, fact)
        with anyio.CancelScope(shield=True):
            await uninterrupted(self.commit())

    @property
    def last(self) -> str:
        """The kind of the last event; what was recorded with a retry is part of it."""
        event = self._last
        if event is None:
            return ""
        return RunRetried.kind if event.actor == RETRY else event.kind

    async def commit(self) -> None:
        """Store what was recorded since the last commit.

        Raises:
            Conflict: the log holds something else at this place; the journal is void.
            LeaseLost: another process drives the run now; the journal is void.
        """
        while self._is_storing:  # concurrent calls commit one after the other
            self._stored_all = self._stored_all or asyncio.Event()
            await self._stored_all.wait()
        self._is_storing = True
        try:
            await self._store()
        finally:
            self._is_storing = False
            if self._stored_all is not None:
                self._stored_all.set()
                self._stored_all = None

    async def _store(self) -> None:
        if self._unsettled:
            await self.settle()
        if not (self._batch or self._unsure):
            return
        if self._error is not None:
            raise self._error  # later callers get the same error
        self._forget_rewritten()
        if self._unsure:
            await self._append(self._unsure)
        if self._batch:
            self._unsure, self._batch = self._batch, []
            self.time.pass_on()
            await self._append(self._unsure)

    async def _append(self, batch: list[Event]) -> None:
        """Store a batch; the log returns one that it has already.

        Raises:
            Conflict: the log holds something else at this place; the journal is void.
            LeaseLost: another process drives the run now; the journal is void.
        """
        try:
            stored = await self._log.append(self.run, batch, self._stored, self.fence)
            if stored is not batch and list(stored) != batch:
                raise Conflict(f"Run {self.state.run!r} went on elsewhere.")
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._error = error
            raise
        self._stored = batch[-1].seq
        self._unsure = []

    @property
    def stored(self) -> int:
        """The position up to which the log is known to hold what was recorded."""
        return max(self._stored, self._log.stored if isinstance(self._log, NotifyingLog) else 0)

    @property
    def is_unsettled(self) -> bool:
        """Whether functions have not been called yet with all that was recorded."""
        return bool(self._unsettled)

    def catch_up(self, events: Sequence[Event]) -> None:
        """Fold events that another process stored."""
        for event in standing(events, self.state.life):
            evolve(self.workflow, self.state, event)
            if FOLLOWS not in event.id:
                self._cause = event.seq
            self._last = event
            self._note(event)
        if self.objects:
            self._rewritten.update(name for name, _ in self.objects)
            self._forget_rewritten()
        self._stored = self.state.position

    def _add(
        self, id: str, fact: Fact, actor: str, cause: int | None, *, is_given: bool = False
    ) -> Event:
        state, plain = self.state, id
        if state.life:
            plain = plain_id(id, state.life)
            id = id if is_given else in_life(plain, state.life)
        kind = fact.__class__
        if kind not in PLAIN and self._receives:
            fact = received_fact(fact)
        if self.has_secrets:
            fact = self.secrets.mask(fact)
        event = Event(
            plain,
            state.run,
            state.position + 1,
            self.time.now(),
            kind=fact.kind,
            actor=actor,
            data=fact,
            cause=cause,
            v=fact.version,
        )
        event = self._accept(event, id)
        evolve(self.workflow, state, event)
        if kind is ArtifactPublished:
            self._published = event.seq
        elif kind is ContextChanged:
            self._heed(cast(ContextChanged, fact))
        elif self.on_closed and isinstance(fact, QuestionAnswered | QuestionExpiredFact):
            for tell in self.on_closed:
                tell()
        self._last = event
        self._note(event)
        return event

    def _note(self, event: Event) -> None:
        if event.kind in _BEGINNINGS or event.actor == RETRY:
            self.is_begun_anew = True
        elif self.is_begun_anew and event.kind not in _WITH_THEM:
            self.is_begun_anew = False

    def _accept(self, event: Event, id: str) -> Event:
        """Add an event to the batch, to be stored under an id; returns the event that takes
        effect."""
        stored = event if event.id == id else msgspec.structs.replace(event, id=id)
        self._batch.append(stored)
        return event

    def _heed(self, fact: ContextChanged) -> None:
        self._rewritten.add(fact.name)
        if self._verbose:
            self._tell(fact)

    def _forget_rewritten(self) -> None:
        """Drop objects of variables that were overwritten. A call may write a variable several
        times, so this waits until all of its writes are recorded."""
        names, self._rewritten = self._rewritten, set()
        for name, call in [*self.objects]:
            if name in names and call != self.state.ephemeral.get(name):
                del self.objects[name, call]

    def _tell(self, fact: ContextChanged) -> None:
        definition = self.workflow.variables.definitions.get(fact.name)
        limit = (definition and definition.max_chars) or PREVIEW
        before, now = preview(fact.previous, limit), preview(fact.value, limit)
        log.info(
            "run %s: %s was %s, is %s (%s)", self.state.run, fact.name, before, now, fact.writer
        )


def idempotency_key(journal: Journal, key: str) -> str:
    """The key of a call for the world. What is done again after a retry has another one; what is
    only continued keeps its own."""
    scope, state = scope_of(journal.state, key), journal.state
    return f"{state.run}/{in_life(key, scope.life if scope else state.life)}"
