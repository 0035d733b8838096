"""What a run of a flow that ended does again when it is retried.

Nothing was compensated: the flow continues in place, as after a crash. The events of its stop, and
those of the failure that led to it, no longer count. Steps were compensated: the flow is also
rewound, and takes over at each place the result that still counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    QuestionExpiredFact,
    TurnFinished,
)
from turnloom.errors import UsageError
from turnloom.flow.events import (
    ApprovalDecided,
    BranchTaken,
    FlowRewound,
    FlowStopped,
    ForkFailed,
    ForkJoined,
    ForkOpened,
    LoopEnded,
    LoopPassed,
    StateGiven,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepHandled,
    StepRecovered,
    StepRetried,
    StepSkipped,
    StepStarted,
)
from turnloom.flow.logic.approvals import APPROVED, DEFERRED
from turnloom.flow.logic.folding import APPROVALS, TIMEOUT
from turnloom.flow.logic.walking import first_progress
from turnloom.flow.spec.nodes import FlowPlan, ForkNode, StepNode
from turnloom.flow.spec.progress import Progress, Strand
from turnloom.guards.events import BudgetExceededFact
from turnloom.log.spec import Event, Fact
from turnloom.runs.retries import Redo, end_of_turn, redo_after, stands_after_stop, with_derived
from turnloom.variables.events import ContextChanged, TimerExpired

_OF_STEPS = (StepStarted, StepCompleted, StepFailed, StepRetried, StepSkipped)

_BETWEEN_STEPS = (
    ApprovalDecided,
    BranchTaken,
    ForkFailed,
    ForkJoined,
    ForkOpened,
    LoopEnded,
    LoopPassed,
    StepHandled,
    StepRecovered,
)

Folds = Mapping[type, Callable[[Any, Any], None]]


def redo_flow(
    plan: FlowPlan,
    folds: Folds,
    events: Sequence[Event],
    stop: Event | None,
    since: int | str | None = None,
    at: int | None = None,
) -> Redo | None:
    """What a retry does again: everything since a step or the turn of one, or after a position; or
    else what failed, and what stopped the run at event `stop`. None if there is no such thing.

    Raises:
        UsageError: the name of the step is ambiguous.
    """
    walk = _Walk(events)
    if since is not None:
        at = _before(events, walk, since)
    timers = {} if plan.timeout is None else {TIMEOUT: plan.timeout}
    if at is not None and _has_stopped(events, at):
        voided = redo_after(events, at).voided - walk.compensating(events)
        return Redo(with_derived(events, voided), timers=timers)
    if at is not None:
        voided = redo_after(events, at).voided
    elif stop is not None and since is None:
        voided = set(_Stop(plan, folds, events, walk, stop).voided())
    else:
        return None
    voided |= {event.seq for event in events if _is_late(event)}
    undone = walk.undone(events)
    facts = _rewound(events, with_derived(events, voided), walk, undone, is_cut=at is not None)
    if facts:
        voided |= set(_traces(events, undone))
    return Redo(with_derived(events, voided), facts, timers)


@dataclass(slots=True)
class _Execution:
    """An execution of a step: its scopes, the last attempt and its turn, and the positions of its
    start and end; `retried` is the last attempt that another one was to follow."""

    number: int
    name: str
    place: str
    strand: str
    began: int
    attempt: int = 1
    turn: int = 0
    retried: int = 0
    ended: int | None = None
    is_completed: bool = False
    scopes: set[str] = field(default_factory=set[str])


class _Walk:
    """The executions of steps in a run, by number and by scope, and the strands around strands."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.executions: dict[int, _Execution] = {}
        self.scopes: dict[str, _Execution] = {}
        self.parents: dict[str, str] = {}
        for event in events:
            self._note(event.data, event.seq)

    def _note(self, fact: Fact, seq: int) -> None:
        match fact:
            case StepStarted(undoes=""):
                self._start(fact, seq)
            case StepRetried(number=number):
                self.executions[number].retried = fact.attempt
            case StepCompleted(kept=False, number=number) if number in self.executions:
                self.executions[number].is_completed = True
            case StepFailed(kept=False, number=number) if number in self.executions:
                self.executions[number].ended = seq
            case StepSkipped(number=number) if number in self.executions:
                self.executions[number].ended = seq
            case ForkOpened(paths=paths, strand=strand):
                self.parents.update(dict.fromkeys(paths, strand))
            case _:
                pass

    def _start(self, fact: StepStarted, seq: int) -> None:
        made = _Execution(fact.number, fact.step, fact.place, fact.strand, began=seq)
        found = self.executions.setdefault(fact.number, made)
        found.attempt, found.turn = fact.attempt, fact.turn
        scopes = {f"s{fact.number}", f"t{fact.turn}"} if fact.turn else {f"s{fact.number}"}
        found.scopes |= scopes
        self.scopes.update(dict.fromkeys(scopes, found))

    def of(self, event: Event) -> _Execution | None:
        """The execution that an event belongs to. The ids of what happens between steps begin with
        their places, which may look like scopes."""
        fact = event.data
        if isinstance(fact, _OF_STEPS):
            return None if getattr(fact, "kept", False) else self.executions.get(fact.number)
        if isinstance(fact, _BETWEEN_STEPS):
            return None
        return self.scopes.get(event.id.partition("/")[0])

    def strand_of(self, event: Event) -> str | None:
        """The strand that an event outside of steps belongs to."""
        if not event.id.startswith(APPROVALS):
            return getattr(event.data, "strand", None)
        place = event.id.removeprefix(APPROVALS)
        around = [id for id in self.parents if place.startswith(f"{id}/")]
        return max(around, key=len, default="")

    def undone(self, events: Sequence[Event]) -> Set[str]:
        """The places of the steps that were compensated."""
        facts = (event.data for event in events)
        return {
            fact.place for fact in facts if isinstance(fact, StepCompensated) and not fact.error
        }

    def compensating(self, events: Sequence[Event]) -> Set[int]:
        """The positions of the events of compensations, which stand for good."""
        begun = (event.data for event in events if isinstance(event.data, StepStarted))
        keys = {f"s{fact.number}" for fact in begun if fact.undoes}
        return {event.seq for event in events if event.id.partition("/")[0] in keys}


