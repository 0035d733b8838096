"""Describe each event in a few words."""

from collections.abc import Callable, Sequence
from typing import Any

from turnloom.agents import events as agents
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    HistorySummarised,
    ProviderFailed,
    RetrievalSearched,
)
from turnloom.board import events as board
from turnloom.board.events import ArtifactConsumed
from turnloom.board.spec import Artifact
from turnloom.conversation.events import RouteDecided
from turnloom.explain.spec.route import belief_of
from turnloom.explain.spec.text import counted, lasting, moment, one_line
from turnloom.flow import events as flow
from turnloom.flow.logic.approvals import APPROVED, DEFERRED, EXPIRED
from turnloom.guards import events as guards
from turnloom.guards.logic import loops as recovering
from turnloom.guards.logic.budgets import exceeded_message
from turnloom.guards.logic.windows import describe_window
from turnloom.guards.spec import Amounts
from turnloom.hooks import events as lifecycle
from turnloom.kernel.values import preview
from turnloom.log import events as runs
from turnloom.log.spec import Event, Fact, progress_words
from turnloom.reaction import events as reaction
from turnloom.reaction.events import ArtifactOpened, JoinExpired, SubscriptionVerdict
from turnloom.reaction.logic.gates import (
    FORWARDED,
    KEY_FAILED,
    LATER,
    NOT_CHOSEN,
    TAKEN,
    WHERE_FAILED,
)
from turnloom.variables import events as variables


def step_name(fact: Any) -> str:
    """Where a step stands; one that joins paths stands at their fork, and is named beside it."""
    last = fact.place.rpartition("/")[2].lstrip("!")
    return fact.place if last.startswith(fact.step) else f"{fact.place}/{fact.step}"


def _began(fact: flow.StepStarted) -> str:
    again = f", attempt {fact.attempt}" if fact.attempt > 1 else ""
    if fact.undoes:
        return f"{fact.step} began to make up for {fact.undoes}{again}"
    return f"step {step_name(fact)} began{again}"


def changed(fact: flow.StepCompleted) -> str:
    """What a step changed, and how sure it is of that."""
    what = f"changed {preview(fact.update)}" if fact.update else "changed nothing"
    known = ", as was known from before" if fact.cached else ""
    unsure = f", and is not sure enough: {fact.confidence}" if fact.is_unsure else ""
    return f"{what}{known}{unsure}"


def fault(fact: Any) -> str:
    """What went wrong, on one line."""
    return one_line(f"{fact.error}: {fact.message}" if fact.message else fact.error)


def _retried(fact: flow.StepRetried) -> str:
    when = f", at {moment(fact.due)}" if fact.due else ""
    return f"attempt {fact.attempt} of step {step_name(fact)} failed, and there is another{when}: "


def _compensated(fact: flow.StepCompensated) -> str:
    if fact.error:
        return f"{fact.by} failed to make up for {fact.place}: {fault(fact)}"
    return f"{fact.by} made up for {fact.place}"


def _taken(fact: flow.BranchTaken) -> str:
    led = f"takes the path of {fact.case}" if fact.path else "takes no path"
    return f"{fact.place} {led}, for {preview(fact.value)}"


def _joined(fact: flow.ForkJoined) -> str:
    ends = ", ".join(f"{each.name} {each.status}" for each in fact.paths)
    return f"the paths of {fact.place} are one again: {ends}"


def _passed(fact: flow.LoopPassed) -> str:
    holds = "holds" if fact.held else "does not hold"
    return f"pass {fact.number} of {fact.place} is over, and its condition {holds}"


def _ended(fact: flow.LoopEnded) -> str:
    return f"{fact.place} ended after pass {fact.passes}: {fact.reason}"


def _decided(fact: flow.ApprovalDecided) -> str:
    if fact.outcome == DEFERRED:
        said = f"{fact.approver} wants more time for {fact.place}"
    elif fact.outcome == EXPIRED:
        then = f", so {fact.to} is asked" if fact.to else ""
        said = f"{fact.approver} did not decide on {fact.place} in time{then}"
    else:
        verb = "approved of" if fact.outcome == APPROVED else "rejected"
        said = f"{fact.approver} {verb} {fact.place} ({fact.option})"
    return f"{said}: {one_line(fact.instructions)}" if fact.instructions else said


