"""The state of a run at one of its events: the fold of its log up to there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

from turnloom.agents.events import TurnStarted
from turnloom.agents.spec import RunState
from turnloom.board.logic.matching import may_see
from turnloom.board.spec import Reader
from turnloom.conversation.spec import ConversationState
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import ArtifactHistory
from turnloom.explain.logic.timeline import spent
from turnloom.explain.spec.board import ArtifactName
from turnloom.explain.spec.state import (
    BOARD,
    AbsentVariable,
    OpenWork,
    QueuedArtifacts,
    SpeakerState,
    StateExplained,
    StrandState,
    VariableValue,
)
from turnloom.flow.events import (
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepSkipped,
    StepStarted,
)
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.walking import place_of
from turnloom.flow.spec.progress import Progress
from turnloom.guards.spec import NO_GUARDS, Guards
from turnloom.log.events import RunStarted
from turnloom.log.logic import standing, started_of
from turnloom.log.spec import Event, RunKey
from turnloom.reaction.spec.state import Assignment, BoardState
from turnloom.runs.form import Form
from turnloom.runs.undriven import Undriven
from turnloom.runtime.logic import evolve, fresh
from turnloom.variables.events import ContextChanged, ContextLoaded, ContextSuppressed


class RunDefinition(NamedTuple):
    """What a run is folded with: its form and its guards, and how its agents read the board.
    `missing` says what cannot be told with them."""

    form: Form
    guards: Guards = NO_GUARDS
    readers: Mapping[str, Reader] | None = None
    missing: tuple[str, ...] = ()


# What a form would tell of its runs.
_TOLD = {
    FlowForm.form: "the position in the flow, and its state",
    BOARD: "what waits on the board, and the labels of agents",
}


def unrestored(started: RunStarted, why: str) -> RunDefinition:
    """What a run is folded with if its workflow cannot be restored here."""
    told = _TOLD.get(started.form, "who speaks next")
    return RunDefinition(Undriven(started.workflow), missing=(f"{told}. {why}",))


def explain_state(
    events: Sequence[Event],
    definition: RunDefinition,
    at: int | None = None,
    agent: str | None = None,
) -> StateExplained:
    """The state of a run after an event, or after the last one; artifacts are those that an agent
    may see then.

    Raises:
        UsageError: the run has no such event or agent, or it is no run of a board.
    """
    last = events[-1].seq
    if at is not None and not 1 <= at <= last:
        raise UsageError(f"Unknown event {at}. This run has the events 1 to {last}.")
    recorded = up_to(events, at)
    started, here = started_of(recorded), recorded[-1]
    reader = _reader(started, definition, agent)
    until = standing(recorded)
    state = fold(until, events[-1].run, definition)
    progress = state.progress
    failure = state.failure
    return StateExplained(
        events[-1].run,
        started.workflow,
        started.form,
        here.seq,
        kind=here.kind,
        time=here.at,
        events=last,
        status=_status(state, until),
        turns=state.turns,
        failure=f"{failure.error}: {failure.message}" if failure else "",
        variables=tuple(_values(state, until)),
        absent=tuple(_absent(state, until, definition.form)),
        questions=tuple(state.questions.values()),
        work=(*_turns(state, until), *_steps(progress, until)),
        timers=dict(state.timers),
        speakers=_speakers(progress) if isinstance(progress, ConversationState) else None,
        strands=tuple(_strands(definition.form, progress)),
        queued=tuple(_queued(progress)) if isinstance(progress, BoardState) else (),
        agent=agent or "",
        artifacts=tuple(_artifacts(until, reader, here.at)) if started.form == BOARD else (),
        spent=spent(until),
        missing=definition.missing,
    )


def up_to(events: Sequence[Event], at: int | None) -> Sequence[Event]:
    """The events up to a position, or all."""
    return events if at is None else [*takewhile(lambda event: event.seq <= at, events)]


def fold(events: Iterable[Event], run: str, definition: RunDefinition) -> RunState:
    """The state after events, as the driver of the run had it."""
    state = fresh(RunKey("", run), definition.form, definition.guards)
    for event in events:
        evolve(definition.form, state, event)
    return state


def _status(state: RunState, events: Sequence[Event]) -> str:
    """The status; a flow that cannot be restored folds no step."""
    has_begun = any(isinstance(event.data, StepStarted) for event in events)
    return "running" if state.status == "started" and has_begun else state.status


def _reader(started: RunStarted, definition: RunDefinition, agent: str | None) -> Reader:
    if agent is None:
        return Reader(tenant=started.tenant, role="developer")
    if started.form != BOARD:
        raise UsageError("Only a run of a board has artifacts. Leave the agent out.")
    if definition.readers is None:
        return Reader(agent, tenant=started.tenant)
    if agent not in definition.readers:
        known = ", ".join(definition.readers) or "none"
        raise UsageError(f"Unknown agent {agent!r}. Agents of this board: {known}.")
    return definition.readers[agent]


def _values(state: RunState, events: Sequence[Event]) -> Iterator[VariableValue]:
    origins = dict(_writes(events))
    for name, value in state.values.items():
        event = origins[name]
        writer = _writer(event.data, name)
        yield VariableValue(name, value, event.seq, writer, ephemeral=name in state.ephemeral)


def _writer(fact: ContextChanged | ContextLoaded, name: str) -> str:
    """Who wrote a variable, or the source of its first value."""
    if isinstance(fact, ContextChanged):
        return fact.writer
    return next(each.source for each in fact.values if each.name == name)


def _writes(events: Iterable[Event]) -> Iterator[tuple[str, Event]]:
    """The variables that events gave or took a value, with those events."""
    for event in events:
        match event.data:
            case ContextLoaded(values=values):
                yield from ((each.name, event) for each in values)
            case ContextChanged(name=name):
                yield name, event
            case ContextSuppressed(names=names):
                yield from ((name, event) for name in names)
            case _:
                pass


def _absent(state: RunState, events: Sequence[Event], form: Form) -> Iterator[AbsentVariable]:
    reasons: dict[str, AbsentVariable] = {}
    is_loaded = any(isinstance(event.data, ContextLoaded) for event in events)
    for name in form.variables.definitions:
        reasons[name] = AbsentVariable(name, "no value" if is_loaded else "not loaded yet")
    for name, event in _writes(events):
        match event.data:
            case ContextSuppressed(reason=reason):
                reasons[name] = AbsentVariable(name, reason, event.seq)
            case ContextChanged(removed=True, writer=writer):
                reasons[name] = AbsentVariable(name, f"removed by {writer}", event.seq)
            case _:
                reasons.pop(name, None)
    yield from (each for name, each in reasons.items() if name not in state.values)


def _turns(state: RunState, events: Sequence[Event]) -> Iterator[OpenWork]:
    begun = {event.data.turn: event for event in events if isinstance(event.data, TurnStarted)}
    for number, turn in state.open.items():
        yield OpenWork("turn", number, turn.agent, begun[number].seq)


_STEP_ENDS = StepCompleted | StepFailed | StepRetried | StepSkipped | StepCompensated


def _steps(progress: object, events: Sequence[Event]) -> Iterator[OpenWork]:
    """The open steps of a flow; those of an unknown flow are told by their events."""
    begun: dict[int, Event] = {}
    for event in events:
        if isinstance(event.data, StepStarted):
            begun[event.data.number] = event
        elif isinstance(event.data, _STEP_ENDS) and not isinstance(progress, Progress):
            begun.pop(event.data.number, None)
    for number in progress.steps if isinstance(progress, Progress) else begun:
        fact: StepStarted = begun[number].data
        yield OpenWork("step", number, fact.place, begun[number].seq, attempt=fact.attempt)


def _speakers(progress: ConversationState) -> SpeakerState:
    return SpeakerState(progress.last, progress.next or "", progress.reason)


def _strands(form: Form, progress: object) -> Iterator[StrandState]:
    if not isinstance(form, FlowForm) or not isinstance(progress, Progress):
        return
    for strand in progress.strands.values():
        yield StrandState(
            strand.id,
            place_of(form.plan, strand) if strand.frames else "",
            "waiting for a decision" if strand.asking else strand.status,
            tuple(frame.number for frame in strand.frames if frame.number),
            failure=f"{strand.failed.error}: {strand.failed.message}" if strand.failed else "",
            state=dict(strand.state),
        )


def _queued(board: BoardState) -> Iterator[QueuedArtifacts]:
    """What uses the artifacts that a board's run holds, in the order in which they move on."""
    for artifact, subscription in board.unoffered:
        yield QueuedArtifacts("not offered yet", subscription or "all", (artifact,))
    for each in board.later:
        yield QueuedArtifacts("hidden", each.subscription, (each.artifact,), until=each.opens)
    for subscription, pending in board.pending.items():
        if pending.artifacts:
            yield QueuedArtifacts("waiting for others", subscription, pending.artifacts)
    for use, who, assignment in _assigned(board):
        yield QueuedArtifacts(use, who, assignment.artifacts)
    for artifact, subscription in board.outbox:
        yield QueuedArtifacts("to be collected", subscription, (artifact,))


def _assigned(board: BoardState) -> Iterator[tuple[str, str, Assignment]]:
    """The artifacts that an agent or a run has got, with their use and who has them."""
    for agent, waiting in board.ready.items():
        yield from (("ready", agent, each) for each in waiting)
    yield from (("getting a run", run, each) for run, each in board.spawning.items())
    for use, turns in (("in", board.working), ("failed in", board.failed)):
        yield from ((f"{use} turn {turn}", each.agent, each) for turn, each in turns.items())


def _artifacts(events: Sequence[Event], reader: Reader, now: datetime) -> Iterator[ArtifactName]:
    history = ArtifactHistory(events)
    for artifact in history.all:
        if may_see(artifact.visibility, reader, now):
            yield history.named(artifact.id)
