"""The steps of a turn in order, one entry per call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from turnloom.agents import events as agents
from turnloom.agents.spec import ToolCall, Usage
from turnloom.assembly.events import ContextGathered, FrameAssembled, ProviderFailed
from turnloom.board.events import ArtifactConsumed, ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.explain.logic.artifacts import ArtifactHistory
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.frames import Part, call_of, model_call_of, number_of, part_of, place_of
from turnloom.explain.spec import steps as details
from turnloom.explain.spec import steps as spec
from turnloom.explain.spec.board import (
    ArtifactEntry,
    ChoiceEntry,
    ContextEntry,
    FailedProviderEntry,
    ProviderEntry,
)
from turnloom.guards.events import BudgetReserved
from turnloom.hooks import events as lifecycle
from turnloom.log.events import RunPaused
from turnloom.log.spec import Event
from turnloom.reaction.events import SampleChosen
from turnloom.variables import events as variables

BoardStep = ContextEntry | ArtifactEntry | ChoiceEntry


def board_step(events: Sequence[Event], artifacts: ArtifactHistory) -> BoardStep | None:
    """The entry for events of one call about artifacts, tries or providers, if they are such."""
    first = events[0]
    match first.data:
        case ContextGathered() | ProviderFailed():
            return _gathered(events)
        case ArtifactPublished(artifact=artifact):
            return _published(first, artifact, artifacts)
        case ArtifactMade(artifact=artifact):
            return ArtifactEntry(first.seq, artifacts.named(artifact.id), True, ())
        case SampleChosen(scores=scores, chosen=chosen):
            return ChoiceEntry(first.seq, chosen + 1, scores)
        case _:
            return None


def _gathered(events: Sequence[Event]) -> ContextEntry:
    last, within = events[-1], tuple(_consulted(events))
    if isinstance(last.data, ProviderFailed):
        return ContextEntry(
            events[0].seq, last.data.provider, "failed", 0, seconds=0, fallback=False, within=within
        )
    fact: ContextGathered = last.data
    return ContextEntry(
        events[0].seq,
        fact.provider,
        "gathered",
        len(fact.items),
        seconds=seconds_of(fact),
        fallback=fact.fallback,
        within=within if len(within) > 1 else (),
    )


def seconds_of(fact: ContextGathered) -> float:
    """Duration of a gathering; nested providers are part of the time of the outer one."""
    return sum(each.micros for each in fact.calls if "/" not in each.provider) / 1_000_000


def _consulted(events: Sequence[Event]) -> Iterator[ProviderEntry | FailedProviderEntry]:
    for event in events:
        match event.data:
            case ProviderFailed(provider=provider, error=error, message=message, fallback=fallback):
                yield FailedProviderEntry(event.seq, provider, error, message, fallback=fallback)
            case ContextGathered(calls=calls):
                for call in calls:
                    said = (call.provider, call.items, call.micros, call.error)
                    yield ProviderEntry(event.seq, *said)
            case _:
                pass


def _published(event: Event, artifact: Artifact, artifacts: ArtifactHistory) -> ArtifactEntry:
    offers = artifacts.offers(artifact.id)
    within = tuple(each for offer in offers for each in artifacts.verdicts(offer))
    return ArtifactEntry(event.seq, artifacts.named(artifact.id), False, within)


T = TypeVar("T")

# Facts about the beginning and end of a call; its entry contains them.
_HEADS = (
    agents.ModelCalled,
    agents.ModelAnswered,
    agents.ModelFailed,
    agents.ToolCalled,
    agents.ToolReturned,
    agents.ToolFailed,
    agents.TransferChosen,
    lifecycle.LifecycleToolCall,
    lifecycle.LifecycleToolResult,
    lifecycle.LifecycleToolError,
    lifecycle.MessageHookCalled,
    lifecycle.MessageHooked,
    lifecycle.MessageHookFailed,
)

# Facts about a call that failed in workflow code.
_FAILED = (
    agents.ModelFailed,
    agents.ToolFailed,
    lifecycle.LifecycleToolError,
    lifecycle.MessageHookFailed,
)

# Facts that are shown elsewhere: with the turn, its wake reason, its frame, or its question.
_ELSEWHERE = (
    agents.TurnStarted,
    agents.TurnFinished,
    FrameAssembled,
    RunPaused,
    agents.QuestionAnswered,
    agents.QuestionExpiredFact,
    ArtifactConsumed,
)


class CallEvents(NamedTuple):
    """The events of one call, in order."""

    key: str
    events: list[Event]

    def one(self, *facts: type[T]) -> tuple[Event, T] | None:
        """The first event with one of these facts, and the fact."""
        found = (event for event in self.events if isinstance(event.data, facts))
        return next(((event, event.data) for event in found), None)


def calls(own: Sequence[Event]) -> list[CallEvents]:
    """Group the events of a turn by call; an event without a call is a group by itself."""
    found: dict[str, CallEvents] = {}
    for event in own:
        key = call_of(event)
        events = found.setdefault(key or event.id, CallEvents(key, [])).events
        # A reservation is recorded just before its call, and shown inside it.
        is_head = len(events) == 1 and isinstance(events[0].data, BudgetReserved)
        events.insert(0 if is_head else len(events), event)
    return list(found.values())


def steps(turn: Sequence[CallEvents], artifacts: ArtifactHistory) -> list[spec.Step]:
    """The steps of a turn, in order."""
    asked = {call.key: wanted for call in turn for wanted in [_wanted(call)] if wanted}
    given = exchanges_given(turn)
    made: list[spec.Step] = []
    for call in turn:
        tool = asked.get(model_call_of(call.key), ())
        step = _step(call, tool, given) or board_step(call.events, artifacts)
        if step is not None:
            made.append(step)
        else:
            made += _details(call)
    return made


def exchanges_given(turn: Sequence[CallEvents]) -> dict[str, int]:
    """The number of exchanges passed to each model call of a turn, by key.

    Each earlier engine left one, each earlier call of this engine left one, and so did its calls of
    its built-in tools.
    """
    found: dict[str, int] = {}
    left: dict[Part, int] = {}
    for call in turn:
        if isinstance(call.events[0].data, agents.ModelCalled):
            part, answered = part_of(call.key), call.one(agents.ModelAnswered)
            found[call.key] = left.get(part, part.engine)
            left[part] = found[call.key] + 1 + (len(answered[1].before) if answered else 0)
    return found


def _wanted(call: CallEvents) -> Sequence[ToolCall]:
    """The tool calls that a model call requested."""
    answered = call.one(agents.ModelAnswered)
    return answered[1].calls if answered else ()


def _step(
    call: CallEvents, wanted: Sequence[ToolCall], given: Mapping[str, int]
) -> spec.Step | None:
    match call.events[0].data:
        case agents.ModelCalled():
            return _model(call, given[call.key])
        case agents.ToolCalled() | agents.ToolFailed():
            return _tool(call, wanted)
        case lifecycle.LifecycleToolCall() | lifecycle.LifecycleToolResult():
            return _hook(call)
        case lifecycle.MessageHookCalled():
            return _message_hook(call)
        case agents.TransferChosen(rule=rule, target=target):
            return spec.TransferEntry(call.events[0].seq, rule, target, tuple(_details(call)))
        case _:
            return None


def _model(call: CallEvents, given: int) -> spec.ModelCallEntry:
    first, number, part = call.events[0], number_of(call.key), part_of(call.key)
    outcome, usage, wanted, error, took, model = "open", Usage(), (), "", None, ""
    if answered := call.one(agents.ModelAnswered):
        outcome, usage, wanted = "answered", answered[1].usage, answered[1].calls
        took, model = _seconds(first, answered[0]), answered[1].model
    elif failed := call.one(agents.ModelFailed):
        outcome, error = "failed", f"{failed[1].error}: {failed[1].message}"
        took = _seconds(first, failed[0])
    return spec.ModelCallEntry(
        first.seq,
        number,
        first.data.engine,
        first.data.request,
        given=given,
        outcome=outcome,
        seconds=took,
        usage=usage,
        calls=wanted,
        error=error,
        within=tuple(_details(call)),
        part=part.name,
        model=model,
    )


def _tool(call: CallEvents, wanted: Sequence[ToolCall]) -> spec.ToolEntry:
    first, place = call.events[0], place_of(call.key)
    asked = wanted[place].arguments if place < len(wanted) else None
    outcome, result, error, took = "open", None, "", None
    if returned := call.one(agents.ToolReturned):
        outcome, result, took = "returned", returned[1].result, _seconds(first, returned[0])
    elif failed := call.one(agents.ToolFailed):
        outcome, took = "failed", _seconds(first, failed[0])
        error = f"{failed[1].error}: {failed[1].message}"
    within = tuple(_details(call))
    return spec.ToolEntry(
        first.seq,
        first.data.tool,
        number_of(model_call_of(call.key)),
        "/auto." in call.key,
        arguments=getattr(first.data, "arguments", asked),
        outcome=outcome,
        result=result,
        error=error,
        seconds=took,
        waited=_waited(within),
        within=within,
        part=part_of(call.key).name,
    )


def _hook(call: CallEvents) -> spec.HookEntry:
    first = call.events[0]
    ended = call.one(lifecycle.LifecycleToolResult, lifecycle.LifecycleToolError)
    fact = ended[1] if ended else None
    failed = fact if isinstance(fact, lifecycle.LifecycleToolError) else None
    within = tuple(_details(call))
    return spec.HookEntry(
        first.seq,
        first.data.hook,
        first.data.trigger,
        fact.status if fact else "open",
        attempts=fact.attempts if fact else 1,
        elapsed_ms=fact.elapsed_ms if fact else None,
        waited=_waited(within),
        restored=first.data.restored,
        result=getattr(fact, "result", None),
        error=f"{failed.error}: {failed.message}" if failed else "",
        within=within,
    )


def _message_hook(call: CallEvents) -> spec.HookEntry:
    first = call.events[0]
    ended = call.one(lifecycle.MessageHooked, lifecycle.MessageHookFailed)
    fact = ended[1] if ended else None
    failed = fact if isinstance(fact, lifecycle.MessageHookFailed) else None
    return spec.HookEntry(
        first.seq,
        first.data.function,
        first.data.hook_type,
        "error" if failed else "success" if fact else "open",
        attempts=1,
        elapsed_ms=1000 * _seconds(first, ended[0]) if ended else None,
        waited=0.0,
        restored=False,
        result=getattr(fact, "result", None),
        error=f"{failed.error}: {failed.message}" if failed else "",
        within=tuple(_details(call)),
    )


def _waited(within: Sequence[details.Detail]) -> float:
    return sum(each.waited or 0 for each in within if isinstance(each, details.QuestionEntry))


def _seconds(first: Event, last: Event) -> float:
    return (last.at - first.at).total_seconds()


def _details(call: CallEvents) -> Iterator[details.Detail]:
    """The details of a call, without its beginning and end."""
    for event in call.events:
        if isinstance(event.data, agents.QuestionAsked):
            yield _question(call, event, event.data)
        elif isinstance(event.data, agents.ModelAnswered):
            yield from _engine_details(event.seq, event.data)
        elif isinstance(event.data, _FAILED):
            yield from (
                details.StackEntry(event.seq, each) for each in event.data.stack.splitlines()
            )
        elif make := _DETAILS.get(event.kind):
            yield make(call, event.seq, event.data)
        elif not isinstance(event.data, (*_HEADS, *_ELSEWHERE)):
            yield details.EventEntry(event.seq, event.kind, describe(event.data))


def _engine_details(seq: int, answered: agents.ModelAnswered) -> Iterator[details.Detail]:
    """The tools that an engine called itself, and the texts that it added."""
    for exchange in answered.before:
        for call, given in zip(exchange.calls, exchange.results, strict=True):
            yield details.EngineToolEntry(
                seq, call.tool, call.arguments, given.value, error=given.error
            )
    if answered.added:
        yield details.AddedTextEntry(seq, answered.added)


def _question(call: CallEvents, event: Event, fact: agents.QuestionAsked) -> details.QuestionEntry:
    asked = (event.seq, fact.question, fact.tool, fact.to, fact.prompt, fact.payload)
    for later in call.events:
        ending = later.data
        if getattr(ending, "question", None) != fact.question:
            continue
        if isinstance(ending, agents.QuestionAnswered):
            how = (ending.by, later.at, ending.value, _seconds(event, later))
            return details.QuestionEntry(*asked, "answered", *how)
        if isinstance(ending, agents.QuestionExpiredFact):
            how = ("", later.at, None, _seconds(event, later))
            return details.QuestionEntry(*asked, "expired", *how)
    return details.QuestionEntry(*asked, "open")


def _refused(call: CallEvents, seq: int, fact: agents.OutputRefused) -> details.Detail:
    answered = call.one(agents.ModelAnswered)
    return details.RefusedOutputEntry(
        seq, fact.model, answered[1].raw if answered else "", fact.problem
    )


def _retried(call: CallEvents, seq: int, fact: agents.ModelRetried) -> details.Detail:
    before = [
        event for event in call.events if event.kind == agents.ModelRetried.kind and event.seq < seq
    ]
    return details.RetryEntry(seq, len(before) + 1, fact.error, fact.message, pause=fact.pause)


_DETAILS: dict[str, Callable[[CallEvents, int, Any], details.Detail]] = {
    agents.AgentText.kind: lambda _, seq, fact: details.TextEntry(seq, fact.text, fact.hidden),
    agents.AgentOutput.kind: lambda _, seq, fact: details.OutputEntry(
        seq, fact.model, fact.output, fact.hidden
    ),
    agents.OutputRefused.kind: _refused,
    agents.ModelRetried.kind: _retried,
    agents.EffectDone.kind: lambda _, seq, fact: details.EffectEntry(seq, fact.name, fact.result),
    variables.ContextChanged.kind: lambda _, seq, fact: details.ChangeEntry(
        seq, fact.name, fact.previous, fact.value, writer=fact.writer, removed=fact.removed
    ),
    variables.ContextRefused.kind: lambda _, seq, fact: details.RefusedWriteEntry(
        seq, fact.name, fact.writer, fact.reason
    ),
    variables.ContextMissed.kind: lambda _, seq, fact: details.MissedWriteEntry(
        seq, fact.name, fact.tool, fact.key, value=fact.value
    ),
}
