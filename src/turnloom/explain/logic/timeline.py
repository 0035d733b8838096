"""Build the timeline of a run from its log."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from turnloom.agents import events as agents
from turnloom.agents.spec import SELECTOR
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    ProviderFailed,
    RetrievalSearched,
)
from turnloom.board.events import ArtifactConsumed, ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.conversation.events import RouteDecided
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import is_board
from turnloom.explain.logic.describe import (
    amounts,
    data,
    describe,
    listed,
    outcome,
    step_name,
    words_for,
)
from turnloom.explain.logic.flow_routes import is_flow
from turnloom.explain.logic.frames import call_of
from turnloom.explain.logic.rows import Handlers, Rows
from turnloom.explain.logic.steps import seconds_of
from turnloom.explain.spec.board import items
from turnloom.explain.spec.text import counted
from turnloom.explain.spec.timeline import Timeline
from turnloom.flow import events as flow
from turnloom.guards import events as guards
from turnloom.guards.events import SelectionMade
from turnloom.guards.spec import NO_PRICES, Amounts, Price
from turnloom.hooks import events as lifecycle
from turnloom.log import events as runs
from turnloom.log.events import RunForked, RunPaused, RunResumed, RunRetried, RunStarted
from turnloom.log.logic import status_of
from turnloom.log.spec import Event
from turnloom.reaction import events as reaction
from turnloom.reaction.logic.gates import FAILED, FORWARDED, LATER, TAKEN


def _on_frame(rows: Rows, event: Event, fact: FrameAssembled) -> None:
    rows.fill(f"t{fact.turn}", tokens=fact.tokens)


def _on_called(rows: Rows, event: Event, fact: agents.ModelCalled) -> None:
    if fact.agent == SELECTOR:
        rows.add(call_of(event), event, "pick", SELECTOR)


def _on_model_retried(rows: Rows, event: Event, fact: agents.ModelRetried) -> None:
    rows.retry(call_of(event) if fact.agent == SELECTOR else f"t{fact.turn}")


def _on_answer(rows: Rows, event: Event, fact: agents.ModelAnswered) -> None:
    key = call_of(event) if fact.agent == SELECTOR else f"t{fact.turn}"
    rows.spend(key, fact)


def _on_failed(rows: Rows, event: Event, fact: agents.ModelFailed) -> None:
    if fact.agent == SELECTOR:
        rows.close(call_of(event), event, describe(fact))


def _on_picked(rows: Rows, event: Event, fact: agents.SpeakerPicked) -> None:
    rows.close(call_of(event), event, describe(fact))


def _on_drawn(rows: Rows, event: Event, fact: agents.ChanceDrawn) -> None:
    rows.add(event.id, event, "draw", "chance", note=describe(fact))


def _on_tool(rows: Rows, event: Event, fact: agents.ToolCalled) -> None:
    rows.add(call_of(event), event, "tool", fact.tool)


def _on_returned(rows: Rows, event: Event, fact: agents.ToolReturned) -> None:
    rows.close(call_of(event), event, outcome(fact))


def _on_tool_failed(rows: Rows, event: Event, fact: agents.ToolFailed) -> None:
    key = call_of(event)
    if key not in rows:  # the call was refused
        rows.add(key, event, "tool", fact.tool)
    rows.close(key, event, outcome(fact))


def _on_offered(rows: Rows, event: Event, fact: agents.ToolsOffered) -> None:
    rows.add(event.id, event, "tools", fact.server, note=outcome(fact))


def _on_hook(rows: Rows, event: Event, fact: lifecycle.LifecycleToolCall) -> None:
    note = f"{fact.trigger}{', restored' if fact.restored else ''}"
    rows.add(call_of(event), event, "hook", fact.hook, note=note)


def _on_hook_end(
    rows: Rows,
    event: Event,
    fact: lifecycle.LifecycleToolResult | lifecycle.LifecycleToolError,
) -> None:
    key = call_of(event)
    if key not in rows:
        rows.add(key, event, "hook", fact.hook)
    again = f", {fact.attempts} attempts" if fact.attempts > 1 else ""
    again += ", restored" if fact.restored else ""
    note = f"{fact.trigger}{again}, {outcome(fact)}"
    rows.fill(key, seconds=fact.elapsed_ms / 1000, note=note)


def _on_message_hook(rows: Rows, event: Event, fact: lifecycle.MessageHookCalled) -> None:
    rows.add(call_of(event), event, "hook", fact.function, note=fact.hook_type)


def _on_message_hooked(
    rows: Rows, event: Event, fact: lifecycle.MessageHooked | lifecycle.MessageHookFailed
) -> None:
    rows.close(call_of(event), event, f"{fact.hook_type}, {outcome(fact)}")


def _on_question(rows: Rows, event: Event, fact: agents.QuestionAsked) -> None:
    rows.add(fact.question, event, "question", fact.to, note=fact.prompt)


def _on_answered(rows: Rows, event: Event, fact: agents.QuestionAnswered) -> None:
    rows.close(fact.question, event, describe(fact))


def _on_expired(rows: Rows, event: Event, fact: agents.QuestionExpiredFact) -> None:
    rows.close(fact.question, event, describe(fact))


def _on_route(rows: Rows, event: Event, fact: RouteDecided) -> None:
    who = f"{fact.source or 'start'} → {fact.target}"
    rows.add(event.id, event, "route", who, note=fact.reason)


def _on_selected(rows: Rows, event: Event, fact: SelectionMade) -> None:
    rows.add(event.id, event, "selection", fact.chosen or "no candidate", note=describe(fact))


def _on_resumed(rows: Rows, event: Event, fact: RunResumed) -> None:
    changed = f"changed since: {', '.join(fact.changed_code)}" if fact.changed_code else ""
    rows.add(event.id, event, "resumed", event.actor, note=changed)


def _noted(word: str) -> Callable[[Rows, Event, Any], None]:
    """Adds a row for what a person or the driver did."""
    return lambda rows, at, fact: rows.add(at.id, at, word, at.actor, note=describe(fact))


def _on_run_forked(rows: Rows, event: Event, fact: RunForked) -> None:
    kind = "continued" if fact.continues else "forked"
    rows.add(event.id, event, kind, fact.by, note=describe(fact))


HANDLERS: Handlers = {
    agents.TurnStarted.kind: Rows.begin_turn,
    FrameAssembled.kind: _on_frame,
    agents.ModelCalled.kind: _on_called,
    agents.ModelRetried.kind: _on_model_retried,
    agents.ModelAnswered.kind: _on_answer,
    agents.ModelFailed.kind: _on_failed,
    agents.SpeakerPicked.kind: _on_picked,
    agents.ChanceDrawn.kind: _on_drawn,
    agents.ToolCalled.kind: _on_tool,
    agents.ToolReturned.kind: _on_returned,
    agents.ToolFailed.kind: _on_tool_failed,
    agents.ToolsOffered.kind: _on_offered,
    lifecycle.LifecycleToolCall.kind: _on_hook,
    lifecycle.LifecycleToolResult.kind: _on_hook_end,
    lifecycle.LifecycleToolError.kind: _on_hook_end,
    lifecycle.MessageHookCalled.kind: _on_message_hook,
    lifecycle.MessageHooked.kind: _on_message_hooked,
    lifecycle.MessageHookFailed.kind: _on_message_hooked,
    agents.TurnFinished.kind: Rows.end_turn,
    agents.QuestionAsked.kind: _on_question,
    agents.QuestionAnswered.kind: _on_answered,
    agents.QuestionExpiredFact.kind: _on_expired,
    RouteDecided.kind: _on_route,
    SelectionMade.kind: _on_selected,
    RunResumed.kind: _on_resumed,
    runs.RunLimited.kind: _noted("limited"),
    RunRetried.kind: _noted("retried"),
    RunForked.kind: _on_run_forked,
    agents.MessageSent.kind: _noted("message"),
}


def _name(artifact: Artifact) -> str:
    return f"{artifact.type} {artifact.id}"


def _on_published(rows: Rows, event: Event, fact: ArtifactPublished) -> None:
    artifact = fact.artifact
    rows.add(_row_of(artifact.id), event, "artifact", artifact.produced_by, note=_name(artifact))


def _on_received(rows: Rows, event: Event, fact: reaction.ArtifactReceived) -> None:
    artifact = fact.artifact
    note = f"{_name(artifact)} of run {artifact.run}"
    rows.add(_row_of(artifact.id), event, "artifact", artifact.produced_by, note=note)


def _on_made(rows: Rows, event: Event, fact: ArtifactMade) -> None:
    note = f"{_name(fact.artifact)}, not published"
    rows.add(event.id, event, "artifact", fact.artifact.produced_by, note=note)


def _on_opened(rows: Rows, event: Event, fact: reaction.ArtifactOpened) -> None:
    key = _row_of(f"{fact.artifact}/{fact.subscription}")
    rows.add(key, event, "opened", fact.subscription, note=fact.artifact)


def _row_of(offered: str) -> str:
    """The key of the row of an artifact, or of an artifact that a subscription can see now."""
    return f"artifact/{offered}"


def _on_artifact_offered(rows: Rows, event: Event, fact: reaction.ArtifactOffered) -> None:
    marks = {TAKEN: "", FORWARDED: "", LATER: " later"}
    to = [f"{each.subscription}{marks[each.verdict]}" for each in fact.to if each.verdict in marks]
    failed = [
        f"; {each.subscription} {words_for(each, None)}"
        for each in fact.to
        if each.verdict in FAILED
    ]
    note = f" → {', '.join(to) or 'no subscription'}{''.join(failed)}"
    rows.extend(_row_of(event.id.removeprefix("offer/")), note)


def _on_consumed(rows: Rows, event: Event, fact: ArtifactConsumed) -> None:
    if fact.run:
        note = f"{listed(fact.artifacts)} → run {fact.run}"
        rows.add(event.id, event, "set", fact.subscription, note=note)
        return
    again = f", retry of turn {fact.retry_of}" if fact.retry_of else ""
    taken = f"{fact.subscription or 'given'}: {listed(fact.artifacts)}{again}"
    rows.announce(f"t{fact.turn}", taken)


def _on_given(rows: Rows, event: Event, fact: reaction.ArtifactsGiven) -> None:
    note = listed([each.id for each in fact.artifacts])
    rows.add(event.id, event, "given", fact.agent, note=note)


def _on_gathered(rows: Rows, event: Event, fact: ContextGathered) -> None:
    note = f"{items(len(fact.items))}{', as the fallback' if fact.fallback else ''}"
    rows.add(event.id, event, "context", fact.provider, seconds=seconds_of(fact), note=note)


def _on_searched(rows: Rows, event: Event, fact: RetrievalSearched) -> None:
    note = f"{data(fact.query)}: {counted(len(fact.results), 'result')}"
    seconds = fact.micros / 1_000_000
    rows.add(event.id, event, "search", fact.collection, seconds=seconds, note=note)


def _on_provider_failed(rows: Rows, event: Event, fact: ProviderFailed) -> None:
    rows.add(event.id, event, "context", fact.provider, note=outcome(fact))


def _on_chosen(rows: Rows, event: Event, fact: reaction.SampleChosen) -> None:
    rows.add(event.id, event, "choice", fact.agent, note=describe(fact))


def _on_artifact_expired(rows: Rows, event: Event, fact: reaction.JoinExpired) -> None:
    rows.add(event.id, event, "expired", fact.subscription, note=listed(fact.artifacts))


def _on_closed(rows: Rows, event: Event, fact: reaction.BatchClosed) -> None:
    rows.add(event.id, event, "batch", fact.subscription, note=fact.reason)


def _on_retry(rows: Rows, event: Event, fact: reaction.RetryAsked) -> None:
    rows.add(event.id, event, "retry", fact.by, note=f"turn {fact.turn}")


def _on_limit(rows: Rows, event: Event, fact: reaction.LimitReached) -> None:
    rows.add(event.id, event, "limit", event.actor, note=describe(fact))


BOARD_HANDLERS: Handlers = {
    ArtifactPublished.kind: _on_published,
    ArtifactMade.kind: _on_made,
    ArtifactConsumed.kind: _on_consumed,
    ContextGathered.kind: _on_gathered,
    ProviderFailed.kind: _on_provider_failed,
    RetrievalSearched.kind: _on_searched,
    reaction.ArtifactReceived.kind: _on_received,
    reaction.ArtifactOpened.kind: _on_opened,
    reaction.ArtifactOffered.kind: _on_artifact_offered,
    reaction.ArtifactsGiven.kind: _on_given,
    reaction.SampleChosen.kind: _on_chosen,
    reaction.JoinExpired.kind: _on_artifact_expired,
    reaction.BatchClosed.kind: _on_closed,
    reaction.RetryAsked.kind: _on_retry,
    reaction.LimitReached.kind: _on_limit,
}


def _on_started(rows: Rows, event: Event, fact: flow.StepStarted) -> None:
    key = f"s{fact.number}"
    if fact.turn:
        rows.place(f"t{fact.turn}", key)
    if key in rows:
        return  # another attempt
    if fact.undoes:
        rows.add(key, event, "compensation", fact.place, note=f"by {fact.step}")
    else:
        rows.add(key, event, "step", step_name(fact))


def _on_retried(rows: Rows, event: Event, fact: flow.StepRetried) -> None:
    rows.fill(f"s{fact.number}", note=outcome(fact))


def _on_step_ended(rows: Rows, event: Event, fact: Any) -> None:
    """Close the row of a step; note its attempts if there were several."""
    attempt = getattr(fact, "attempt", 1)
    again = f", attempt {attempt}" if attempt > 1 else ""
    rows.close(f"s{fact.number}", event, f"{outcome(fact)}{again}")


def _on_completed(rows: Rows, event: Event, fact: flow.StepCompleted) -> None:
    if fact.cached or fact.kept:  # the step did not begin
        rows.add(event.id, event, "step", step_name(fact), note=outcome(fact))
    if not fact.kept:
        _on_step_ended(rows, event, fact)


def _on_step_failed(rows: Rows, event: Event, fact: flow.StepFailed) -> None:
    if fact.kept or not fact.number:  # the step did not begin
        rows.add(event.id, event, "step", fact.place, note=outcome(fact))
    if not fact.kept:
        _on_step_ended(rows, event, fact)


def _described_as(what: str) -> Any:
    """Make a handler that adds a row with the description of the fact."""

    def add(rows: Rows, event: Event, fact: Any) -> None:
        rows.add(event.id, event, what, getattr(fact, "place", "flow"), note=describe(fact))

    return add


def _on_compensated(rows: Rows, event: Event, fact: flow.StepCompensated) -> None:
    failed = f", {outcome(fact)}" if fact.error else ""
    rows.close(f"s{fact.number}", event, f"by {fact.by}{failed}")


FLOW_HANDLERS: Handlers = {
    flow.StepStarted.kind: _on_started,
    flow.StepRetried.kind: _on_retried,
    flow.StepCompleted.kind: _on_completed,
    flow.StepFailed.kind: _on_step_failed,
    flow.StepSkipped.kind: _on_step_ended,
    flow.StepCompensated.kind: _on_compensated,
    flow.StepRecovered.kind: _described_as("recovered"),
    flow.StepHandled.kind: _described_as("handled"),
    flow.BranchTaken.kind: _described_as("branch"),
    flow.ForkOpened.kind: _described_as("fork"),
    flow.ForkFailed.kind: _described_as("fork"),
    flow.ForkJoined.kind: _described_as("join"),
    flow.LoopPassed.kind: _described_as("loop"),
    flow.LoopEnded.kind: _described_as("loop"),
    flow.ApprovalDecided.kind: _described_as("approval"),
    flow.FlowStopped.kind: _described_as("stop"),
    flow.FlowRewound.kind: _described_as("rewind"),
}


def _on_exceeded(rows: Rows, event: Event, fact: guards.BudgetExceededFact) -> None:
    rows.add(event.id, event, "budget", "exceeded", note=describe(fact))


def _on_scarcity(rows: Rows, event: Event, fact: guards.ScarcityChanged) -> None:
    rows.add(event.id, event, "budget", fact.level, note=describe(fact))


def _on_window(rows: Rows, event: Event, fact: guards.WindowNeared) -> None:
    rows.add(event.id, event, "window", fact.agent, note=describe(fact))


def _on_loop(rows: Rows, event: Event, fact: guards.LoopDetectedFact) -> None:
    rows.add(event.id, event, "loop", fact.strategy, note=describe(fact))


def spent(events: Iterable[Event]) -> str:
    """Describe the used budget of a run; empty without a budget."""
    used = [event.data.amounts for event in events if isinstance(event.data, guards.BudgetSpent)]
    return amounts(sum(used, Amounts())) if used else ""


GUARD_HANDLERS: Handlers = {
    guards.BudgetExceededFact.kind: _on_exceeded,
    guards.ScarcityChanged.kind: _on_scarcity,
    guards.WindowNeared.kind: _on_window,
    guards.LoopDetectedFact.kind: _on_loop,
}


def timeline(events: Sequence[Event], prices: Mapping[str, Price] = NO_PRICES) -> Timeline:
    """Build the timeline of a run, with durations, usage and cost.

    Raises:
        UsageError: there are no events, or they do not begin with the run's start.
    """
    if not events or not isinstance(events[0].data, RunStarted):
        raise UsageError("A timeline needs all events of a run, from the first.")
    handlers = {**HANDLERS, **BOARD_HANDLERS, **FLOW_HANDLERS, **GUARD_HANDLERS}
    rows = Rows(handlers, prices, overlapping=is_board(events) or is_flow(events))
    for event in events:
        rows.take(event)
    started: RunStarted = events[0].data
    rest = last.data if isinstance((last := events[-1]).data, RunPaused) else RunPaused("")
    return Timeline(
        events[-1].run,
        started.workflow,
        started.workflow_version,
        status_of(events[-1]),
        user=started.user,
        tenant=started.tenant,
        started=events[0].at,
        seconds=(events[-1].at - events[0].at).total_seconds(),
        events=events[-1].seq,
        turns=rows.turns,
        usage=rows.usage,
        rows=rows.in_order(),
        correlation=started.correlation,
        parents=started.parents,
        collects=started.collects,
        spent=spent(events),
        collected=rest.collected,
        wanted=rest.wanted,
        cost=rows.cost,
    )