def _stopped(fact: flow.FlowStopped) -> str:
    return f"the flow does not go on: {fault(fact)}"


FLOW_WORDS: dict[type[Fact], Callable[[Any], str]] = {
    flow.StateGiven: lambda fact: f"the state is {preview(fact.state)}",
    flow.StateMigrated: lambda fact: f"the state is now {preview(fact.states.get(''))}",
    flow.StepStarted: _began,
    flow.StepCompleted: lambda fact: f"step {step_name(fact)} {changed(fact)}",
    flow.StepRetried: lambda fact: f"{_retried(fact)}{fault(fact)}",
    flow.StepFailed: lambda fact: f"{fact.what or f'step {step_name(fact)}'} failed: {fault(fact)}",
    flow.StepRecovered: lambda fact: f"the failure of {fact.place} is handled: the flow goes on",
    flow.StepHandled: lambda fact: f"the failure of {fact.place} is handled, and stands",
    flow.StepSkipped: lambda fact: f"step {step_name(fact)} was stopped: {fact.reason}",
    flow.StepCompensated: _compensated,
    flow.BranchTaken: _taken,
    flow.ForkOpened: lambda fact: f"{fact.place} opens {counted(len(fact.paths), 'path')}",
    flow.ForkFailed: lambda fact: (
        f"{fact.path} failed, so {fact.place} is not joined: {fault(fact)}"
    ),
    flow.ForkJoined: _joined,
    flow.LoopPassed: _passed,
    flow.LoopEnded: _ended,
    flow.ApprovalDecided: _decided,
    flow.FlowStopped: _stopped,
}


def _changed(fact: variables.ContextChanged) -> str:
    now = "was removed" if fact.removed else f"became {preview(fact.value)}"
    return f"{fact.name} {now}, by {fact.writer}"


def _hook(fact: Any) -> str:
    return f"hook {fact.hook} ({fact.trigger})"


def _message_hook(fact: Any) -> str:
    return f"message hook {fact.function} ({fact.hook_type})"


def _offered(fact: agents.ToolsOffered) -> str:
    tools = ", ".join(tool.name for tool in fact.tools) or "nothing"
    return f"{fact.server}: {one_line(fact.error)}" if fact.error else f"{fact.server}: {tools}"


def _answered(fact: agents.ModelAnswered) -> str:
    wanted = ", ".join(call.tool for call in fact.calls)
    who = one_line(fact.model) or "the engine"
    ends = {"length": ", cut at its limit", "refusal": ", and refused", "filter": ", filtered"}
    did = f"{who} wants {wanted}" if wanted else f"{who} answered"
    read = f", and read {listed(fact.read)} on the board" if fact.read else ""
    return did + ends.get(fact.stop, "") + read


def _asked(fact: agents.QuestionAsked) -> str:
    return f"{fact.tool or 'the run'} asked {fact.to or 'nobody'}"


def _gathered(fact: ContextGathered) -> str:
    instead = " as the fallback" if fact.fallback else ""
    return f"{fact.provider}{instead} gave {len(fact.items)} items for {fact.agent}"


def _searched(fact: RetrievalSearched) -> str:
    found = counted(len(fact.results), "result")
    return f"{fact.collection} was searched for {preview(fact.query)}: {found}"


def _among(names: tuple[str, ...]) -> str:
    return f"among {', '.join(names)}"


# How many ids a few words have room for.
_ROOM = 3


def listed(ids: Sequence[str]) -> str:
    """Artifacts by their ids, or how many they are."""
    return ", ".join(ids) if len(ids) <= _ROOM else counted(len(ids), "artifact")


def _paused(fact: runs.RunPaused) -> str:
    if fact.waiting_for:
        return f"waits for {fact.waiting_for}"
    until = f", or until {fact.due.isoformat()}" if fact.due else ""
    if fact.collected is None:
        return f"rests until something comes{until}"
    there = progress_words("has collected", fact.collected, fact.wanted)
    return f"{there}, and rests until something comes{until}"


