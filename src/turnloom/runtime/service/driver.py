"""Moves runs: opens them from their log, takes in what came from outside, decides and acts."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from turnloom.agents.events import (
    ChanceDrawn,
)
from turnloom.agents.spec import Ask, Decision, Draw, Finish, Pick, Select, TakeTurn
from turnloom.board.events import ArtifactRefused
from turnloom.board.service.rebuilding import index
from turnloom.errors import (
    ArtifactExists,
    Conflict,
    DefinitionError,
    MissingContext,
    RunBusy,
    UnknownRun,
)
from turnloom.flow.ports import Results
from turnloom.guards.logic.recovering import escalation
from turnloom.guards.ports import BeliefStore
from turnloom.guards.service.selecting import Selecting
from turnloom.log.events import (
    RunFinished,
    RunResumed,
    RunStarted,
)
from turnloom.log.ports import Clock, EventLog
from turnloom.log.spec import Event
from turnloom.reaction.logic.reacting import Reacting
from turnloom.runs.brief import Sinks, TextSink, discard
from turnloom.runtime.logic import (
    ENDED,
    base_context,
    ending,
    freeze,
    fresh,
    is_untouched,
    thaw,
)
from turnloom.runtime.ports import (
    Artifacts,
    Claims,
    Definitions,
    Entropy,
    Inbox,
    Plans,
    Snapshots,
)
from turnloom.runtime.service.calls import Waiting, ask
from turnloom.runtime.service.components import observed
from turnloom.runtime.service.conversation import TalkBrief
from turnloom.runtime.service.crew import Crew
from turnloom.runtime.service.endings import end_cancelled, end_failed
from turnloom.runtime.service.flows import Flows, Means
from turnloom.runtime.service.guarding import begin_turn
from turnloom.runtime.service.intake import due, expire, put_on_record, rest
from turnloom.runtime.service.journal import Journal, Tell
from turnloom.runtime.service.notices import Notices
from turnloom.runtime.service.opened import Opened
from turnloom.runtime.service.picking import pick
from turnloom.runtime.service.presence import already
from turnloom.runtime.service.reactions import Post, Reactions, Surroundings
from turnloom.runtime.spec import (
    Delta,
    Loaded,
    Publish,
)
from turnloom.variables.logic.secrets import Secrets
from turnloom.variables.service import ContextSource

# Runs at rest that are kept in memory, so that waking one need not read its log again.
WARM = 256

# How many events a run has before its state is kept for the first time.
FREEZE = 1000


@dataclass(frozen=True, slots=True)
class Stores:
    """Where a driver finds runs and leaves them."""

    log: EventLog
    inbox: Inbox
    claims: Claims
    snapshots: Snapshots
    artifacts: Artifacts
    beliefs: BeliefStore
    results: Results
    plans: Plans


def _nobody(delta: Delta) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who is told of what a driver does: of answers while they are made, of what is stored, and of
    what goes from one run to another."""

    hear: Callable[[Delta], None] = _nobody
    tell: Tell | None = None
    post: Post | None = None


