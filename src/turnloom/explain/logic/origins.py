"""The events that the segments of frames come from."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from turnloom.agents.events import ToolsOffered
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    HistorySummarised,
    RetrievalSearched,
)
from turnloom.board.events import ArtifactConsumed
from turnloom.conversation.logic.routing import TRANSFER, names_in
from turnloom.explain.logic.artifacts import ArtifactHistory
from turnloom.explain.logic.flow_routes import is_flow
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RunDeclarations
from turnloom.flow import events as flow
from turnloom.guards.events import LoopDetectedFact
from turnloom.hooks.events import MessageHooked, MessageHookFailed
from turnloom.log.events import RunRetried
from turnloom.log.spec import Event, Fact
from turnloom.variables.events import ContextChanged, ContextLoaded, ContextSuppressed

# The type of message hooks that change instructions.
_INSTRUCTING = "update_agent_state"

_SAID = re.compile(r"said in event (\d+)")
_SUMMARY = re.compile(r"a summary of events (\d+) to (\d+)")
_ARTIFACT = re.compile(r"artifact ([^;]+)")
_SOURCE = re.compile(r"context\[\d+\] \w+\(([^)]*)\)")


class ShownPiece(NamedTuple):
    """A segment in a frame: `turn` is that of the frame, `seq` the event that recorded it."""

    kind: str
    origin: str
    reason: str
    turn: int
    seq: int


def artifact_in(reason: str) -> str:
    """The artifact in the reason or origin of a segment; empty without one."""
    found = _ARTIFACT.match(reason)
    return found[1] if found else ""


class SegmentOrigins:
    """Finds the event behind a segment: a value, a message, an artifact, a hook, a search, a step,
    or the definition."""

    def __init__(
        self, events: Sequence[Event], declared: RunDeclarations = NOTHING_DECLARED
    ) -> None:
        self._events = {event.seq: event for event in events}
        self._start = events[0]
        self._is_flow = is_flow(events)
        self._artifacts = ArtifactHistory(events)
        # Events in log order, by what they are about.
        self._values: dict[str, list[Event]] = defaultdict(list)
        self._turns: dict[tuple[type[Fact], int], list[Event]] = defaultdict(list)
        self._kinds: dict[type[Fact], list[Event]] = defaultdict(list)
        self._passages: dict[str, list[Event]] = defaultdict(list)
        self._rules = _rule_names(declared)
        self._state_changes: list[Event] = []
        self._strands: dict[int, str] = {}
        self._finders: Mapping[str, Callable[[ShownPiece], Event | None]] = {
            "variable": self._variable,
            "context.variables": self._sourced_variable,
            "context.state": self._state,
            "context.history": self._message,
            "context.retrieval": self._passage,
            "context.artifact": self._artifact,
            "context": self.gathered,
            "artifact": self._artifact,
            "input": self._input,
            "prompt": self._prompt,
            "hint": self._hint,
            "message": self._message,
            "instruction": self._instruction,
            "tool": self._tool,
        }
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        fact = event.data
        for name in _names_set(fact):
            self._values[name].append(event)
        if isinstance(fact, _KINDS):
            self._kinds[type(fact)].append(event)
            self._turns[type(fact), getattr(fact, "turn", 0)].append(event)
        if isinstance(fact, RetrievalSearched):
            for called in {f"{each.source_id}#{each.chunk}" for each in fact.results}:
                self._passages[called].append(event)
        if isinstance(fact, _STATES):
            self._state_changes.append(event)
        elif isinstance(fact, flow.StepStarted) and fact.turn:
            self._strands[fact.turn] = fact.strand

    def event(self, seq: int) -> Event:
        """The event at a position."""
        return self._events[seq]

    def of(self, piece: ShownPiece) -> Event:
        """The event behind a segment; the definition of the run if nothing else is on record."""
        find = self._finders.get(piece.kind)
        found = find(piece) if find else None
        return found or self.definition(piece.seq)

    def definition(self, before: int) -> Event:
        """The event that pinned the run to its definition."""
        retried = [e for e in self._kinds[RunRetried] if e.data.pin or e.data.changed]
        return _latest(retried, before) or self._start

    def value(self, name: str, before: int) -> Event | None:
        """The event that gave a variable its value."""
        return _latest(self._values[name], before)

    def consumed(self, turn: int) -> Event | None:
        """The event that gave a turn its artifacts, on a board."""
        return _latest(self._turns[ArtifactConsumed, turn])

    def gathered(self, piece: ShownPiece) -> Event | None:
        """The gathering of a turn's context."""
        return _latest(self._turns[ContextGathered, piece.turn], piece.seq)

    def hooked(self, kind: str, turn: int, before: int) -> Event | None:
        """The last message hook that changed the instructions or the messages of a turn, by the
        kind of the segment."""
        of_state = kind == "instruction"
        ran = [
            event
            for result in (MessageHooked, MessageHookFailed)
            for event in self._turns[result, turn]
            if event.seq < before and (event.data.hook_type == _INSTRUCTING) == of_state
        ]
        return max(ran, key=lambda event: event.seq, default=None)

    def summary(self, turn: int, before: int) -> Event | None:
        """The summary of earlier messages that a turn was shown."""
        own = self._turns[HistorySummarised, turn] or self._kinds[HistorySummarised]
        return _latest(own, before)

    def _variable(self, piece: ShownPiece) -> Event | None:
        name = piece.origin.removeprefix("context_variables.")
        return self.value(name, piece.seq)

    def _sourced_variable(self, piece: ShownPiece) -> Event | None:
        return self.value(piece.reason.removeprefix("variable "), piece.seq)

    def _state(self, piece: ShownPiece) -> Event | None:
        """The last change of a field of the state: a variable, a step's update, or an input."""
        found = _SOURCE.match(piece.origin)
        field = found[1].partition(".")[0] if found else ""
        if self._is_flow:
            return self.state(field, piece.turn, piece.seq)
        return self.value(field, piece.seq) or self.consumed(piece.turn)

    def state(self, field: str, turn: int, before: int) -> Event | None:
        """The last event that changed a field of a flow's state, as the step of a turn saw it; of
        any field, if it is empty or not known."""
        strand = self._strands.get(turn, "")
        end = bisect_left(self._state_changes, before, key=lambda event: event.seq)
        nearest: Event | None = None
        for place in range(end - 1, -1, -1):
            event = self._state_changes[place]
            if not _are_related(getattr(event.data, "strand", ""), strand):
                continue
            nearest = nearest or event
            if not field or field in _fields(event.data):
                return event
        return nearest

    def _message(self, piece: ShownPiece) -> Event | None:
        """The message behind a segment, or the event that replaced it."""
        if said := _SAID.match(piece.reason):
            return self._events.get(int(said[1]))
        if _SUMMARY.match(piece.reason):
            return self.summary(piece.turn, piece.seq)
        if piece.origin.startswith("threads."):
            thread = piece.origin.removeprefix("threads.")
            kept = [e for e in self._kinds[flow.StepCompleted] if e.data.thread == thread]
            return _latest(kept, piece.seq)
        return self.hooked(piece.kind, piece.turn, piece.seq)

    def _passage(self, piece: ShownPiece) -> Event | None:
        """The search that found a passage."""
        called = piece.reason.partition(" scores ")[0]
        return _latest(self._passages[called], piece.seq)

    def _artifact(self, piece: ShownPiece) -> Event | None:
        """The event that put an artifact into the run, or the gathering that returned it."""
        id = artifact_in(piece.reason)
        return self._artifacts.origin(id) or self.gathered(piece)

    def _input(self, piece: ShownPiece) -> Event | None:
        id = artifact_in(piece.origin)
        return self._artifacts.origin(id) or self.consumed(piece.turn)

    def _prompt(self, piece: ShownPiece) -> Event | None:
        return self.state("", piece.turn, piece.seq)

    def _hint(self, piece: ShownPiece) -> Event | None:
        return _latest(self._kinds[LoopDetectedFact], piece.seq)

    def _instruction(self, piece: ShownPiece) -> Event | None:
        is_hooked = piece.origin.startswith("hooks.")
        return self.hooked(piece.kind, piece.turn, piece.seq) if is_hooked else None

    def _tool(self, piece: ShownPiece) -> Event | None:
        """The values in the words of a handoff, or the server that offered a tool."""
        name = piece.origin.removeprefix("tools.")
        if name.startswith(TRANSFER):
            values = [self.value(each, piece.seq) for each in self._rules.get(_rule(name), ())]
            known = (event for event in values if event is not None)
            return max(known, key=lambda event: event.seq, default=None)
        offers = self._kinds[ToolsOffered]
        return _latest([e for e in offers if any(t.name == name for t in e.data.tools)], piece.seq)