def _consumed(fact: board.ArtifactConsumed) -> str:
    into = f"run {fact.run}" if fact.run else f"turn {fact.turn}"
    again = f", once more after turn {fact.retry_of}" if fact.retry_of else ""
    taker = fact.subscription or fact.agent
    return f"{taker} took {listed(fact.artifacts)} into {into}{again}"


def _offers(fact: reaction.ArtifactOffered) -> str:
    said = ", ".join(f"{each.subscription}: {each.verdict}" for each in fact.to)
    return f"{fact.artifact} was offered ({said or 'to nobody'})"


def _artifact(artifact: Artifact) -> str:
    return f"{artifact.type} {artifact.id}"


def _given(fact: reaction.ArtifactsGiven) -> str:
    return f"{fact.agent} was given {listed([each.id for each in fact.artifacts])}"


def _chosen(fact: reaction.SampleChosen) -> str:
    tries = len(fact.scores)
    return f"try {fact.chosen + 1} of {tries} counts" if fact.chosen >= 0 else "no try counts"


def _selected(fact: guards.SelectionMade) -> str:
    drawn = ", ".join(
        f"{each.agent} {each.draw:.3f} of {belief_of(each)}" for each in fact.candidates
    )
    if not fact.chosen:
        return f"nobody was chosen: {one_line(' '.join(fact.notes))}"
    instead = f" in place of {fact.meant}" if fact.meant not in ("", fact.chosen) else ""
    also = "".join(f"; {one_line(note)}" for note in fact.notes)
    return f"{fact.chosen} was chosen{instead} for {fact.category!r}: {drawn}{also}"


def _judged(fact: guards.SelectionJudged) -> str:
    also = f"; {one_line(fact.note)}" if fact.note else ""
    return f"{fact.agent} gets {fact.credit:g} of 1 for turn {fact.turn} in {fact.category!r}{also}"


def amounts(used: Amounts) -> str:
    """So much of each resource, of those of which there is any."""
    counts = (
        (used.steps, "step"),
        (used.tokens, "token"),
        (used.model_calls, "model call"),
        (used.tool_calls, "tool call"),
    )
    said = [counted(number, what) for number, what in counts if number]
    return ", ".join([*said, *([f"cost {used.cost:g}"] if used.cost else [])]) or "nothing"


def _checked(fact: guards.LoopChecked) -> str:
    alike = "" if fact.similarity is None else f", the last turns are {fact.similarity:.0%} alike"
    unknown = f", not compared: {one_line(fact.error)}" if fact.error else ""
    came = "something came of it" if fact.entry.progress else "nothing came of it"
    return f"turn {fact.entry.turn} of {fact.entry.agent}: {came}{alike}{unknown}"


def _looped(fact: guards.LoopDetectedFact) -> str:
    instead = f" in place of {fact.instead_of}" if fact.instead_of else ""
    return f"{recovering.describe_loop(fact)}: {fact.strategy}{instead}"