class _Failure(NamedTuple):
    """A failure in a strand, at a place: of a step, of an approval, or of a path of a fork."""

    place: str
    seq: int
    kind: type[Fact]


class _Stop:
    """The stop of a run, and the failures that led to it."""

    def __init__(
        self, plan: FlowPlan, folds: Folds, events: Sequence[Event], walk: _Walk, stop: Event
    ) -> None:
        self._plan = plan
        self._events = events
        self._walk = walk
        self._stop = stop
        # The position in each strand from which it does not count; else, that of the stop.
        self._cuts: dict[str, int] = {}
        # The prefixes of the ids of approvals that are asked again.
        self._asked_again: tuple[str, ...] = ()
        self._undone = walk.undone(events)
        self._find_failures(folds)

    def _find_failures(self, folds: Folds) -> None:
        progress, failures = first_progress(), dict[str, list[_Failure]]()
        for event in self._events:
            if event.seq >= self._stop.seq:
                break
            fold = folds.get(event.data.__class__)
            if fold is not None:
                fold(progress, event.data)
            _note_failure(failures, event)
        for id, strand in progress.strands.items():
            if failures.get(id) and self._fails(progress, strand):
                self._cut(id, failures)

    def _fails(self, progress: Progress, strand: Strand) -> bool:
        """Whether a strand has failed, or will once its failure is handled."""
        return strand.id in progress.failed or any(map(self._is_lost, strand.frames))

    def _is_lost(self, frame: Any) -> bool:
        """Whether a frame handles a failure that the flow does not recover from."""
        placed = self._plan.paths[frame.path]
        if placed.part != "handler":
            return False
        node = self._plan.node(placed.owner, placed.at)
        step = node.join if isinstance(node, ForkNode) else node
        return isinstance(step, StepNode) and not step.recover

    def _cut(self, strand: str, failures: Mapping[str, Sequence[_Failure]]) -> None:
        """Cut a strand before its first failure; if it is that of a fork, also the paths of it."""
        first = failures[strand][0]
        self._cuts[strand] = first.seq
        if first.kind is ApprovalDecided:
            self._asked_again += (f"{APPROVALS}{first.place}#",)
        if first.kind is ForkFailed:
            for path in failures:
                if path.startswith(f"{first.place}.") and failures[path]:
                    self._cut(path, failures)

    def _cut_of(self, strand: str) -> int:
        """The position from which the events of a strand do not count."""
        cut = self._cuts.get(strand, self._stop.seq)
        if not strand:
            return cut
        return min(cut, self._cut_of(self._walk.parents.get(strand, "")))

    def voided(self) -> Iterator[int]:
        """The positions of the events that do not count any more."""
        for event in self._events:
            if not self._stands(event):
                yield event.seq
        for each in self._walk.executions.values():
            if self._is_interrupted(each) and each.place not in self._undone:
                yield from self._ends(each)

    def _stands(self, event: Event) -> bool:
        if event is self._stop or isinstance(event.data, BudgetExceededFact):
            return False
        if event.id.startswith(self._asked_again):
            return not self._asked_again
        execution = self._walk.of(event)
        if execution is not None:
            return self._is_part(event, execution)
        strand = self._walk.strand_of(event)
        if strand is not None and event.seq < self._stop.seq:
            return event.seq < self._cut_of(strand)
        if event.seq < self._stop.seq:
            return True
        return strand is None and stands_after_stop(event, self._stop, frozenset())

    def _is_part(self, event: Event, execution: _Execution) -> bool:
        """Whether an event of a step counts: the step began before its strand is cut, and this is
        not how it was interrupted."""
        if execution.began >= self._cut_of(execution.strand):
            return False
        if not self._is_interrupted(execution):
            return True
        if isinstance(event.data, StepFailed):
            return False
        if execution.place in self._undone:
            return True
        if isinstance(event.data, QuestionExpiredFact):
            return event.actor == "clock"
        return not isinstance(event.data, StepSkipped)

    def _is_interrupted(self, execution: _Execution) -> bool:
        """Whether a step is entered again."""
        cut = self._cut_of(execution.strand)
        has_ended = execution.is_completed or (
            execution.ended is not None and execution.ended < cut
        )
        return execution.began < cut and not has_ended

    def _ends(self, execution: _Execution) -> Iterator[int]:
        """The events of the end of a step's last attempt."""
        if execution.retried == execution.attempt:
            return  # the next attempt was due
        turn = f"t{execution.turn}/"
        key = f"s{execution.number}/a{execution.attempt}/"
        gone = (f"{key}spent", f"{key}scarcity", f"{key}left.")
        for event in self._events:
            fact = event.data
            if event.id.startswith(gone):
                yield event.seq
            if isinstance(fact, TurnFinished) and event.id.startswith(turn):
                yield from end_of_turn(self._events, fact)


