"""Moves runs: opens them from their log, takes in what came from outside, decides and acts."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from weft.agents.events import (
    AnswerRefused,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
    UserText,
)
from weft.agents.spec import USER, Ask, Decision, Engine, Finish, TakeTurn
from weft.errors import MissingContext, UnknownRun
from weft.log.events import (
    CancelRequested,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
)
from weft.log.ports import Clock, EventLog
from weft.runtime.logic import ENDED, base_context, freeze, fresh, thaw
from weft.runtime.ports import Claims, Definitions, Inbox, Snapshots
from weft.runtime.service.journal import Journal
from weft.runtime.service.turn import take_turn
from weft.runtime.spec import Loaded, Message, Reply, Stop
from weft.variables.events import TimerExpired
from weft.variables.logic.secrets import Secrets
from weft.variables.service import ContextSource

# Runs at rest that are kept in memory, so that waking one need not read its log again.
WARM = 256

# How many events a run has before its state is kept for the first time.
FREEZE = 1000


@dataclass(slots=True)
class Opened:
    """A run in memory: its journal and the engines of its agents."""

    journal: Journal
    loaded: Loaded
    frozen: int
    driven: bool = False


@dataclass(frozen=True, slots=True)
class Stores:
    """Where a driver finds runs and leaves them."""

    log: EventLog
    inbox: Inbox
    claims: Claims
    snapshots: Snapshots


class Driver:
    """Drives one run at a time per call, as far as it goes without help from outside."""

    def __init__(
        self, stores: Stores, clock: Clock, definitions: Definitions, context: ContextSource
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._definitions = definitions
        self._context = context
        self._warm: OrderedDict[str, Opened] = OrderedDict()
        self._interrupted: set[str] = set()

    async def drive(self, run: str) -> datetime | None:
        """Take in what came, then decide and act until the run ends or must wait.

        Raises:
            Conflict: another driver won; this one stops.
            RunBusy: another process holds the run.
        """
        async with self._stores.claims.claim(run):
            try:
                opened = await self._open(run)
                await self._take_in(opened.journal)
                await self._advance(opened)
            except asyncio.CancelledError:
                self._interrupted.add(run)
                raise
            self._keep_warm(run, opened)
        state = opened.journal.state
        return None if state.status in ENDED else min(state.timers.values(), default=None)

    async def take_in(self, run: str) -> None:
        """Only put on record what came from outside."""
        async with self._stores.claims.claim(run):
            opened = await self._open(run, resume=False)
            await self._take_in(opened.journal)

    async def _open(self, run: str, *, resume: bool = True) -> Opened:
        """The run as its log has it now; a drive that was cut off is taken up with a mark."""
        opened = self._warm.pop(run, None) or await self._thaw(run)
        journal = opened.journal
        journal.catch_up(await self._stores.log.read(run, journal.state.position))
        if not opened.driven:
            _check_secrets(journal)
        ours = opened.driven or run in self._interrupted
        self._interrupted.discard(run)
        changed = opened.loaded.changed_code if journal.state.status == "paused" else ()
        if resume and not ours and (journal.state.status == "running" or changed):
            mark = RunResumed(opened.loaded.changed_code)
            journal.record(f"resumed@{journal.state.position}", mark)
            await journal.commit()
        opened.driven = True
        return opened

    async def _thaw(self, run: str) -> Opened:
        """The run as its last snapshot has it, or with nothing on record."""
        ends = await self._stores.log.ends(run=run)
        if not ends:
            raise UnknownRun(run)
        loaded = await self._definitions.restore(ends[0][0].data)
        kept = await self._stores.snapshots.load(run)
        state = kept and thaw(loaded.workflow, kept[1])
        frozen = state.position if state else 0
        state = state or fresh(run, loaded.workflow)
        secrets = await self._secrets(run, loaded, ends[0][0].data)
        verbose = self._context.is_verbose
        journal = Journal(self._stores.log, self._clock, loaded, state, secrets, verbose=verbose)
        return Opened(journal, loaded, frozen)

    async def _secrets(self, run: str, loaded: Loaded, started: RunStarted) -> Secrets:
        base = base_context(run, started)
        variables = loaded.workflow.variables
        return Secrets(await self._context.secrets(variables, base, loaded.database))

    def _keep_warm(self, run: str, opened: Opened) -> None:
        if opened.journal.state.status == "paused":
            self._warm[run] = opened
            while len(self._warm) > WARM:
                self._warm.popitem(last=False)

    async def _take_in(self, journal: Journal) -> None:
        for id, message in await self._stores.inbox.pending(journal.state.run):
            _put_on_record(journal, id, message)
        await journal.commit()

    async def _advance(self, opened: Opened) -> None:
        """Decide and act until there is nothing to do."""
        journal, state = opened.journal, opened.journal.state
        await self._settle(opened)
        while state.status not in _AT_REST:
            if state.cancel is not None:
                _cancel(journal)
            else:
                await _act(journal, opened.loaded.engines, journal.workflow.decide(state))
            await self._settle(opened)
            if state.position >= max(2 * opened.frozen, FREEZE) and state.open is None:
                await self._freeze(opened)
        _rest(journal)
        await journal.commit()

    async def _settle(self, opened: Opened) -> None:
        """Let timers expire that are due, and functions say what they derive."""
        journal = opened.journal
        if journal.state.timers and journal.state.status not in ENDED:
            _expire(journal, self._clock.now())
        await journal.settle()

    async def _freeze(self, opened: Opened) -> None:
        """Keep the state; each time at twice the length, so that no turn pays for history."""
        await opened.journal.commit()
        state = opened.journal.state
        await self._stores.snapshots.save(state.run, state.position, freeze(state))
        opened.frozen = state.position


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


async def _act(journal: Journal, engines: Mapping[str, Engine], decision: Decision) -> None:
    for id, fact in decision.facts:
        journal.record(id, fact)
    match decision:
        case TakeTurn(agent=agent):
            turn = await take_turn(journal, engines, agent)
            if turn.status == "failed":
                journal.record("end", RunFailed(f"turn {turn.turn} of {agent} failed", turn.error))
        case Ask(question=question):
            journal.record(question.id, QuestionAsked(question.id, question.prompt, question.to))
            journal.record(f"{question.id}/wait", RunPaused(question.id))
        case Finish(reason=reason):
            journal.record("end", RunFinished(reason))


def _expire(journal: Journal, now: datetime) -> None:
    due = sorted((at, timer) for timer, at in journal.state.timers.items() if at <= now)
    for at, timer in due:
        journal.record(f"{timer}@{at.isoformat()}", TimerExpired(timer), actor="clock")


def _rest(journal: Journal) -> None:
    """Say what a run waits for, if something came in between that did not end its waiting."""
    question = journal.state.question
    if question is not None and journal.state.status == "paused" and journal.is_open:
        journal.record(f"{question.id}/wait@{journal.state.position}", RunPaused(question.id))


def _cancel(journal: Journal) -> None:
    wish, turn = journal.state.cancel, journal.state.open
    assert wish is not None
    if turn is not None:
        journal.record(f"t{turn.number}/end", TurnFinished(turn.number, turn.agent, "cancelled"))
    journal.record("end", RunCancelled(wish.by, wish.reason))


def _put_on_record(journal: Journal, id: str, message: Message) -> None:
    state = journal.state
    match message:
        case Stop(by=by, reason=reason):
            if state.status not in ENDED:
                journal.record(id, CancelRequested(by, reason), actor=by)
        case Reply(question=question, value=value, by=by):
            if state.question is None or state.question.id != question:
                journal.record(id, AnswerRefused(question, by, "the question is not open"), by)
            else:
                journal.record(id, QuestionAnswered(question, value, by), actor=by)
                journal.record(f"{id}/text", UserText(USER, str(value)), actor=by)
