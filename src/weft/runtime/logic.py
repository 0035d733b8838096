"""All facts of this release in one closed union, and how each changes what a run knows."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.agents import events as agents
from weft.agents.logic import FOLDS as AGENT_FOLDS
from weft.agents.spec import RunState, Workflow
from weft.assembly.events import FrameAssembled
from weft.conversation.events import RouteDecided
from weft.log import events as runs
from weft.log.logic import Codec, Upcast
from weft.log.spec import Event
from weft.variables import events as variables
from weft.variables.events import ContextChanged

FACTS = (
    runs.RunStarted,
    runs.RunPaused,
    runs.RunResumed,
    runs.RunFinished,
    runs.RunFailed,
    runs.CancelRequested,
    runs.RunCancelled,
    variables.ContextLoaded,
    variables.ContextChanged,
    variables.ContextSuppressed,
    FrameAssembled,
    agents.TurnStarted,
    agents.TurnFinished,
    agents.ModelCalled,
    agents.ModelAnswered,
    agents.ModelFailed,
    agents.AgentText,
    agents.UserText,
    agents.QuestionAsked,
    agents.QuestionAnswered,
    agents.AnswerRefused,
    RouteDecided,
)

# (kind, version) to what lifts its data to the next version.
UPCASTS: dict[tuple[str, int], Upcast] = {}


def codec() -> Codec:
    """The codec of this release."""
    return Codec(FACTS, UPCASTS)


def evolve(workflow: Workflow, state: RunState, event: Event) -> None:
    """Fold an event into the state, in place: the driver owns it alone."""
    state.position = event.seq
    fold = _FOLDS.get(event.data.__class__)
    if fold is not None:
        fold(state, event)
    workflow.evolve(state, event)
    if state.open is not None:
        state.open.recorded[event.id] = event.data


def fresh(run: str, workflow: Workflow) -> RunState:
    """The state of a run of which nothing is on record."""
    return RunState(run, progress=workflow.begin())


class _Snapshot(msgspec.Struct):
    release: int
    state: RunState


# Raised whenever a field of the state changes its meaning; other snapshots are folded anew.
_SNAPSHOT = 1


def freeze(state: RunState) -> bytes:
    """The state between two turns as bytes."""
    return msgspec.json.encode(_Snapshot(_SNAPSHOT, state))


def thaw(workflow: Workflow, frozen: bytes) -> RunState | None:
    """The state that bytes hold, or nothing when another release wrote them."""
    try:
        snapshot = msgspec.json.decode(frozen, type=_Snapshot)
        state = snapshot.state
        state.progress = msgspec.convert(state.progress, workflow.progress)
    except msgspec.MsgspecError:
        return None
    return state if snapshot.release == _SNAPSHOT else None


def _on_started(state: RunState, event: Event) -> None:
    fact: runs.RunStarted = event.data
    state.workflow, state.tenant, state.user = fact.workflow, fact.tenant, fact.user
    state.status = "started"


def _on_loaded(state: RunState, event: Event) -> None:
    fact: variables.ContextLoaded = event.data
    state.values = {each.name: each.value for each in fact.values}
    state.revision += 1


def _on_changed(state: RunState, event: Event) -> None:
    fact: variables.ContextChanged = event.data
    state.values[fact.name] = fact.value
    state.fired.add(fact.writer)
    state.revision += 1


def _on_suppressed(state: RunState, event: Event) -> None:
    fact: variables.ContextSuppressed = event.data
    for name in fact.names:
        state.values.pop(name, None)
        state.absent[name] = fact.reason


def _on_cancel(state: RunState, event: Event) -> None:
    state.cancel = event.data
    state.status = "running"


def _status(status: str) -> Callable[[RunState, Event], None]:
    def fold(state: RunState, event: Event) -> None:
        state.status = status

    return fold


_FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    **AGENT_FOLDS,
    runs.RunStarted: _on_started,
    runs.RunPaused: _status("paused"),
    runs.RunResumed: _status("running"),
    runs.RunFinished: _status("finished"),
    runs.RunFailed: _status("failed"),
    runs.RunCancelled: _status("cancelled"),
    runs.CancelRequested: _on_cancel,
    variables.ContextLoaded: _on_loaded,
    variables.ContextChanged: _on_changed,
    variables.ContextSuppressed: _on_suppressed,
}


def derive(workflow: Workflow, state: RunState, event: Event) -> Sequence[ContextChanged]:
    """What an event changes in derived variables, in declared order."""
    if event.data.__class__ is not agents.AgentText:
        return ()
    said: agents.AgentText = event.data
    changes = workflow.triggers.on_text(said.agent, said.text, state.values, state.fired)
    return [
        ContextChanged(change.name, change.value, state.values.get(change.name), change.writer)
        for change in changes
    ]
