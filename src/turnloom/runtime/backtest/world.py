"""A recorded run as the world of an edited definition."""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

import msgspec

from turnloom.agents.events import ModelCalled, QuestionAsked, TurnStarted
from turnloom.agents.logic.folding import question_of
from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.flow.events import StepStarted
from turnloom.hooks.events import (
    LifecycleToolCall,
    LifecycleToolError,
    LifecycleToolResult,
    MessageHookCalled,
    MessageHooked,
    MessageHookFailed,
)
from turnloom.kernel.threads import UserCalls
from turnloom.log.events import ENDS
from turnloom.log.ports import Effect
from turnloom.log.spec import Event, Fact, Intent
from turnloom.runs.actions import Action, Work
from turnloom.runtime.backtest.comparing import parts_of
from turnloom.runtime.backtest.findings import Findings
from turnloom.runtime.backtest.spec import Certainty, EndPoint
from turnloom.runtime.calls import Parked
from turnloom.runtime.replay.comparing import is_same_fact
from turnloom.runtime.replay.record import (
    BOUNDARIES,
    Gate,
    RecordedWorld,
    Stopped,
    is_mail,
    is_meanwhile,
    is_outside,
    keys_of,
)
from turnloom.runtime.replay.secrets import fact_of
from turnloom.runtime.world import RUN, CallFailed
from turnloom.variables.logic.conditions import UndecidedCondition

# A position at the end of an id, or before the parts of one.
_POSITION = re.compile(r"@\d+(?=$|[?./>~])")

# Scopes whose events are in order: turns, steps, and what the run itself calls.
_ORDERED = re.compile(r"(?:[ts]\d+|chat)\Z")

HOOKED = (
    LifecycleToolCall,
    LifecycleToolResult,
    LifecycleToolError,
    MessageHookCalled,
    MessageHooked,
    MessageHookFailed,
)

# Effects that read no variables: a model sees its frame only.
_BLIND = re.compile(r"/model(?:#\d+)?\Z|/loop\Z|/draw\Z|^chat/(?:pick|judge|server)|^(?:forward|set)/")

# Names a scope that the record does not have.
NOWHERE = "-"

# How the error of a turn begins that its run decided on.
DECIDED = ("BudgetExceeded", "TooManyMistakes", "TooManyRounds")