_BY_FACT: dict[type[Fact], Callable[[Any], str]] = {
    runs.RunStarted: lambda fact: f"run of {fact.workflow} began",
    runs.RunPaused: _paused,
    runs.RunResumed: lambda fact: "another process took the run up",
    runs.RunFinished: lambda fact: fact.reason,
    runs.RunFailed: lambda fact: f"{fact.error}: {fact.message}",
    runs.RunCancelled: lambda fact: f"by {fact.by}" + (f": {fact.reason}" if fact.reason else ""),
    runs.CancelRequested: lambda fact: f"{fact.by} wanted the end",
    ContextGathered: _gathered,
    ProviderFailed: lambda fact: f"{fact.provider} failed: {fact.error}: {one_line(fact.message)}",
    RetrievalSearched: _searched,
    HistorySummarised: lambda fact: f"events {fact.first} to {fact.last} were summarised",
    FrameAssembled: lambda fact: f"frame of {fact.agent}, {fact.tokens} tokens",
    agents.TurnStarted: lambda fact: f"turn {fact.turn} of {fact.agent} began",
    agents.TurnFinished: lambda fact: f"turn {fact.turn} of {fact.agent} ended",
    agents.ModelCalled: lambda fact: f"{fact.engine} was asked",
    agents.ModelAnswered: _answered,
    agents.ModelRetried: lambda fact: (
        f"{fact.engine} asks again in {lasting(fact.pause)}, after {fault(fact)}"
    ),
    agents.ModelFailed: lambda fact: f"the engine failed: {one_line(fact.message)}",
    agents.AgentText: lambda fact: f"{fact.agent} said {preview(fact.text)}",
    agents.AgentOutput: lambda fact: f"{fact.agent} gave {fact.model} {preview(fact.output)}",
    agents.OutputRefused: lambda fact: f"no {fact.model}: {one_line(fact.problem)}",
    agents.TransferChosen: lambda fact: f"{fact.agent} chose {fact.target} (rule {fact.rule})",
    agents.ToolCalled: lambda fact: f"{fact.tool} was called with {preview(fact.arguments)}",
    agents.CallsSettled: lambda fact: "all calls of the answer are done",
    agents.ToolReturned: lambda fact: f"{fact.tool} returned {preview(fact.result)}",
    agents.ToolFailed: lambda fact: f"{fact.tool} failed: {fact.error}: {one_line(fact.message)}",
    agents.ToolsOffered: _offered,
    agents.EffectDone: lambda fact: f"{fact.name} was done, {preview(fact.result)}",
    agents.ChanceDrawn: lambda fact: f"chance drew {fact.drawn} {_among(fact.among)}",
    agents.SpeakerPicked: lambda fact: f"the model picked {fact.picked} {_among(fact.among)}",
    agents.UserText: lambda fact: f"{fact.author} said {preview(fact.text)}",
    agents.QuestionAsked: _asked,
    agents.QuestionAnswered: lambda fact: f"{fact.by} answered {preview(fact.value)}",
    agents.QuestionExpiredFact: lambda fact: fact.reason or "nobody answered in time",
    agents.AnswerRefused: lambda fact: f"an answer of {fact.by} was refused: {fact.reason}",
    lifecycle.MessageHookCalled: lambda fact: f"{_message_hook(fact)} was called",
    lifecycle.MessageHooked: lambda fact: f"{_message_hook(fact)} gave {preview(fact.result)}",
    lifecycle.MessageHookFailed: lambda fact: (
        f"{_message_hook(fact)} failed: {one_line(fact.message)}"
    ),
    lifecycle.LifecycleToolCall: lambda fact: f"{_hook(fact)} was called",
    lifecycle.LifecycleToolResult: lambda fact: f"{_hook(fact)}: {fact.status}",
    lifecycle.LifecycleToolError: lambda fact: f"{_hook(fact)} failed: {one_line(fact.message)}",
    variables.ContextLoaded: lambda fact: f"{len(fact.values)} variables got their first value",
    variables.ContextChanged: _changed,
    variables.ContextRefused: lambda fact: f"{fact.name} refused to {fact.writer}: {fact.reason}",
    variables.ContextMissed: lambda fact: f"{fact.tool} did not set {fact.name}",
    variables.ContextSuppressed: lambda fact: f"{', '.join(fact.names)}: {fact.reason}",
    variables.TimerSet: lambda fact: f"{fact.timer} is due at {fact.due.isoformat()}",
    variables.TimerExpired: lambda fact: f"{fact.timer} was due",
    RouteDecided: lambda fact: f"{fact.source or 'start'} → {fact.target} ({fact.reason})",
    board.ArtifactPublished: lambda fact: f"{_artifact(fact.artifact)} was published",
    board.ArtifactRefused: lambda fact: f"{fact.artifact} was not published: {fact.reason}",
    board.ArtifactMade: lambda fact: f"{_artifact(fact.artifact)} was made, and not published",
    board.ArtifactConsumed: _consumed,
    reaction.ArtifactOffered: _offers,
    reaction.ArtifactOpened: lambda fact: f"{fact.subscription} can see {fact.artifact} now",
    reaction.ArtifactReceived: lambda fact: (
        f"{_artifact(fact.artifact)} came from run {fact.artifact.run}"
    ),
    reaction.ArtifactsGiven: _given,
    reaction.ArtifactForwarded: lambda fact: (
        f"{fact.artifact} was handed to the run that collects for {fact.subscription}"
    ),
    reaction.RunOpened: lambda fact: f"run {fact.run} got {listed(fact.artifacts)}",
    reaction.JoinExpired: lambda fact: (
        f"{listed(fact.artifacts)} waited too long for others, for {fact.subscription}"
    ),
    reaction.BatchClosed: lambda fact: f"the batch of {fact.subscription} closed: {fact.reason}",
    reaction.RetryAsked: lambda fact: f"{fact.by} wanted turn {fact.turn} taken again",
    reaction.LimitReached: lambda fact: (
        f"{fact.root} set off {fact.limit} turns; not delivered: {listed(fact.undelivered)}"
    ),
    reaction.SampleChosen: _chosen,
    guards.SelectionMade: _selected,
    guards.SelectionJudged: _judged,
    guards.BudgetReserved: lambda fact: f"{fact.call} may use {amounts(fact.amounts)}",
    guards.BudgetSpent: lambda fact: f"{fact.call} used {amounts(fact.amounts)}",
    guards.BudgetExceededFact: exceeded_message,
    guards.ScarcityChanged: lambda fact: (
        f"the budget is {fact.level}: {fact.share:.0%} of {fact.resource} left"
    ),
    guards.WindowNeared: describe_window,
    guards.LoopChecked: _checked,
    guards.LoopDetectedFact: _looped,
}
_WORDS = {fact.kind: say for fact, say in {**_BY_FACT, **FLOW_WORDS}.items()}