# Facts that are looked up by their kind and turn.
_KINDS = (
    ArtifactConsumed,
    ContextGathered,
    FrameAssembled,
    HistorySummarised,
    LoopDetectedFact,
    MessageHooked,
    MessageHookFailed,
    RunRetried,
    ToolsOffered,
    flow.StepCompleted,
)

# Facts that change the state of a flow.
_STATES = (
    flow.StateGiven,
    flow.StateMigrated,
    flow.StepCompleted,
    flow.StepCompensated,
    flow.ForkJoined,
    flow.FlowRewound,
)


def _names_set(fact: Fact) -> Iterable[str]:
    """The variables that a fact gives or takes a value."""
    match fact:
        case ContextLoaded(values=values):
            return [each.name for each in values]
        case ContextSuppressed(names=names):
            return names
        case ContextChanged(name=name):
            return (name,)
        case _:
            return ()


def _fields(fact: Fact) -> Iterable[str]:
    """The fields of the state that a fact sets."""
    match fact:
        case flow.StateGiven(state=state) | flow.FlowRewound(state=state):
            return state
        case flow.StepCompleted() | flow.StepCompensated():
            return {**fact.update, **fact.reduced}
        case flow.ForkJoined(reduced=reduced):
            return reduced
        case flow.StateMigrated(states=states):
            return {field for state in states.values() for field in state}
        case _:
            return ()


def _are_related(one: str, other: str) -> bool:
    """Whether two strands share a state: one of them is a path of the other."""
    return one.startswith(other) or other.startswith(one)


def _latest(events: Sequence[Event], before: int | None = None) -> Event | None:
    """The last event, or the last one before a position."""
    end = len(events) if before is None else bisect_left(events, before, key=lambda e: e.seq)
    return events[end - 1] if end else None


def _rule_names(declared: RunDeclarations) -> dict[int, list[str]]:
    """The variables in the words of each handoff rule."""
    some = declared.conversation.rules.values() if declared.conversation else ()
    return {rule.number: names_in(rule.said) for rules in some for rule in rules if rule.llm}


def _rule(tool: str) -> int:
    """The number of the rule in the name of a handoff tool."""
    number = tool.rpartition("_")[2]
    return int(number) if number.isdecimal() else 0
