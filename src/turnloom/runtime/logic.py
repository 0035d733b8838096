"""The closed union of all facts of this release, and how each changes the state of a run."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from turnloom.agents import events as agents
from turnloom.agents.logic.folding import FOLDS as AGENT_FOLDS
from turnloom.agents.logic.folding import postponed
from turnloom.agents.spec import Failure, OpenTurn, RunState
from turnloom.assembly import events as assembly
from turnloom.assembly.logic.frames import texts_of
from turnloom.assembly.logic.retrieval import found_texts
from turnloom.board import events as board
from turnloom.conversation.events import RouteDecided
from turnloom.flow import events as flow
from turnloom.guards import events as guards
from turnloom.guards.logic.following import follow, new_watch
from turnloom.guards.spec import NO_GUARDS, Guards, Watch
from turnloom.hooks import events as lifecycle
from turnloom.log import events as runs
from turnloom.log.logic import Codec, Upcast, standing
from turnloom.log.spec import Event, Intent, RunKey
from turnloom.reaction import events as reaction
from turnloom.runs.form import Form, ending
from turnloom.variables import events as variables
from turnloom.variables.logic.derivation import Change

FACTS = (
    runs.RunStarted,
    runs.RunPaused,
    runs.RunResumed,
    runs.RunLimited,
    runs.RunFinished,
    runs.RunFailed,
    runs.CancelRequested,
    runs.RunCancelled,
    runs.RunRetried,
    runs.RunForked,
    variables.ContextLoaded,
    variables.ContextChanged,
    variables.ContextRefused,
    variables.ContextMissed,
    variables.ContextSuppressed,
    variables.TimerSet,
    variables.TimerExpired,
    assembly.FrameAssembled,
    assembly.ContextGathered,
    assembly.ProviderFailed,
    assembly.RetrievalSearched,
    assembly.HistorySummarised,
    agents.TurnStarted,
    agents.TurnFinished,
    agents.ModelCalled,
    agents.ModelAnswered,
    agents.ModelRetried,
    agents.ModelLimited,
    agents.ModelFailed,
    agents.AgentText,
    agents.AgentOutput,
    agents.OutputRefused,
    agents.TransferChosen,
    agents.ToolCalled,
    agents.ToolReturned,
    agents.ToolFailed,
    agents.CallsSettled,
    agents.ToolsOffered,
    agents.EffectDone,
    agents.ChanceDrawn,
    agents.SpeakerPicked,
    lifecycle.MessageHookCalled,
    lifecycle.MessageHooked,
    lifecycle.MessageHookFailed,
    lifecycle.LifecycleToolCall,
    lifecycle.LifecycleToolResult,
    lifecycle.LifecycleToolError,
    agents.UserText,
    agents.MessageSent,
    agents.QuestionAsked,
    agents.QuestionAnswered,
    agents.QuestionExpiredFact,
    agents.AnswerRefused,
    RouteDecided,
    board.ArtifactPublished,
    board.ArtifactRefused,
    board.ArtifactMade,
    board.ArtifactConsumed,
    reaction.ArtifactOffered,
    reaction.ArtifactOpened,
    reaction.ArtifactReceived,
    reaction.ArtifactsGiven,
    reaction.RunOpened,
    reaction.ArtifactForwarded,
    reaction.JoinExpired,
    reaction.BatchClosed,
    reaction.RetryAsked,
    reaction.LimitReached,
    reaction.SampleChosen,
    flow.StateGiven,
    flow.StateMigrated,
    flow.StepStarted,
    flow.StepCompleted,
    flow.StepRetried,
    flow.StepFailed,
    flow.StepHandled,
    flow.StepRecovered,
    flow.StepSkipped,
    flow.StepCompensated,
    flow.BranchTaken,
    flow.ForkOpened,
    flow.ForkFailed,
    flow.ForkJoined,
    flow.LoopPassed,
    flow.LoopEnded,
    flow.ApprovalDecided,
    flow.FlowStopped,
    flow.FlowRewound,
    guards.SelectionMade,
    guards.SelectionJudged,
    guards.BudgetReserved,
    guards.BudgetSpent,
    guards.BudgetExceededFact,
    guards.ScarcityChanged,
    guards.WindowNeared,
    guards.LoopChecked,
    guards.LoopDetectedFact,
)

# The error of a run in which a selection has no candidate left.
NO_CANDIDATES = "no candidates"

# By (kind, version): the function that lifts the data to the next version.
UPCASTS: dict[tuple[str, int], Upcast] = {}


def codec() -> Codec:
    """The codec of this release."""
    return Codec(FACTS, UPCASTS)


def evolve(workflow: Form, state: RunState, event: Event) -> None:
    """Fold an event into the state, in place: only the driver holds it."""
    state.position = event.seq
    if state.guards is not None:
        follow(state, event)
    kind = event.data.__class__
    fold = _FOLDS.get(kind)
    if fold is not None:
        fold(state, event)
    workflow.evolve(state, event)
    id = event.id
    scope = state.scopes.get(id.partition("/")[0])
    if scope is not None:
        scope.recorded[id] = event
        scope.last = event.seq
    elif id.startswith("chat/"):
        state.chat[id] = event.data


def scope_of(state: RunState, id: str) -> OpenTurn | None:
    """The open turn or step that an event of this id belongs to."""
    return state.scopes.get(id.partition("/")[0])


def has_open_calls(state: RunState, questions: Iterable[str]) -> bool:
    """Whether a turn or step that asked one of these questions has other calls that were begun and
    have no outcome: a process was killed, or an answer came."""
    asking = {id.rpartition("/ask.")[0] for id in questions}
    scopes = {id.partition("/")[0] for id in asking}
    for scope in (state.scopes[each] for each in scopes if each in state.scopes):
        for id, event in scope.recorded.items():
            key = id.removesuffix("?")
            is_open = isinstance(event.data, Intent) and f"{key}.0" not in scope.recorded
            if is_open and key not in asking:
                return True
    return False


def base_context(run: str, started: runs.RunStarted) -> dict[str, str]:
    """The ids of a run, which every context begins with."""
    return {
        "workflow_name": started.workflow,
        "chat_id": run,
        "user_id": started.user,
        "app_id": started.tenant,
        "enterprise_id": started.tenant,
    }


def fresh(run: RunKey, workflow: Form, guards: Guards = NO_GUARDS) -> RunState:
    """The state of a run whose log is empty."""
    begun, watch = workflow.begin(), new_watch(guards)
    return RunState(run.id, tenant=run.tenant, progress=begun, guards=watch)


def folded(
    workflow: Form, run: RunKey, events: Sequence[Event], guards: Guards = NO_GUARDS
) -> RunState:
    """The state of a run after the events of its log, of which retries may have voided some."""
    state = fresh(run, workflow, guards)
    for event in standing(events):
        evolve(workflow, state, event)
    return state


def is_untouched(state: RunState) -> bool:
    """Whether nothing has happened in a run since it was started."""
    return state.status == "started" and not state.chat


# Final statuses: no event follows.
ENDED = frozenset({"finished", "failed", "cancelled"})


class _Snapshot(msgspec.Struct):
    release: int
    state: RunState


# Increase it when a field of the state changes its meaning; snapshots of other numbers are ignored.
_SNAPSHOT = 13

_KINDS = {fact.kind: fact for fact in FACTS}


def freeze(state: RunState) -> bytes:
    """The state between two turns as bytes."""
    chat = {id: (fact.kind, fact) for id, fact in state.chat.items()}
    return msgspec.json.encode(_Snapshot(_SNAPSHOT, msgspec.structs.replace(state, chat=chat)))


def read_snapshot(frozen: bytes) -> RunState | None:
    """Decode a frozen state, except for the parts of its form and its guards; None if another
    release wrote it."""
    try:
        snapshot = msgspec.json.decode(frozen, type=_Snapshot)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return snapshot.state if snapshot.release == _SNAPSHOT else None


def thaw(workflow: Form, state: RunState) -> RunState | None:
    """A state from a snapshot as the form of its run knows it; None if it does not fit."""
    try:
        # JSON keys are strings, and turns are keyed by number.
        state.progress = msgspec.convert(state.progress, workflow.progress, str_keys=True)
        state.guards = msgspec.convert(state.guards, Watch | None, str_keys=True)
        state.chat = {
            id: msgspec.convert(fact, _KINDS[kind]) for id, (kind, fact) in state.chat.items()
        }
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return state


def _on_started(state: RunState, event: Event) -> None:
    fact: runs.RunStarted = event.data
    state.workflow, state.tenant, state.user = fact.workflow, fact.tenant, fact.user
    state.form, state.correlation = fact.form, fact.correlation
    state.status = "started"


def _on_loaded(state: RunState, event: Event) -> None:
    fact: variables.ContextLoaded = event.data
    state.values = {each.name: each.value for each in fact.values}
    state.revision += 1


def _on_changed(state: RunState, event: Event) -> None:
    fact: variables.ContextChanged = event.data
    state.values[fact.name] = fact.value
    state.ephemeral.pop(fact.name, None)
    if fact.removed:
        del state.values[fact.name]
    elif fact.ephemeral:
        state.ephemeral[fact.name] = event.id.rpartition(".")[0].partition("@")[0]
    state.fired.add(fact.writer)
    state.revision += 1


def _on_timer_set(state: RunState, event: Event) -> None:
    fact: variables.TimerSet = event.data
    state.timers[fact.timer] = fact.due


def _on_timer_expired(state: RunState, event: Event) -> None:
    fact: variables.TimerExpired = event.data
    state.timers.pop(fact.timer, None)


def _on_suppressed(state: RunState, event: Event) -> None:
    fact: variables.ContextSuppressed = event.data
    for name in fact.names:
        state.values.pop(name, None)
        state.absent[name] = fact.reason


def _on_cancel(state: RunState, event: Event) -> None:
    state.cancel = event.data
    state.questions.clear()
    state.status = "running"


def _on_paused(state: RunState, event: Event) -> None:
    fact: runs.RunPaused = event.data
    state.status, state.paused_for = "paused", fact.waiting_for


def _on_resumed(state: RunState, event: Event) -> None:
    state.status = "paused" if state.questions else "running"


def _on_retried(state: RunState, event: Event) -> None:
    """Continue. What ended the run is voided; the hooks after the chat that ran count as done."""
    fact: runs.RunRetried = event.data
    state.life += 1
    state.ending = ""
    state.pin = fact.pin or state.pin
    state.budget = {**state.budget, **fact.budget}
    state.tools, state.origin = fact.tools, (state.run, event.seq)
    state.status = "paused" if state.questions else "running"


def _on_forked(state: RunState, event: Event) -> None:
    """Continue as another run. The time before it began does not count against its deadlines."""
    fact: runs.RunForked = event.data
    state.pin = fact.pin or state.pin
    state.tools, state.origin = fact.tools, (fact.of, fact.at)
    if state.correlation:
        state.correlation = state.run
    idle = event.at - fact.since
    state.timers = {name: due + idle for name, due in state.timers.items()}
    state.questions = postponed(state.questions, idle)
    state.status = "paused" if state.questions else "running"


def _on_selection(state: RunState, event: Event) -> None:
    """Fail the run if no candidate can take the turn."""
    fact: guards.SelectionMade = event.data
    if not fact.chosen:
        state.failure = Failure(NO_CANDIDATES, " ".join(fact.notes))


def _on_window(state: RunState, event: Event) -> None:
    fact: guards.WindowNeared = event.data
    state.crowded.add(fact.agent)


def _on_gathered(state: RunState, event: Event) -> None:
    state.texts.update(texts_of(event.data))


def _on_searched(state: RunState, event: Event) -> None:
    state.texts.update(found_texts(event.data))


def _on_hook(state: RunState, event: Event) -> None:
    fact: lifecycle.LifecycleToolCall = event.data
    if fact.trigger == "after_chat":
        state.ending = ending(state) or "finished"


def _status(status: str) -> Callable[[RunState, Event], None]:
    def fold(state: RunState, event: Event) -> None:
        state.status = status

    return fold


_FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    **AGENT_FOLDS,
    runs.RunStarted: _on_started,
    runs.RunPaused: _on_paused,
    runs.RunResumed: _on_resumed,
    runs.RunFinished: _status("finished"),
    runs.RunFailed: _status("failed"),
    runs.RunCancelled: _status("cancelled"),
    runs.RunRetried: _on_retried,
    runs.RunForked: _on_forked,
    runs.CancelRequested: _on_cancel,
    lifecycle.LifecycleToolCall: _on_hook,
    variables.ContextLoaded: _on_loaded,
    variables.ContextChanged: _on_changed,
    variables.ContextSuppressed: _on_suppressed,
    variables.TimerSet: _on_timer_set,
    variables.TimerExpired: _on_timer_expired,
    guards.SelectionMade: _on_selection,
    guards.WindowNeared: _on_window,
    assembly.ContextGathered: _on_gathered,
    assembly.RetrievalSearched: _on_searched,
}


def derive(workflow: Form, state: RunState, event: Event) -> Sequence[Change]:
    """The changes of derived variables that an event triggers, in declared order."""
    return workflow.triggers.derive(event.kind, event.data, state, state.fired, at=event.at)