class EditedWorld(RecordedWorld):
    """The record of a run, asked by another definition than the one that made it.

    Effects are looked up by what is asked, in the order of the record. Events that the edited
    definition does not lead to are passed over; they count again if it leads to them later. Turns,
    steps and hooks may have other numbers than in the record.
    """

    def __init__(self, events: Sequence[Event], calls: UserCalls) -> None:
        super().__init__(events, calls)
        self.findings = Findings()
        self.written: list[Event] = []
        # Fills in for effects that the record does not hold.
        self.answer_unknown: Callable[[str, Effect], Awaitable[Sequence[Fact]]]
        # Fits recorded facts to the edited definition.
        self.adapt: Callable[[str, Sequence[Fact]], Sequence[Fact] | None]
        self._taken: set[int] = set()
        self._latest = 0
        self._gone: dict[int, Certainty] = {}
        self._names: dict[str, str] = {}
        self._learned: set[str] = set()
        self._missing: list[Gate] = []
        self._bounds = [n for n, each in enumerate(events) if isinstance(each.data, BOUNDARIES)]
        self._published = {
            each.data.artifact.id
            for each in events
            if isinstance(each.data, ArtifactPublished) and each.data.turn
        }
        self._spots: defaultdict[str, list[int]] = defaultdict(list)
        self._known: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place, event in enumerate(self.events):
            self._spots[_POSITION.sub("@", event.id)].append(place)
            if (identity := _identity(event)) is not None:
                self._known[identity].append(place)

    @property
    def past(self) -> Sequence[Event]:
        """The events that the edited definition led to so far."""
        return self.written

    # Names: the edited run may number turns, steps and hooks otherwise.

    def named(self, id: str) -> str:
        """The id that the record has for an id of the edited run."""
        if not self._names:
            return id
        for end in (len(id), *(at.start() for at in reversed([*re.finditer(r"[?./>@]", id)]))):
            if id[:end] in self._names:
                return f"{self._names[id[:end]]}{id[end:]}"
        return id

    def ours(self, id: str) -> str:
        """The id of the edited run for an id of the record."""
        for own, recorded in self._names.items():
            if id == recorded or (id.startswith(recorded) and id[len(recorded)] in "?./>@"):
                return f"{own}{id[len(recorded) :]}"
        return id

    def _keys(self, work: Work) -> tuple[str, ...]:
        return tuple(map(self.named, keys_of(work)))

    def _learn(self, event: Event) -> None:
        """Learn which turn, step or hook of the record an event begins."""
        identity = _identity(event)
        if identity is None:
            return
        own = _own_name(event)
        if own in self._learned and isinstance(event.data, HOOKED):
            return
        self._learned.add(own)
        place = next((each for each in self._known[identity] if each not in self._taken), None)
        recorded = self.events[place] if place is not None else None
        self._rename(own, _own_name(recorded) if recorded else f"{NOWHERE}{own}")
        if isinstance(event.data, StepStarted) and event.data.turn:
            turn = recorded.data.turn if recorded else 0
            name = f"t{turn}" if turn else f"{NOWHERE}t{event.data.turn}"
            self._rename(f"t{event.data.turn}", name)

    def _rename(self, own: str, recorded: str) -> None:
        if own != recorded or own in self._names:
            self._names[own] = recorded

    # Accepting what the edited run decides.

    def accept(self, event: Event) -> Event:
        """The event that takes effect when the edited run decides one.

        Raises:
            Stopped: the record ends here, or no longer applies.
        """
        if self.is_over:
            raise Stopped
        self._learn(event)
        opens = isinstance(event.data, BOUNDARIES)
        place = self.position if opens else self._place(self.named(event.id))
        if place is None or self._is_cut(place):
            upcoming = self.next
            if upcoming is None or isinstance(upcoming.data, BOUNDARIES) or place is not None:
                self.end()
                raise Stopped
            return self._write(self._added(event))
        recorded = self.events[place]
        self._take(place)
        self._check_speaker(recorded, event)
        self.findings.compare(recorded, event, recorded.seq, self.journal.state)
        if isinstance(event.data, ModelCalled) and event.data.request != recorded.data.request:
            self.findings.is_assumed = True
        return self._write(_merged(recorded, event))

    def _write(self, event: Event) -> Event:
        self.written.append(event)
        return event

    def _added(self, event: Event) -> Event:
        """Note an event that the record does not have."""
        fact, last = event.data, self.events[self._latest].seq
        match fact:
            case TurnStarted(turn=turn, agent=agent):
                self.stop(f"{agent} would have taken turn {turn}, which it did not", turn)
            case StepStarted(step=step, turn=turn):
                self.stop(f"step {step!r} would have run, which it did not", turn)
            case QuestionAsked(to=to, prompt=prompt):
                words = f": {prompt}" if prompt else ""
                self.stop(f"{to or 'the user'} would have been asked{words}")
            case _:
                self.findings.compare(None, event, last, self.journal.state)
        return event

    def _check_speaker(self, recorded: Event, event: Event) -> None:
        """Stop where another agent would have spoken."""
        fact, was = event.data, recorded.data
        if isinstance(fact, TurnStarted) and fact.agent != was.agent:
            why = f"{fact.agent} would have spoken instead of {was.agent}"
            self.end_at(why, fact.turn, recorded.seq)
            raise Stopped

    def _take(self, place: int) -> None:
        """Mark a recorded event as decided; what its scope recorded before is passed over."""
        self._taken.add(place)
        self._latest = place
        self._gone.pop(place, None)
        if place > self.position:
            scope = _scope(self.events[place].id)
            if _ORDERED.match(scope):
                self._pass_over(scope, place)
        self._advance()

    def _pass_over(self, scope: str, end: int) -> None:
        for place in range(self.position, end):
            event = self.events[place]
            if _scope(event.id) == scope and not is_outside(event):
                self._lose(place)

    def _lose(self, place: int) -> None:
        if place not in self._taken:
            self._gone.setdefault(place, self.findings.certainty)

    def _advance(self) -> None:
        before = self.position
        while self.position in self._taken or self.position in self._gone:
            self.position += 1
        event = self.next
        if self.position > before and event is not None and is_outside(event):
            self.rouse()

    def skip(self) -> None:
        """Pass over the next event of the record: nothing leads to it."""
        self._lose(self.position)
        self._advance()

    def beyond(self) -> Sequence[Event]:
        """The events after the last one that was decided, apart from the end of the run; others are
        passed over."""
        decided = [each for each in self._taken if self.events[each].kind not in ENDS]
        last = max(decided, default=-1)
        for place in range(self.position, last):
            self._lose(place)
        return [each for n, each in enumerate(self.events) if n > last and n not in self._taken]

    def note_end(self, rest: Sequence[Event]) -> None:
        """Note the first of the events that do not come any more, if nothing else differs."""
        if not self.findings.counts:
            first = next((each for each in rest if parts_of(each.data)), None)
            if first is not None:
                self.findings.compare_gone(first, self.findings.certainty)

    def lost_artifacts(self, ids: set[str]) -> set[str]:
        """Those of some artifacts that turns of the recorded run published, and not of this one."""
        made = self._published & ids
        return made - {
            each.data.artifact.id
            for each in (self.written if made else ())
            if isinstance(each.data, ArtifactPublished)
        }

    def close(self) -> None:
        """Note the recorded events that the edited definition did not lead to."""
        for place, certainty in self._gone.items():
            self.findings.compare_gone(self.events[place], certainty)

    def has(self, id: str) -> bool:
        """Whether the record has an event for an id of the edited run, from here on."""
        return self._place(self.named(id)) is not None

    def end_at(self, reason: str, turn: int = 0, seq: int = 0) -> None:
        """End the comparison: from here on, the recorded answers do not apply."""
        seq = seq or self._after_latest
        if self.findings.end is None:
            self.findings.end = EndPoint(seq, turn, reason)
        self.end()

    @property
    def _after_latest(self) -> int:
        """The position after the last recorded event that was decided."""
        return self.events[min(self._latest + 1, len(self.events) - 1)].seq

    def stop(self, reason: str, turn: int = 0) -> NoReturn:
        """End the comparison, and the drive.

        Raises:
            Stopped: always.
        """
        self.end_at(reason, turn)
        raise Stopped

    def undecide(self, name: str, unknown: Sequence[str], turn: int = 0) -> NoReturn:
        """End the comparison at a route that depends on something unknown.

        Raises:
            Stopped: always.
        """
        self.findings.undecide(name, self._after_latest, turn, tuple(unknown))
        self.stop(f"undecided: it depends on {', '.join(unknown)}", turn)

    # The world.

    async def perform(self, key: str, effect: Effect, scope: str) -> Sequence[Fact]:
        """The facts that an effect left, or its question or error; of an effect that the record
        does not hold, what can be assumed."""
        asked, inside = self.named(key), self.named(scope)
        if key.endswith("/cached") and self._place(asked) is None:
            await self.reach(RUN)
            return ()
        while True:
            self._check_answered(scope)
            gate = Gate((inside,), asked)
            if not self._holds(key, asked, inside):
                await self._wait_unknown(gate)
                return await self.answer_unknown(key, effect)
            await self._wait(gate)
            event = self.next
            assert event is not None
            if isinstance(event.data, QuestionAsked) and event.id.startswith(f"{inside}/ask."):
                raise Parked(self._question(event))
            if is_meanwhile(event, asked, inside):
                id = self.ours(event.id)
                self.journal.record(id, fact_of(self.journal, event), event.actor)
                continue
            self._heed_values(key)
            error = self._error(asked, inside)
            if error is not None:
                raise CallFailed(error, [*self._facts(f"{asked}/left")])
            facts = self.adapt(key, [*self._facts(asked)])
            return await self.answer_unknown(key, effect) if facts is None else facts

    def _heed_values(self, key: str) -> None:
        """Code that may read variables may do otherwise once one of them has another value."""
        if self.findings.has_other_values and not _BLIND.search(key):
            self.findings.is_assumed = True

    def _question(self, event: Event) -> Any:
        question = question_of(event.data, 0)
        own = self.ours(question.id)
        return question if own == question.id else msgspec.structs.replace(question, id=own)

    def _holds(self, key: str, asked: str, inside: str) -> bool:
        """Whether the record has something of an effect: what it left, its error or question, or
        that it was begun."""
        begun = self.journal.recorded(f"{key}?")
        if isinstance(begun, Intent) and not isinstance(begun, ModelCalled):
            there = self._intent(asked)
            if there is not None and there.request != begun.request:
                return False
        ids = (asked, f"{asked}.0", f"{asked}/again", f"{inside}/failed")
        if any(self._place(id) is not None for id in ids):
            return True
        rest = self.events[self.position : self._end_of_life()]
        return any(each.id.startswith(f"{inside}/ask.") for each in rest) or (
            self._intent(asked) is not None
        )

    def _intent(self, asked: str) -> Any:
        """The recorded intent of an effect."""
        places = self._spots.get(_POSITION.sub("@", f"{asked}?"), ())
        found = next((self.events[each].data for each in reversed(places)), None)
        return found if isinstance(found, Intent | StepStarted) else None

    async def _wait_unknown(self, gate: Gate) -> None:
        """Wait until nothing else can run: the run may have been cut off here."""
        self._missing.append(gate)
        try:
            await self._wait(gate)
        finally:
            self._missing.remove(gate)

    def begin(self, rouse: Callable[[], None]) -> None:
        """Begin a drive."""
        self._missing.clear()
        super().begin(rouse)

    async def reach(self, scope: str) -> None:
        """Wait until the next event is one of a scope, or no other work has it."""
        await super().reach(self.named(scope) if scope else scope)

    async def decide(self, decide: Callable[[], Action | None]) -> Action | None:
        """The next action, unless it depends on something unknown."""
        try:
            return await super().decide(decide)
        except UndecidedCondition as error:
            unknown = [f"{each.what} ({each.why})" for each in error.unknown]
            self.undecide("who is next", unknown, self.journal.state.turns)

    def deadline(self, scope: str, seconds: float | None) -> AbstractAsyncContextManager[Any]:
        """A timeout that expires when the record says so."""
        return super().deadline(self.named(scope), seconds)

    def answering(self, scope: str) -> AbstractAsyncContextManager[Any]:
        """A context that raises `RecordedFailure` when the record says that the turn failed."""
        return super().answering(self.named(scope))

    def _fail(self, event: Event) -> bool:
        decided = self.error_of(_scope(event.id)).startswith(DECIDED)
        return False if decided else super()._fail(event)

    def _let_end(self, event: Event) -> None:
        if self._missing and not is_mail(event):
            self._missing[0].open()
        elif not self._pass_to_gate(event) and not self._take_early(event):
            super()._let_end(event)

    def _take_early(self, event: Event) -> bool:
        """Give work what it asks for now, and the record has later."""
        if is_outside(event) or any(not each.key for each in self._gates):
            return False
        for gate in self._gates:
            place = self._place(f"{gate.key}.0")
            if place is not None and not self._is_cut(place):
                gate.open()
                return True
        return False

    def _pass_to_gate(self, event: Event) -> bool:
        """Pass over what a turn or step recorded before the effect that it waits for now."""
        scope = _scope(event.id)
        if is_outside(event) or not _ORDERED.match(scope):
            return False
        for gate in self._gates:
            place = self._place(f"{gate.key}.0") if gate.key else None
            if place is not None and _scope(gate.key) == scope:
                self._pass_over(scope, place)
                self._advance()
                return True
        return False

    def _place(self, id: str) -> int | None:
        """The place of an event of this id that was not decided yet, up to the next retry."""
        places = self._spots.get(_POSITION.sub("@", id) if "@" in id else id, ())
        end = self._end_of_life()
        return next((each for each in places if each not in self._taken and each < end), None)

    def _end_of_life(self) -> int:
        return next((each for each in self._retries if each >= self.position), len(self.events))

    def _is_cut(self, place: int) -> bool:
        """Whether another process began before a place."""
        return any(self.position <= each < place for each in self._bounds)