class Driver:
    """Drives one run at a time per call, as far as it goes without help from outside."""

    def __init__(
        self,
        stores: Stores,
        chance: tuple[Clock, Entropy],
        definitions: Definitions,
        context: ContextSource,
        listeners: Listeners | None = None,
    ) -> None:
        self._stores = stores
        self._clock, self._entropy = chance
        self._definitions = definitions
        self._context = context
        listeners = listeners or Listeners()
        self._hear, self._tell = listeners.hear, listeners.tell
        self._selecting = Selecting(stores.beliefs, self._entropy.token)
        self._around = Surroundings(
            self._take_in, self._expire, self._sinks, self._room, listeners.post
        )
        self._rooms: dict[tuple[str, str], asyncio.Semaphore] = {}
        self._crews: dict[str, Crew] = {}
        self._heeding: set[str] = set()
        self._notices = Notices(self._clock)
        self._warm: OrderedDict[str, Opened] = OrderedDict()
        self._objects: dict[str, dict[tuple[str, str], Any]] = {}
        self._interrupted: set[str] = set()
        self._begun: dict[str, Loaded] = {}

    def adopt(self, run: str, loaded: Loaded) -> None:
        """Drive a run that was begun here with the very code that it was begun with."""
        self._begun[run] = loaded

    async def drive(self, run: str) -> datetime | None:
        """Take in what came, then decide and act until the run ends or must wait.

        Raises:
            Conflict: the log holds something else than it should, and nobody else drives the run.
            DefinitionError: some agent of it cannot answer here.
            RunBusy: another process holds the run.
        """
        async with self._held(run):
            try:
                opened = await self._open(run)
                self._objects[run] = opened.journal.objects
                with self._notices.around(opened.journal.state, opened.began):
                    await self._take_in(opened)
                    await self._advance(opened)
            except asyncio.CancelledError:
                self._interrupted.add(run)
                raise
            self._put_away(run, opened)
        return due(opened.journal)

    async def take_in(self, run: str) -> None:
        """Only put on record what came from outside."""
        async with self._held(run):
            opened = await self._open(run, resume=False)
            await self._take_in(opened)
            rest(opened.journal)
            await opened.journal.commit()

    @asynccontextmanager
    async def _held(self, run: str) -> AsyncGenerator[None]:
        """Hold a run while the context is open.

        Raises:
            Conflict: the log refused what was written, and nobody else holds the run: a fault.
            RunBusy: somebody else holds it, from the beginning or by now.
        """
        claims = self._stores.claims
        try:
            async with claims.claim(run):
                yield
        except Conflict as error:
            if await claims.held(run):
                raise RunBusy(f"Run {run!r} goes on in another process. {error}") from error
            raise

    async def _open(self, run: str, *, resume: bool = True) -> Opened:
        """The run as its log has it now; a drive that was cut off is taken up with a mark."""
        opened = self._warm.pop(run, None) or await self._thaw(run)
        journal = opened.journal
        if resume and opened.loaded.lacking:
            raise DefinitionError(journal.workflow.name, opened.loaded.lacking)
        missed = await self._stores.log.read(run, journal.state.position)
        journal.catch_up(missed)
        if not opened.driven:
            _check_secrets(journal)
        ours = opened.driven or run in self._interrupted
        self._interrupted.discard(run)
        if resume and not ours and _is_cut_off(opened):
            mark = RunResumed(opened.loaded.changed_code)
            journal.record(f"resumed@{journal.state.position}", mark)
            await journal.commit()
        if not (opened.driven or self._stores.artifacts.follows_log):
            await self._index(journal, missed)
        if not (opened.driven or self._selecting.follows_log):
            await self._selecting.learn(missed)
        opened.driven = True
        return opened

    async def _index(self, journal: Journal, missed: Sequence[Event]) -> None:
        """Put on the board what somebody may have stored without coming to this."""
        if journal.state.form == Reacting.form and journal.state.status not in _AT_REST:
            await index(self._stores.artifacts, missed)

    async def _thaw(self, run: str) -> Opened:
        """The run as its last snapshot has it, or with nothing on record."""
        ends = await self._stores.log.ends(run=run)
        if not ends:
            raise UnknownRun(run)
        loaded = self._begun.get(run) or await self._definitions.restore(ends[0][0].data)
        kept = await self._stores.snapshots.load(run)
        state = kept and thaw(loaded.workflow, kept[1])
        frozen = state.position if state else 0
        state = state or fresh(run, loaded.workflow, loaded.guards)
        secrets = await self._secrets(run, loaded, ends[0][0].data)
        verbose = self._context.is_verbose
        objects = self._objects.get(run)
        is_board = loaded.workflow.form == "reaction"
        tells = [self._tell] if self._tell and is_board else []
        tells += [] if self._selecting.follows_log else [self._selecting.learn]
        log = observed(loaded.staff, self._stores.log, *tells)
        journal = Journal(
            log,
            self._clock,
            loaded,
            state,
            secrets,
            objects=objects,
            verbose=verbose,
        )
        artifacts, began = self._stores.artifacts, ends[0][0].at
        return Opened(journal, loaded, artifacts, self._selecting, frozen, began)

    async def _secrets(self, run: str, loaded: Loaded, started: RunStarted) -> Secrets:
        base = base_context(run, started)
        variables = loaded.workflow.variables
        return Secrets(await self._context.secrets(variables, base, loaded.database))

    def _put_away(self, run: str, opened: Opened) -> None:
        """Keep a run that waits while there is room, and its objects as long as this process."""
        status = opened.journal.state.status
        if status in ENDED or not opened.journal.objects:
            self._objects.pop(run, None)
        if status in ENDED:
            self._begun.pop(run, None)
        if status == "paused":
            self._warm[run] = opened
            if len(self._warm) > WARM:
                self._warm.popitem(last=False)

    async def _take_in(self, opened: Opened) -> None:
        """Put messages on record; an answer that comes when its time is over comes too late."""
        journal = opened.journal
        self._expire(opened)
        for id, message in await self._stores.inbox.pending(journal.state.run):
            if isinstance(message, Publish) and (why := await self._refusal(message)):
                journal.record(id, ArtifactRefused(message.artifact.id, why))
            else:
                put_on_record(journal, id, message)
        await journal.commit()

    async def _refusal(self, message: Publish) -> str:
        """Why something cannot be published: it would keep the run from ever being stored again."""
        try:
            await already(self._stores.artifacts, message.artifact)
        except ArtifactExists as error:
            return str(error)
        return ""

    async def _advance(self, opened: Opened) -> None:
        """Decide and act until there is nothing to do."""
        journal, state = opened.journal, opened.journal.state
        await self._settle(opened)
        try:
            if state.ephemeral and state.status not in _AT_REST:
                await opened.hooks.restore()
            if state.form == "reaction":
                await self._react(opened)
            elif state.form == "flow":
                await self._flow(opened)
            else:
                await self._converse(opened)
        except Waiting:
            await self._settle(opened)
        rest(journal)
        await journal.commit()

    async def _converse(self, opened: Opened) -> None:
        """One thing after the other until the run ends or waits."""
        journal, state = opened.journal, opened.journal.state
        while state.status not in _AT_REST:
            await self._step(opened)
            if state.timers or state.question or journal.is_unsettled:
                await self._settle(opened)
            if state.position >= max(2 * opened.frozen, FREEZE):
                await self._freeze(opened)

    async def _react(self, opened: Opened) -> None:
        """Let artifacts decide until there is nothing to do; mail is noticed meanwhile."""
        state = opened.journal.state
        crew = self._crews[state.run] = Crew()
        try:
            if state.status not in ENDED:
                await Reactions(opened, self._around, crew).drive()
        finally:
            del self._crews[state.run]
        await self._freeze(opened)

    async def _flow(self, opened: Opened) -> None:
        """Let a flow go through its steps until there is nothing to do."""
        state = opened.journal.state
        crew = self._crews[state.run] = Crew()
        self._heeding.add(state.run)
        try:
            if state.status not in ENDED:
                means = Means(self._around, crew, self._entropy, self._stores.results)
                await Flows(opened, means).drive()
        finally:
            del self._crews[state.run]
            self._heeding.discard(state.run)
        await self._freeze(opened)

    def heeds(self, run: str) -> bool:
        """Whether a drive of a run looks at what came while it goes on, and does as it says."""
        return run in self._heeding

    def keeps(self, run: str) -> bool:
        """Whether a run rests here, and may go on."""
        return run in self._warm

    def flushes(self, run: str) -> bool:
        """Whether a run that rests will go on by itself soon: a batch of it has a time."""
        opened = self._warm.get(run)
        workflow = opened.journal.workflow if opened else None
        return (
            opened is not None
            and isinstance(workflow, Reacting)
            and workflow.flushes(opened.journal.state)
        )

    def rouse(self, run: str) -> None:
        """Let a drive that waits for its own turns look at what came from outside."""
        if run in self._crews:
            self._crews[run].rouse()

    def _room(self, opened: Opened, agent: str) -> AbstractAsyncContextManager[None]:
        """Room for one more turn of an agent, over all runs of this process."""
        most = opened.loaded.staff[agent].most
        if most is None:
            return nullcontext()
        key = (opened.journal.workflow.name, agent)
        return _entered(self._rooms.setdefault(key, asyncio.Semaphore(most)))

    async def _step(self, opened: Opened) -> None:
        """The next thing that happens in a run."""
        state, hooks = opened.journal.state, opened.hooks
        ends = ending(state) if state.cancel or state.failure or state.ending else ""
        if ends == "cancelled":
            await end_cancelled(opened.journal, hooks)
        elif ends == "failed" and not state.open:
            await end_failed(opened.journal, hooks)
        else:
            if not state.turns:
                await hooks.before_chat()
                await opened.offer()
            if state.failure is None or state.open:  # a turn that cannot go on comes to its end
                await self._act(opened, escalation(state) or opened.journal.workflow.decide(state))

    async def _act(self, opened: Opened, decision: Decision) -> None:
        journal = opened.journal
        for id, fact in decision.facts:
            journal.record(id, fact)
        match decision:
            case TakeTurn(agent=agent):
                await self._take(opened, agent)
            case Select(id=id, agent=meant):
                await opened.select(id, meant)
            case Ask(question=question):
                ask(journal, question)
            case Finish(reason=reason):
                await opened.hooks.after_chat("finished")
                journal.record("end", RunFinished(reason))
            case Draw(id=id, among=among):
                drawn = among[self._entropy.below(len(among))]
                await journal.put(id, ChanceDrawn(among, drawn))
            case Pick():
                await pick(journal, opened.loaded, decision)
            case _:
                raise AssertionError(f"a conversation does not decide on {decision!r}")

    async def _take(self, opened: Opened, agent: str) -> None:
        """Let an agent take its turn, if there is budget for it."""
        journal = opened.journal
        number = next(iter(journal.state.open), journal.state.turns + 1)
        if begin_turn(journal, number):
            brief = TalkBrief(opened, number, agent)
            await opened.turns.take(brief, self._sinks(opened, number, agent))
            await opened.selections.settle()

    def _sinks(self, opened: Opened, turn: int, agent: str) -> Sinks:
        """Send text deltas to listeners, unless something in them may have to be hidden."""
        state = opened.journal.state
        if opened.hides(agent):
            return _hushed

        def sinks(call: int) -> TextSink:
            said = 0

            def sink(text: str | None) -> None:
                nonlocal said
                if text is None:
                    said = 0
                elif text:
                    self._hear(Delta(state.run, turn, agent, said, text, call))
                    said += len(text)

            return sink

        return sinks

    async def _settle(self, opened: Opened) -> None:
        """Let timers expire that are due, and functions say what they derive."""
        journal, state = opened.journal, opened.journal.state
        if state.timers or state.question:
            self._expire(opened)
        if journal.is_unsettled:
            await journal.settle()

    def _expire(self, opened: Opened) -> None:
        if opened.journal.state.status not in ENDED:
            expire(opened.journal, self._clock.now())

    async def _freeze(self, opened: Opened) -> None:
        """Keep the state; each time at twice the length, so that no turn pays for history."""
        state = opened.journal.state
        if state.open or state.steps or state.position < max(2 * opened.frozen, FREEZE):
            return
        await opened.journal.commit()
        await self._stores.snapshots.save(state.run, state.position, freeze(state))
        opened.frozen = state.position


def _is_cut_off(opened: Opened) -> bool:
    """Whether a drive of the run did not come to rest, or its code changed while it rested."""
    state = opened.journal.state
    if state.status == "paused":
        return bool(opened.loaded.changed_code)
    return state.status not in ENDED and not is_untouched(state)


def _check_secrets(journal: Journal) -> None:
    """Refuse to go on with a secret that cannot be read any more: a mark is not its value.

    Raises:
        MissingContext: a source does not give its secret.
    """
    lost = [
        f"{name!r} is secret, and its source does not give it now"
        for name, definition in journal.workflow.variables.definitions.items()
        if definition.secret and journal.state.values.get(name) and name not in journal.secrets
    ]
    if lost:
        raise MissingContext(lost, f"Run {journal.state.run!r} cannot go on")


_AT_REST = ENDED | {"paused"}


@asynccontextmanager
async def _entered(room: asyncio.Semaphore) -> AsyncGenerator[None]:
    async with room:
        yield


def _hushed(call: int) -> TextSink:
    return discard
