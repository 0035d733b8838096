"""The calls and deliveries of a run, as its log has them, for a run that repeats a part of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turnloom.agents.events import (
    QuestionAnswered,
    QuestionAsked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from turnloom.board.events import ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.flow.events import (
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepStarted,
)
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.states import StateChange
from turnloom.flow.logic.walking import state_of
from turnloom.hooks.events import (
    LifecycleToolCall,
    LifecycleToolError,
    LifecycleToolResult,
    MessageHookCalled,
    MessageHooked,
    MessageHookFailed,
)
from turnloom.kernel.values import Json, as_data
from turnloom.log.events import RunRetried
from turnloom.log.logic import LIFE, standing
from turnloom.log.spec import Event, Fact
from turnloom.reaction.events import ArtifactForwarded, ArtifactReceived, RunOpened
from turnloom.runs.form import Form
from turnloom.runs.retries import GIVEN_UP
from turnloom.runtime.world import CallResult, EffectRefused, RecordedError
from turnloom.variables.events import ContextChanged

# Separates the key of a call from the numbers of its questions.
ASK = "/ask."


class RecordedCall(NamedTuple):
    """A call that was completed: its key, what was requested, and what it left."""

    key: str
    request: str
    result: CallResult


class Original(NamedTuple):
    """The events of a run before a point, and those that followed."""

    before: Sequence[Event]
    after: Sequence[Event]


def after_cut(events: Sequence[Event], at: int) -> Original:
    """A run, cut after a position; what its retries voided does not count."""
    after = [event for event in standing(events) if event.seq > at]
    return Original(standing(events[:at]), after)


def before_retry(events: Sequence[Event], retry: int) -> Original:
    """A run, up to the retry at a position: what it voided followed what it kept."""
    fact: RunRetried = events[retry - 1].data
    voided = {seq for first, last in fact.voided for seq in range(first, last + 1)}
    past = standing(events[: retry - 1])
    kept = [event for event in past if event.seq not in voided]
    return Original(kept, [event for event in past if event.seq in voided])


def requests(form: Form, events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """The calls that events begin, by key, and what each requests."""
    progress: Any = form.begin()
    folds: Mapping[type, Callable[[Any, Any], None]] = (
        form.folds if isinstance(form, FlowForm) else {}
    )
    for event in events:
        if event.id.endswith("?") and (request := request_of(event.data, progress)):
            yield event.id.removesuffix("?"), request
        if (fold := folds.get(event.data.__class__)) is not None:
            fold(progress, event.data)


def request_of(intent: Fact | None, progress: Any) -> str:
    """What a call requests, apart from its place in the run: its function, and what that gets.
    Empty if the call does not touch the world. `progress` is that of a flow."""
    match intent:
        case ToolCalled(request=request):
            return f"tool {request}"
        case MessageHookCalled(request=request, hook_type=kind):
            return f"{kind} {request}"
        case LifecycleToolCall(restored=False):
            return as_data([intent.trigger, intent.agent, intent.file, intent.hook])
        case StepStarted(turn=0):
            state: dict[str, Json] = state_of(progress, intent.strand).state
            return as_data([intent.step, intent.undoes, state])
        case _:
            return ""


def recorded_calls(form: Form, original: Original) -> list[RecordedCall]:
    """The calls that were completed after the point, in the order in which they began."""
    events = (*original.before, *original.after)
    facts = {event.id: event.data for event in original.after}
    said = dialogues(event.data for event in events)
    return [
        RecordedCall(key, request, result._replace(dialogue=said.get(asker_of(key), ())))
        for key, request in dict(requests(form, events)).items()
        if (result := _result(key, facts)) is not None
    ]


def asker_of(key: str) -> str:
    """The key that the questions of a call begin with: a step has one for all of its attempts."""
    scope, _, attempt = key.partition("/")
    return scope if scope.startswith("s") and attempt.startswith("a") else key


def dialogues(facts: Iterable[Fact]) -> Mapping[str, list[tuple[QuestionAsked, QuestionAnswered]]]:
    """The questions that calls asked people, and their answers, by the key of the asker. The
    question whether a call is allowed is none of them."""
    asked: dict[str, QuestionAsked] = {}
    found: defaultdict[str, list[tuple[QuestionAsked, QuestionAnswered]]] = defaultdict(list)
    for fact in facts:
        if isinstance(fact, QuestionAsked):
            asked[fact.question] = fact
        elif isinstance(fact, QuestionAnswered):
            asker, _, number = fact.question.rpartition(ASK)
            if number.partition(LIFE)[0].isdigit():
                found[asker].append((asked[fact.question], fact))
    return found


def _result(key: str, facts: Mapping[str, Fact]) -> CallResult | None:
    """What a call left; None if it was not completed, or left objects of its process."""
    left = _numbered(key, facts)
    ended = left.pop() if left else _failed_attempt(key, facts)
    left = left or _numbered(f"{key}/left", facts)
    writes = (*(each for each in left if isinstance(each, ContextChanged)), *_writes(ended))
    if ended is None or any(each.ephemeral for each in writes):
        return None
    notes = [each for each in left if not isinstance(each, ContextChanged)]
    return _ended(ended, CallResult(writes=writes, notes=notes))


def _numbered(key: str, facts: Mapping[str, Fact]) -> list[Fact]:
    found: list[Fact] = []
    while (fact := facts.get(f"{key}.{len(found)}")) is not None:
        found.append(fact)
    return found


def _failed_attempt(key: str, facts: Mapping[str, Fact]) -> StepRetried | StepFailed | None:
    again = facts.get(f"{key}/again")
    if isinstance(again, StepRetried):
        return again
    scope, _, attempt = key.partition("/a")
    failed = facts.get(f"{scope}/failed")
    is_it = isinstance(failed, StepFailed) and attempt == str(failed.attempt)
    return failed if is_it and isinstance(failed, StepFailed) else None


def _writes(ended: Fact | None) -> Sequence[ContextChanged]:
    """The writes that the outcome of a parallel tool call carries."""
    return ended.writes if isinstance(ended, ToolReturned | ToolFailed) else ()


def _ended(ended: Fact, left: CallResult) -> CallResult | None:
    """What a call left, with its result or its error; None if it was given up."""
    match ended:
        case ToolReturned(result=value) | MessageHooked(result=value):
            return left._replace(value=value)
        case LifecycleToolResult(result=value):
            return left._replace(value=value)
        case StepCompleted(update=update, confidence=confidence):
            return left._replace(value=StateChange(update, confidence))
        case StepCompensated(error="", update=update):
            return left._replace(value=StateChange(update))
        case _:
            error = _error(ended)
            return None if error is None else left._replace(error=error)


def _error(ended: Fact) -> RecordedError | None:
    match ended:
        case LifecycleToolError(error=error) if error == GIVEN_UP:
            return None
        case _ if getattr(ended, "error", "") == EffectRefused.__name__:
            return None  # it was not made
        case ToolFailed() | MessageHookFailed() | LifecycleToolError():
            return RecordedError(ended.error, ended.message, ended.stack)
        case StepFailed():
            return RecordedError(ended.error, ended.message, ended.stack, ended.handler)
        case StepCompensated() | StepRetried():
            return RecordedError(ended.error, ended.message)
        case _:
            return None


def deliveries(original: Original) -> list[str]:
    """What was delivered to other runs after the point."""
    published = {
        each.id: each for event in (*original.before, *original.after) for each in _held(event.data)
    }
    found: list[str] = []
    for fact in (event.data for event in original.after):
        if isinstance(fact, ArtifactForwarded) and fact.artifact in published:
            found.append(forwarding(published[fact.artifact], fact.subscription))
        elif isinstance(fact, RunOpened):
            found.append(opening(fact.artifacts))
    return found


def _held(fact: Fact) -> Sequence[Artifact]:
    return (fact.artifact,) if isinstance(fact, ArtifactPublished | ArtifactReceived) else ()


def forwarding(artifact: Artifact, subscription: str) -> str:
    """The request to forward an artifact: its content, whatever its id."""
    return as_data(["forward", subscription, artifact.type, artifact.payload])


def opening(artifacts: Sequence[str]) -> str:
    """The request to start a run with artifacts."""
    return as_data(["open", *sorted(artifacts)])


def published_after(original: Original) -> frozenset[str]:
    """The ids of the artifacts that were published after the point."""
    facts = (event.data for event in original.after)
    return frozenset(each.artifact.id for each in facts if isinstance(each, ArtifactPublished))