def _scope(id: str) -> str:
    return id.partition("/")[0].partition(">")[0]


def _identity(event: Event) -> tuple[Any, ...] | None:
    """What makes a turn, step or hook the same in two runs, apart from its number."""
    match event.data:
        case StepStarted(step=step, place=place, attempt=attempt, undoes=undoes):
            return "step", step, place, attempt, undoes
        case ArtifactConsumed(agent=agent, subscription=to, artifacts=artifacts, run=""):
            return "turn", agent, to, artifacts
        case fact if isinstance(fact, HOOKED):
            scope = _POSITION.sub("@", event.id).rpartition(".")[0].partition("/")[0]
            trigger = getattr(fact, "trigger", "") or getattr(fact, "hook_type", "")
            return "hook", scope, trigger, fact.function, fact.file, getattr(fact, "hook", "")
        case _:
            return None


def _own_name(event: Event) -> str:
    """The part of an id that has the number of a turn, step or hook."""
    match event.data:
        case StepStarted(number=number):
            return f"s{number}"
        case ArtifactConsumed(turn=turn):
            return f"t{turn}"
        case _:
            return _hook_key(event.id)


def _hook_key(id: str) -> str:
    """The key of a hook: an id up to the hook's number."""
    found = re.match(r".*?(?:before|after)_(?:chat|agent)\.\d+|.*?message_hook\.\d+", id)
    return found[0] if found else id


def _merged(recorded: Event, decided: Event) -> Event:
    """The event that takes effect: the recorded one where they agree, at its new position."""
    if recorded.seq == decided.seq and recorded.cause == decided.cause:
        if recorded.id == decided.id and is_same_fact(recorded.data, decided.data):
            return recorded
    elif is_same_fact(recorded.data, decided.data):
        return msgspec.structs.replace(decided, data=recorded.data, at=recorded.at)
    return msgspec.structs.replace(decided, at=recorded.at)