def _note_failure(failures: dict[str, list[_Failure]], event: Event) -> None:
    """Keep the failures of each strand from which it has not recovered."""
    fact = event.data
    match fact:
        case StepFailed(strand=strand) | ForkFailed(strand=strand):
            failures.setdefault(strand, []).append(_Failure(fact.place, event.seq, type(fact)))
        case ApprovalDecided(strand=strand) if _is_refusal(fact):
            failures.setdefault(strand, []).append(_Failure(fact.place, event.seq, type(fact)))
        case StepRecovered(strand=strand, place=place):
            places = [each.place for each in failures[strand]]
            del failures[strand][places.index(place) :]
        case FlowRewound():
            failures.clear()
        case _:
            pass


def _is_refusal(fact: ApprovalDecided) -> bool:
    """Whether an approval fails its path."""
    return not (fact.path or fact.to or fact.outcome in (APPROVED, DEFERRED))


def _has_stopped(events: Sequence[Event], position: int) -> bool:
    """Whether a flow was stopped by a position: from there on, it only compensates and tells."""
    return any(isinstance(each.data, FlowStopped) for each in events if each.seq <= position)


def _is_late(event: Event) -> bool:
    """Whether an event is the end of the time that the run had."""
    return isinstance(event.data, TimerExpired) and event.data.timer == TIMEOUT


