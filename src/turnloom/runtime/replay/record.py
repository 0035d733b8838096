"""The world of a run as its log has it, read event by event."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar, cast

import msgspec

from turnloom.agents.events import (
    AnswerRefused,
    EffectDone,
    MessageSent,
    ModelLimited,
    ModelRetried,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
)
from turnloom.agents.logic.folding import question_of
from turnloom.board.events import ArtifactPublished, ArtifactRefused
from turnloom.flow.events import (
    StateMigrated,
    StepCompensated,
    StepFailed,
    StepRetried,
)
from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.threads import UserCalls
from turnloom.log.events import CancelRequested, RunForked, RunLimited, RunResumed, RunRetried
from turnloom.log.logic import plain_id
from turnloom.log.ports import Effect
from turnloom.log.spec import Event, Fact
from turnloom.reaction.events import ArtifactReceived, BatchClosed, RetryAsked
from turnloom.runs.actions import Action, Cross, Forward, Judge, OpenRun, Work
from turnloom.runtime.calls import Parked
from turnloom.runtime.journal import FOLLOWS, Journal
from turnloom.runtime.replay.secrets import fact_of
from turnloom.runtime.replay.spec import Difference
from turnloom.runtime.world import RUN, CallFailed, RecordedError, RecordedFailure

# Facts with which another drive begins.
BOUNDARIES = (RunResumed, RunLimited, StateMigrated, RunRetried, RunForked)

# How ids of events begin with which a turn ends, after the turn's own.
ENDING = ("end", "spent", "scarcity", "after_agent", "loop")

T = TypeVar("T")

# The error of a turn that took too long.
LATE = "TimeoutError: It took over"

# The error of a turn whose engine cancelled its task.
CANCELLED_ITSELF = "CancelledError: it cancelled its own task"

# The actor of what time causes.
CLOCK = "clock"

# Facts that a call records while it runs; it may be cut off meanwhile.
IN_CALLS = (EffectDone, ModelLimited, ModelRetried)


class Stopped(Interrupted):
    """The drive ends here: the log does, another process continued, or the two differ."""


class CancelledItself(Exception):
    """Work that cancelled its own task."""


class Gate:
    """A place at which work waits for its next event."""

    def __init__(self, prefixes: tuple[str, ...], key: str = "") -> None:
        self.prefixes = prefixes
        self.key = key
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fits(self, id: str) -> int:
        """How well the id of an event fits: the length of what it begins with, or 0."""
        found = (len(each) for each in self.prefixes if _is_in(each, id))
        return max(found, default=0)

    def fits_in(self, scope: str) -> bool:
        """Whether an effect of a scope waits here."""
        return bool(self.key) and _is_in(scope, self.key)

    def cancel(self) -> None:
        """Let the work cancel itself."""
        self.opened.set_exception(CancelledItself())

    def open(self) -> None:
        """Let the work continue."""
        if not self.opened.done():
            self.opened.set_result(None)


def keys_of(work: Work) -> tuple[str, ...]:
    """The beginnings of the ids of a piece of work: those of its step and of its turn."""
    return (work.key, f"t{work.turn}") if work.turn else (work.key,)


def _comes_from(event: Event, action: Action) -> bool:
    """Whether an action that takes time records this event first."""
    match action:
        case Forward(artifact=artifact, subscription=to):
            return event.id == f"forward/{artifact.id}/{to}"
        case OpenRun(run=run):
            return event.id == f"set/{run}/opened"
        case Judge(artifact=artifact):
            return event.id.startswith(f"offer/{artifact}")
        case Cross(strand=strand):
            return getattr(event.data, "strand", None) == strand
        case _:
            return False


def _is_in(prefix: str, id: str) -> bool:
    if not id.startswith(prefix):
        return False
    return id == prefix or prefix.endswith(FOLLOWS) or id[len(prefix)] in f"./{FOLLOWS}"


class RecordedWorld:
    """The log of a run as a world: every effect leaves what it left, in the order of the log.

    One piece of work runs at a time: the one whose event is next. When nothing can run,
    `on_idle` opens the gate of that work. What fits no gate is up to the loop of the run, which
    `rouse` wakes; after that, work that has nothing left to record may end.
    """

    def __init__(self, events: Sequence[Event], calls: UserCalls) -> None:
        # The events as they are stored, and under their plain ids, without the marks of retries.
        self.stored = events
        self.events = [*_plain(events)]
        self.position: int = 0
        # The id that the log has for an id of the run.
        self.named: Callable[[str], str] = str
        self.difference: Difference | None = None
        self.over = asyncio.Event()
        self.rouse: Callable[[], None] = _nothing
        self.journal: Journal
        self._calls = calls
        self._gates: list[Gate] = []
        self._deadlines: dict[str, asyncio.Timeout] = {}
        self._answers: dict[str, asyncio.Timeout] = {}
        self._roused_at = -1
        self._retries = [n for n, each in enumerate(events) if isinstance(each.data, RunRetried)]
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, event in enumerate(self.events):
            self._places[event.id].append(place)

    @property
    def is_over(self) -> bool:
        """Whether the drive has to end."""
        return self.over.is_set()

    @property
    def next(self) -> Event | None:
        """The next event of the log."""
        return self.events[self.position] if self.position < len(self.events) else None

    def begin(self, rouse: Callable[[], None]) -> None:
        """Begin a drive."""
        self.rouse = rouse
        self.over.clear()
        self._gates.clear()
        self._deadlines.clear()
        self._answers.clear()
        self._roused_at = -1

    def end(self) -> None:
        """End a drive: nothing is recorded until the next one begins."""
        self.over.set()

    def pass_by(self) -> None:
        """Go to the next event; the loop of the run takes it in if it came from outside."""
        self.position += 1
        event = self.next
        if event is not None and is_outside(event):
            self.rouse()

    def diverge(self, decided: Event | None) -> None:
        """Note the first difference."""
        self.end()
        if self.difference is None:
            self.difference = Difference(self.next, decided)

    async def perform(self, key: str, effect: Effect, scope: str) -> Sequence[Fact]:
        """The facts that an effect left, or its question or error."""
        if key.endswith("/cached") and self._place(key) is None:
            await self.reach(RUN)
            return ()
        while True:
            self._check_answered(scope)
            await self._wait(Gate((scope,), key))
            event = self.next
            assert event is not None
            if isinstance(event.data, QuestionAsked):
                asked = cast(QuestionAsked, fact_of(self.journal, event))
                raise Parked(question_of(asked, 0))
            if is_meanwhile(event, key, scope):
                self.journal.record(event.id, fact_of(self.journal, event), event.actor)
                continue
            error = self._error(key, scope)
            if error is not None:
                raise CallFailed(error, [*self._facts(f"{key}/left")])
            return [*self._facts(key)]

    def _check_answered(self, scope: str) -> None:
        """Park a call that is entered again before its question was answered."""
        for id, question in self.journal.state.questions.items():
            if id.startswith(f"{scope}/ask."):
                raise Parked(question)

    async def send(self, effect: Callable[[], Any]) -> None:
        """Do nothing: the effect left nothing in the log."""

    async def reach(self, scope: str) -> None:
        """Wait until the next event is one of a scope, or is nobody else's."""
        await self._wait(Gate(self._prefixes(scope)))

    async def decide(self, decide: Callable[[], Action | None]) -> Action | None:
        """The next action: now, if it is what the run records next while other work goes on; else
        when nothing else is next."""
        action = decide()
        if action is not None and not action.facts and self._is_next(action):
            return action
        position = self.position
        await self.reach(RUN)
        return decide() if self.position == position else None  # other work ran: look again

    def _is_next(self, action: Action) -> bool:
        """Whether the next event of the run itself comes from an action that takes time."""
        open_work = self.journal.workflow.work(self.journal.state)
        work = Gate(tuple(key for each in open_work for key in self._keys(each)))
        rest = itertools.islice(self.events, self.position, None)
        event = next((event for event in rest if not work.fits(event.id)), None)
        return event is not None and _comes_from(event, action)

    def deadline(self, scope: str, seconds: float | None) -> AbstractAsyncContextManager[Any]:
        """A timeout that expires when the log says so."""
        return self._limited(scope)

    @asynccontextmanager
    async def _limited(self, scope: str) -> AsyncGenerator[None]:
        self._deadlines[scope] = limit = asyncio.timeout(None)
        try:
            async with limit:
                yield
        finally:
            self._deadlines.pop(scope, None)

    async def answer(self, scope: str, make: Callable[[], Awaitable[T]]) -> T:
        """The answer of a turn.

        Raises:
            RecordedFailure: the log says that the turn failed.
        """
        self._answers[scope] = limit = asyncio.timeout(None)
        try:
            async with limit:
                return await make()
        except TimeoutError:
            if not limit.expired():
                raise
            raise RecordedFailure(self.error_of(scope)) from None
        finally:
            self._answers.pop(scope, None)

    def error_of(self, turn: str, *, only: bool = False) -> str:
        """The error with which a turn will end; `only` if nothing else of it comes before that."""
        place = None if only and not self._is_ending(turn) else self._place(f"{turn}/end")
        end = None if place is None else self.events[place].data
        return end.error if isinstance(end, TurnFinished) else ""

    def _prefixes(self, scope: str) -> tuple[str, ...]:
        """The ids of a scope; a step and the turn of its agent are one."""
        if scope == RUN:
            return ()
        for work in self.journal.workflow.work(self.journal.state):
            if scope in (keys := self._keys(work)):
                return keys
        return (scope,)

    def _keys(self, work: Work) -> tuple[str, ...]:
        """The beginnings of the ids of a piece of work in the log."""
        return keys_of(work)

    async def _wait(self, gate: Gate) -> None:
        if self.is_over:
            raise Stopped
        if self.next is not None and self._best() is None and self._fits(gate, self.next):
            return
        self._gates.append(gate)
        try:
            await gate.opened
        except CancelledItself:
            raise asyncio.CancelledError from None
        finally:
            if gate in self._gates:
                self._gates.remove(gate)
        if self.is_over:
            raise Stopped

    def _fits(self, gate: Gate, event: Event) -> int:
        """How well an event fits a gate. That of an effect opens for what it left only, and none
        for the end of a turn that the run itself interrupted."""
        if isinstance(event.data, TurnFinished) and event.data.status == "cancelled":
            return 0
        fit = gate.fits(event.id)
        if not fit or not gate.key or is_meanwhile(event, gate.key, gate.prefixes[0]):
            return fit
        if isinstance(event.data, QuestionAsked):
            return fit
        is_left = self._place(gate.key) is not None or self._place(f"{gate.key}.0") is not None
        return fit if is_left or self._error(gate.key, gate.prefixes[0]) is not None else 0

    def _best(self) -> Gate | None:
        """The gate of the work whose event is next."""
        event = self.next
        if event is None:
            return None
        fits = [(self._fits(gate, event), gate) for gate in self._gates]
        fit, best = max(fits, key=lambda each: each[0], default=(0, None))
        return best if fit else None

    def on_idle(self) -> bool:
        """Let the work continue whose event is next; returns whether something can run."""
        if self._calls.running or self.is_over:
            return False
        event = self.next
        if event is None or isinstance(event.data, BOUNDARIES):
            self.end()
        elif (gate := self._best()) is not None:
            gate.open()
        elif not self._expire(event):
            self._turn_to_run(event)
        return True

    def _turn_to_run(self, event: Event) -> None:
        """Let the run itself continue, since no work fits; then work that left nothing."""
        gate = next((each for each in self._gates if not each.prefixes), None)
        if gate is not None and not isinstance(event.data, IN_CALLS):
            gate.open()
        elif self._roused_at != self.position:
            self._roused_at = self.position
            self.rouse()
        elif isinstance(event.data, IN_CALLS):
            self.journal.record(event.id, fact_of(self.journal, event), event.actor)
        elif not self._fail(event):
            self._let_end(event)

    def _expire(self, event: Event) -> bool:
        """Let the deadline of the work expire that the next event belongs to."""
        for scope, limit in self._deadlines.items():
            is_late = self.error_of(scope).startswith(LATE) and not limit.expired()
            if is_late and Gate(self._prefixes(scope)).fits(event.id):
                limit.reschedule(asyncio.get_running_loop().time())
                return True
        return False

    def _is_ending(self, turn: str) -> bool:
        """Whether the log has only the end of a turn from here on."""
        rest = itertools.islice(self.events, self.position, None)
        own = next((event.id for event in rest if _is_in(turn, event.id)), "")
        return own.removeprefix(f"{turn}/").startswith(ENDING)

    def _fail(self, event: Event) -> bool:
        """Let the turn fail of which the log has only the end; returns whether there is one."""
        turn = event.id.partition("/")[0]
        error = self.error_of(turn)
        if not error:
            return False
        if error == CANCELLED_ITSELF:
            gate = next((gate for gate in self._gates if gate.fits_in(turn)), None)
            if gate is not None:
                gate.cancel()
            return gate is not None
        limit = self._answers.get(turn)
        if limit is None or limit.expired():
            return False
        limit.reschedule(asyncio.get_running_loop().time())
        return True

    def _let_end(self, event: Event) -> None:
        """Let work continue that does not wait for an effect; without any, or before a message, the
        drive was interrupted here, and the next one decides."""
        gate = next((each for each in self._gates if not each.key), None)
        if gate is not None and not is_mail(event):
            gate.open()
        else:
            self.end()

    def _place(self, id: str) -> int | None:
        """The place of an event of this id in the rest of the log, up to the next retry."""
        end = next((place for place in self._retries if place >= self.position), len(self.events))
        places = self._places.get(id, ())
        return next((place for place in places if self.position <= place < end), None)

    def _facts(self, key: str) -> Iterator[Fact]:
        """The facts that an effect left under its key."""
        place, number = self._place(key), 0
        if place is None:
            place = self._place(f"{key}.0")
        while place is not None:
            event = self.events[place]
            yield fact_of(self.journal, event)
            number += 1
            place = None if event.id == key else self._place(f"{key}.{number}")

    def _error(self, key: str, scope: str) -> RecordedError | None:
        """The error with which an attempt of a step ended."""
        for id in (f"{key}.0", f"{key}/again", f"{scope}/failed"):
            place = self._place(id)
            fact = None if place is None else self.events[place].data
            match fact:
                case StepCompensated(error=name, message=message) if name:
                    return RecordedError(name, message)
                case StepRetried(error=name, message=message):
                    return RecordedError(name, message)
                case StepFailed(error=name, message=message, stack=stack, handler=handler):
                    return RecordedError(name, message, stack, handler)
                case None:
                    continue
                case _:
                    return None
        return None


def _plain(events: Sequence[Event]) -> Iterator[Event]:
    life = 0
    for event in events:
        id = plain_id(event.id, life)
        yield event if id == event.id else msgspec.structs.replace(event, id=id)
        life += isinstance(event.data, RunRetried)


def is_outside(event: Event) -> bool:
    """Whether a message or time caused an event."""
    return event.actor == CLOCK or is_mail(event)


def is_mail(event: Event) -> bool:
    """Whether an event came from outside."""
    match event.data:
        case QuestionAnswered() | AnswerRefused() | CancelRequested() | ArtifactRefused():
            return True
        case MessageSent():
            return True
        case ArtifactReceived() | RetryAsked():
            return True
        case ArtifactPublished(turn=turn):
            return not turn
        case BatchClosed():
            return event.id.startswith("close/")
        case _:
            return False


def is_meanwhile(event: Event, key: str, scope: str) -> bool:
    """Whether an effect recorded this while it ran."""
    if isinstance(event.data, IN_CALLS):
        return True
    return event.id in (f"{key}/exceeded", f"{key}/window") or (
        scope == key and event.id.startswith(f"{key}/")
    )


def _nothing() -> None:
    """Wake no loop."""
