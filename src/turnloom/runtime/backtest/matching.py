"""Match what an edited definition decides with the record of a run."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from turnloom.agents.events import ModelCalled, QuestionAsked, TurnStarted
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
from turnloom.log.spec import Event
from turnloom.runs.actions import Work
from turnloom.runtime.backtest.comparing import parts_of
from turnloom.runtime.backtest.findings import Findings
from turnloom.runtime.backtest.spec import Certainty, EndPoint
from turnloom.runtime.replay.comparing import is_same_fact
from turnloom.runtime.replay.record import (
    BOUNDARIES,
    RecordedWorld,
    Stopped,
    is_outside,
    keys_of,
)

# A position at the end of an id, or before the parts of one.
POSITION = re.compile(r"@\d+(?=$|[?./>~])")

# Scopes whose events are in order: turns, steps, and what the run itself calls.
ORDERED = re.compile(r"(?:[ts]\d+|chat)\Z")

HOOKED = (
    LifecycleToolCall,
    LifecycleToolResult,
    LifecycleToolError,
    MessageHookCalled,
    MessageHooked,
    MessageHookFailed,
)

# Names a scope that the record does not have.
NOWHERE = "-"


class MatchedRecord(RecordedWorld):
    """The record of a run, asked by another definition than the one that made it.

    What it decides is matched with the record by ids. Events that it does not lead to are passed
    over; they count again if it leads to them later. Turns, steps and hooks may have other numbers
    than in the record.
    """

    def __init__(self, events: Sequence[Event], calls: UserCalls) -> None:
        super().__init__(events, calls)
        self.findings = Findings()
        self.written: list[Event] = []
        self._taken: set[int] = set()
        self._latest = 0
        self._gone: dict[int, Certainty] = {}
        self._names: dict[str, str] = {}
        self.named = self._named
        self._learned: set[str] = set()
        self._bounds = [n for n, each in enumerate(events) if isinstance(each.data, BOUNDARIES)]
        self._published = {
            each.data.artifact.id
            for each in events
            if isinstance(each.data, ArtifactPublished) and each.data.turn
        }
        self._spots: defaultdict[str, list[int]] = defaultdict(list)
        self._known: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place, event in enumerate(self.events):
            self._spots[POSITION.sub("@", event.id)].append(place)
            if (identity := _identity(event)) is not None:
                self._known[identity].append(place)

    def _named(self, id: str) -> str:
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
        self._check_speaker(recorded, event)
        self._take(place)
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
            self.stop(f"{fact.agent} would have spoken instead of {was.agent}", fact.turn)

    def _take(self, place: int) -> None:
        """Mark a recorded event as decided; what its scope recorded before is passed over."""
        self._taken.add(place)
        self._latest = place
        self._gone.pop(place, None)
        if place > self.position:
            scope = scope_of(self.events[place].id)
            if ORDERED.match(scope):
                self._pass_over(scope, place)
        self._advance()

    def _pass_over(self, scope: str, end: int) -> None:
        for place in range(self.position, end):
            event = self.events[place]
            if scope_of(event.id) == scope and not is_outside(event):
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

    def end_early(self, status: str) -> None:
        """Note that the edited run has ended, if the record goes on: with a turn or step after the
        last event that was decided. Events before that are passed over."""
        decided = [each for each in self._taken if self.events[each].kind not in ENDS]
        last = max(decided, default=-1)
        for place in range(self.position, last):
            self._lose(place)
        rest = [each for n, each in enumerate(self.events) if n > last and n not in self._taken]
        if not any(isinstance(each.data, TurnStarted | StepStarted) for each in rest):
            return
        first = next((each for each in rest if parts_of(each.data)), None)
        if first is not None and not self.findings.counts:
            self.findings.compare_gone(first, self.findings.certainty)
        self.end_at(f"the run would have ended here: {status}", seq=rest[0].seq)

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

    def _place(self, id: str) -> int | None:
        """The place of an event of this id that was not decided yet, up to the next retry."""
        places = self._spots.get(POSITION.sub("@", id) if "@" in id else id, ())
        end = self._end_of_life()
        return next((each for each in places if each not in self._taken and each < end), None)

    def _end_of_life(self) -> int:
        return next((each for each in self._retries if each >= self.position), len(self.events))

    def _is_cut(self, place: int) -> bool:
        """Whether another process began before a place."""
        return any(self.position <= each < place for each in self._bounds)


def scope_of(id: str) -> str:
    """The first part of an id: its turn, its step, or another scope."""
    return id.partition("/")[0].partition(">")[0]


def _identity(event: Event) -> tuple[Any, ...] | None:
    """What makes a turn, step or hook the same in two runs, apart from its number."""
    match event.data:
        case StepStarted(step=step, place=place, attempt=attempt, undoes=undoes):
            return "step", step, place, attempt, undoes
        case ArtifactConsumed(agent=agent, subscription=to, artifacts=artifacts, run=""):
            return "turn", agent, to, artifacts
        case fact if isinstance(fact, HOOKED):
            scope = POSITION.sub("@", event.id).rpartition(".")[0].partition("/")[0]
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