def _rewound(
    events: Sequence[Event], voided: Set[int], walk: _Walk, undone: Set[str], *, is_cut: bool
) -> tuple[tuple[str, Fact], ...]:
    """The fact that a flow is walked again, if it has to be."""
    kept, ahead = dict[str, int](), dict[str, int]()
    given: StateGiven | None = None
    for event in events:
        if event.seq in voided:
            continue
        fact = event.data
        if isinstance(fact, StateGiven):
            given = fact
        elif isinstance(fact, FlowRewound):
            kept, ahead = {}, {**fact.kept}
        elif _is_result(fact):
            kept[fact.place] = ahead.pop(fact.place, event.seq)
    # What lies ahead came after the point from which everything is done again.
    if given is None or not (undone or (is_cut and ahead)):
        return ()
    if not is_cut:
        kept |= ahead
    kept = {place: seq for place, seq in kept.items() if place not in undone}
    completed = {
        event.data.number
        for event in events
        if event.seq not in voided and isinstance(event.data, StepCompleted)
    }
    scopes = {
        scope
        for each in walk.executions.values()
        if each.place in undone and each.number not in completed
        for scope in each.scopes
    }
    fact = FlowRewound(given.state, kept, tuple(sorted(scopes)))
    return ((f"rewound@{events[-1].seq}", fact),)


def _is_result(fact: Any) -> bool:
    """Whether a fact says how a step or an approval ended."""
    if isinstance(fact, ApprovalDecided):
        return not fact.to and fact.outcome != DEFERRED
    return isinstance(fact, StepCompleted) or (isinstance(fact, StepFailed) and not fact.what)


def _traces(events: Sequence[Event], undone: Set[str]) -> Iterator[int]:
    """What compensated steps wrote and said."""
    walk = _Walk(events)
    for event in events:
        execution = walk.of(event)
        is_trace = isinstance(event.data, ContextChanged | AgentText | AgentOutput)
        if is_trace and execution is not None and execution.place in undone:
            yield event.seq


_PASS = re.compile(r"\[\d+\]")


def _before(events: Sequence[Event], walk: _Walk, since: int | str) -> int | None:
    """The position before the last execution of a step, given by its name, its place, or the turn
    of its agent; None if there is none.

    Raises:
        UsageError: steps of this name ran in several places.
    """
    rewound = max((each.seq for each in events if isinstance(each.data, FlowRewound)), default=0)
    if isinstance(since, int):
        found = [each for each in walk.executions.values() if f"t{since}" in each.scopes]
        ran = [(each.began, each.place) for each in found if each.began > rewound]
    else:
        ran = [each for each in _ran(events, rewound) if since in each[2:]]
        ran = [each[:2] for each in ran]
    if not ran:
        return None
    places = sorted({place for _, place in ran})
    if since not in places and len({_PASS.sub("", place) for place in places}) > 1:
        raise UsageError(
            f"Steps {since!r} ran at {', '.join(places)}. Name the place of one of them."
        )
    began, _ = max(ran)
    execution = next((e for e in walk.executions.values() if e.began == began), None)
    scopes = execution.scopes if execution else set[str]()
    heads = [e.seq for e in events if e.seq > rewound and e.id.partition("/")[0] in scopes]
    return min([began, *heads]) - 1


def _ran(events: Sequence[Event], after: int) -> Iterator[tuple[int, str, str, str]]:
    """The executions of steps after a position: when each began, its place, its name and place."""
    for event in events:
        fact = event.data
        is_begun = isinstance(fact, StepStarted) and fact.attempt == 1 and not fact.undoes
        is_kept = isinstance(fact, StepCompleted | StepFailed) and (fact.kept or not fact.number)
        if event.seq > after and (is_begun or is_kept):
            yield event.seq, fact.place, fact.step, fact.place