def words(event: Event) -> str:
    """The event in a few words."""
    return _WORDS[event.kind](event.data)


# Why an artifact is not for a subscription; those whose detail quotes nothing say more.
_WHY_NOT = {
    "own": "its agent made it, and does not wake itself",
    "from_agents": "it takes what others make",
    "tags": "it takes what is tagged otherwise",
    "not_visible": "its agent may not see it",
    "no_key": "there is no key to join it by",
    KEY_FAILED: "the key to join it by could not be had",
    "where": "",
    WHERE_FAILED: "",
    NOT_CHOSEN: "",
}
_TELLING = frozenset({"from_agents", "tags", "where", NOT_CHOSEN})


def words_for(verdict: SubscriptionVerdict, then: Event | None) -> str:
    """What a verdict means; `then` is what came next between the artifact and the subscription."""
    if verdict.verdict == TAKEN:
        return _accepted(then)
    if verdict.verdict == FORWARDED:
        return "brought to the run that collects for it"
    if verdict.verdict == LATER:
        return _later(then)
    why = _WHY_NOT.get(verdict.verdict, verdict.verdict)
    return f"no: {', '.join(filter(None, (why, _detail(verdict))))}"


def _detail(verdict: SubscriptionVerdict) -> str:
    if verdict.verdict in _TELLING:
        return verdict.detail
    # "condition 2 failed: KeyError: what it said", or "KeyError: what it said"
    told = {WHERE_FAILED: 2, KEY_FAILED: 1}.get(verdict.verdict, 0)
    return ": ".join(verdict.detail.split(": ")[:told])


def _accepted(then: Event | None) -> str:
    match then.data if then else None:
        case ArtifactConsumed(run=run) if run:
            return f"taken into run {run}"
        case ArtifactConsumed(turn=turn):
            return f"taken into turn {turn}"
        case JoinExpired():
            return "taken, and waited too long for others"
        case _:
            return "taken, and waits"


def _later(then: Event | None) -> str:
    if then is not None and isinstance(then.data, ArtifactOpened):
        return f"not to be seen yet; offered again after seq {then.seq}"
    return "not to be seen yet"
