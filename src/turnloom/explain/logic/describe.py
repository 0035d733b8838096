"""Short descriptions of facts, for the terminal, timelines and explanations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnloom.agents import events as agents
from turnloom.assembly import events as assembly
from turnloom.assembly.events import FrameAssembled, Segment, Withheld
from turnloom.board import events as board
from turnloom.board.events import ArtifactConsumed
from turnloom.board.spec import Artifact
from turnloom.conversation.events import RouteDecided
from turnloom.explain.spec.route import belief_of
from turnloom.explain.spec.text import counted, duration, moment, one_line
from turnloom.flow import events as flow
from turnloom.flow.logic.approvals import APPROVED, DEFERRED, EXPIRED
from turnloom.guards import events as guards
from turnloom.guards.logic.budgets import exceeded_message
from turnloom.guards.logic.loops import describe_loop
from turnloom.guards.logic.windows import describe_window
from turnloom.guards.spec import Amounts
from turnloom.hooks import events as hooks
from turnloom.kernel.values import Json, as_data, as_object
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

# Characters shown of a value, and of a message.
SHOWN = 120
SAID = 200

# Ids that are listed before they are counted.
_ROOM = 3

Words = Mapping[type[Fact], Callable[[Any], str]]


def describe(fact: Fact) -> str:
    """Describe a fact in a few words."""
    return WORDS[type(fact)](fact)


def outcome(fact: Fact) -> str:
    """Describe how a call, hook or step ended, or what a server offers; follows its name."""
    return _OUTCOMES[type(fact)](fact)


def data(value: Json) -> str:
    """A value as JSON, cut if it is long."""
    return one_line(as_data(value), SHOWN)


def fault(fact: Any) -> str:
    """The error on one line."""
    return one_line(f"{fact.error}: {fact.message}" if fact.message else fact.error, SHOWN)


def listed(ids: Sequence[str]) -> str:
    """List artifact ids, or count them if there are many."""
    return ", ".join(ids) if len(ids) <= _ROOM else counted(len(ids), "artifact")


def amounts(used: Amounts) -> str:
    """List the amounts that are not zero."""
    counts = (
        (used.steps, "step"),
        (used.tokens, "token"),
        (used.model_calls, "model call"),
        (used.tool_calls, "tool call"),
    )
    said = [counted(number, what) for number, what in counts if number]
    return ", ".join([*said, *([f"cost {used.cost:g}"] if used.cost else [])]) or "nothing"


def describe_frame(
    fact: FrameAssembled, segments: Sequence[Segment], withheld: Sequence[Withheld]
) -> str:
    """Describe a frame by its segments and its number of withheld items."""
    names = [
        each.origin.removeprefix("context_variables.")
        for each in segments
        if each.kind == "variable"
    ]
    shown = f" with {', '.join(names)}" if names else ""
    count = len(segments) + bool(fact.history.count)
    parts = f"{counted(count, 'segment')}{shown}, {_history(fact)}, {len(withheld)} withheld"
    return f"{_saw(fact)}{parts}"


def _saw(fact: FrameAssembled) -> str:
    return f"turn {fact.turn}: {fact.agent} saw "


def _history(fact: FrameAssembled) -> str:
    return f"{counted(fact.history.count, 'message')}, {counted(fact.tokens, 'token')}"


def step_name(fact: Any) -> str:
    """The place of a step; a step that joins paths has the place of its fork, so its name is
    added."""
    last = fact.place.rpartition("/")[2].lstrip("!")
    return fact.place if last.startswith(fact.step) else f"{fact.place}/{fact.step}"


def _failed(fact: Any) -> str:
    return f"failed: {fault(fact)}"


def _offers(fact: agents.ToolsOffered) -> str:
    if fact.error:
        return f"offers nothing: {one_line(fact.error, SHOWN)}"
    names = ", ".join(tool.name for tool in fact.tools) or "no tools"
    return f"offers {one_line(names, SHOWN)}"


def _hook_ended(fact: hooks.LifecycleToolResult) -> str:
    if fact.status == "success":
        return "ran"
    return f"was {fact.status}: {one_line(str(fact.result), SHOWN)}"


def _changed(fact: flow.StepCompleted) -> str:
    """Describe the changes of a step, and its confidence if that is low."""
    what = f"changed {data(fact.update)}" if fact.update else "changed nothing"
    known = ", from the cache" if fact.cached else ", before the retry" if fact.kept else ""
    unsure = f", confidence too low: {fact.confidence}" if fact.is_unsure else ""
    return f"{what}{known}{unsure}"


def _retried(fact: flow.StepRetried) -> str:
    when = f" at {moment(fact.due)}" if fact.due else ""
    return f"failed in attempt {fact.attempt}: {fault(fact)}; again{when}"


def _step_failed(fact: flow.StepFailed) -> str:
    """Describe how a step, or a part of it, failed."""
    return f"{fact.what} {_failed(fact)}".lstrip()


# Endings, phrased to follow a name.
_OUTCOMES: Words = {
    agents.ToolReturned: lambda fact: f"returned {data(fact.result)}",
    agents.ToolFailed: _failed,
    agents.ToolsOffered: _offers,
    assembly.ProviderFailed: _failed,
    hooks.LifecycleToolResult: _hook_ended,
    hooks.LifecycleToolError: _failed,
    hooks.MessageHooked: lambda fact: "ran",
    hooks.MessageHookFailed: _failed,
    flow.StepCompleted: _changed,
    flow.StepRetried: _retried,
    flow.StepFailed: _step_failed,
    flow.StepSkipped: lambda fact: f"was stopped: {fact.reason}",
    flow.StepCompensated: lambda fact: _failed(fact) if fact.error else "done",
}


def _tool(fact: Any) -> str:
    return f"{fact.tool} {outcome(fact)}"


def _hook_name(fact: Any) -> str:
    when = f"{fact.trigger} of {fact.agent}" if fact.agent else fact.trigger
    return f"hook {fact.hook} ({when})"


def _hook(fact: Any) -> str:
    return f"{_hook_name(fact)} {outcome(fact)}"


def _message_hook_name(fact: Any) -> str:
    return f"hook {fact.function} ({fact.hook_type} of {fact.agent})"


def _message_hook(fact: Any) -> str:
    return f"{_message_hook_name(fact)} {outcome(fact)}"


def _step(fact: Any) -> str:
    is_part = isinstance(fact, flow.StepFailed) and fact.what
    return outcome(fact) if is_part else f"step {step_name(fact)} {outcome(fact)}"


def _paused(fact: runs.RunPaused) -> str:
    if fact.waiting_for:
        return f"waits for {fact.waiting_for}"
    until = f", or until {fact.due.isoformat()}" if fact.due else ""
    if fact.collected is None:
        return f"is idle until something arrives{until}"
    there = progress_words("has collected", fact.collected, fact.wanted)
    return f"{there}, and is idle until something arrives{until}"


def _cancelled(fact: runs.RunCancelled) -> str:
    return f"by {fact.by}: {fact.reason}" if fact.reason else f"by {fact.by}"


def _loaded(fact: variables.ContextLoaded) -> str:
    first = f"{counted(len(fact.values), 'variable')} got a first value"
    lacking = [each for each in fact.values if each.note.startswith(variables.UNAVAILABLE)]
    if not lacking:
        return first
    reason = lacking[0].note.removeprefix(variables.UNAVAILABLE)
    names = ", ".join(each.name for each in lacking)
    return f"{first}, without stored values of {names}: {reason}"


def _variable(fact: variables.ContextChanged) -> str:
    now = "removed" if fact.removed else data(fact.value)
    return f"{fact.name}: {data(fact.previous)} → {now} ({fact.writer})"


def _refused(fact: variables.ContextRefused) -> str:
    return f"{fact.name} was not written by {fact.writer}: {one_line(fact.reason, SHOWN)}"


def _missed(fact: variables.ContextMissed) -> str:
    given = f"{fact.key} = {data(fact.value)}"
    return f"{fact.name} was not set: {fact.tool} was answered {given} and did not write it"


def _gathered(fact: assembly.ContextGathered) -> str:
    instead = " as the fallback" if fact.fallback else ""
    return f"{fact.provider}{instead} gave {counted(len(fact.items), 'item')} for {fact.agent}"


def _searched(fact: assembly.RetrievalSearched) -> str:
    found = counted(len(fact.results), "result")
    return f"{fact.collection} was searched for {data(fact.query)}: {found}"


def _turn_ended(fact: agents.TurnFinished) -> str:
    how = "ended" if fact.status == "done" else fact.status
    why = f": {one_line(fact.error, SHOWN)}" if fact.error else ""
    return f"turn {fact.turn} of {fact.agent} {how}{why}"


def _answered(fact: agents.ModelAnswered) -> str:
    wanted = ", ".join(call.tool for call in fact.calls)
    who = one_line(fact.model) or "the engine"
    ends = {"length": ", cut at its limit", "refusal": ", and refused", "filter": ", filtered"}
    did = f"{who} wants {wanted}" if wanted else f"{who} answered"
    read = f", and read {listed(fact.read)} on the board" if fact.read else ""
    return did + ends.get(fact.stop, "") + read


def _output_refused(fact: agents.OutputRefused) -> str:
    problem = one_line(fact.problem, SHOWN)
    return f"an answer of {fact.agent} is not a valid {fact.model}: {problem}"


def _called(fact: agents.ToolCalled) -> str:
    given = as_object(fact.arguments) or {}
    arguments = ", ".join(f"{name}={as_data(value)}" for name, value in given.items())
    return f"{fact.agent} called {fact.tool}({one_line(arguments, SHOWN)})"


def _asked(fact: agents.QuestionAsked) -> str:
    return f"{fact.tool or 'the run'} asked {fact.to or 'a person'}"


def _consumed(fact: ArtifactConsumed) -> str:
    into = f"run {fact.run}" if fact.run else f"turn {fact.turn}"
    again = f", retry of turn {fact.retry_of}" if fact.retry_of else ""
    taker = fact.subscription or fact.agent
    return f"{taker} took {listed(fact.artifacts)} into {into}{again}"


def _offered(fact: reaction.ArtifactOffered) -> str:
    said = ", ".join(f"{each.subscription}: {each.verdict}" for each in fact.to)
    return f"{fact.artifact} was offered ({said or 'without subscribers'})"


def _artifact(artifact: Artifact) -> str:
    return f"{artifact.type} {artifact.id}"


def _given(fact: reaction.ArtifactsGiven) -> str:
    return f"{fact.agent} was given {listed([each.id for each in fact.artifacts])}"


def _chosen(fact: reaction.SampleChosen) -> str:
    tries = len(fact.scores)
    return f"try {fact.chosen + 1} of {tries} counts" if fact.chosen >= 0 else "no try counts"


def _began(fact: flow.StepStarted) -> str:
    again = f", attempt {fact.attempt}" if fact.attempt > 1 else ""
    if fact.undoes:
        return f"step {fact.step} began to compensate for {fact.undoes}{again}"
    return f"step {step_name(fact)} began{again}"


def _compensated(fact: flow.StepCompensated) -> str:
    if fact.error:
        return f"{fact.by} failed to compensate for {fact.place}: {fault(fact)}"
    return f"{fact.by} compensated for {fact.place}"


def _taken(fact: flow.BranchTaken) -> str:
    led = f"takes the path of {fact.case}" if fact.path else "takes no path"
    return f"{fact.place} {led}, for {data(fact.value)}"


def _joined(fact: flow.ForkJoined) -> str:
    ends = ", ".join(f"{each.name} {each.status}" for each in fact.paths)
    return f"the paths of {fact.place} are joined: {ends}"


def _passed(fact: flow.LoopPassed) -> str:
    holds = "holds" if fact.held else "does not hold"
    return f"pass {fact.number} of {fact.place} ended, and its condition {holds}"


def _decided(fact: flow.ApprovalDecided) -> str:
    if fact.outcome == DEFERRED:
        said = f"{fact.approver} wants more time for {fact.place}"
    elif fact.outcome == EXPIRED:
        then = f", so {fact.to} is asked" if fact.to else ""
        said = f"{fact.approver} did not decide on {fact.place} in time{then}"
    else:
        verb = "approved" if fact.outcome == APPROVED else "rejected"
        said = f"{fact.approver} {verb} {fact.place} ({fact.option})"
    return f"{said}: {one_line(fact.instructions)}" if fact.instructions else said


def _selected(fact: guards.SelectionMade) -> str:
    drawn = ", ".join(
        f"{each.agent} {each.draw:.3f} of {belief_of(each)}" for each in fact.candidates
    )
    if not fact.chosen:
        return f"no candidate was chosen: {one_line(' '.join(fact.notes))}"
    instead = f" in place of {fact.meant}" if fact.meant not in ("", fact.chosen) else ""
    also = "".join(f"; {one_line(note)}" for note in fact.notes)
    return f"{fact.chosen} was chosen{instead} for {fact.category!r}: {drawn}{also}"


def _judged(fact: guards.SelectionJudged) -> str:
    also = f"; {one_line(fact.note)}" if fact.note else ""
    return f"{fact.agent} gets {fact.credit:g} of 1 for turn {fact.turn} in {fact.category!r}{also}"


def _checked(fact: guards.LoopChecked) -> str:
    alike = "" if fact.similarity is None else f", the last turns are {fact.similarity:.0%} alike"
    unknown = f", not compared: {one_line(fact.error)}" if fact.error else ""
    came = "progress" if fact.entry.progress else "no progress"
    return f"turn {fact.entry.turn} of {fact.entry.agent}: {came}{alike}{unknown}"


def _looped(fact: guards.LoopDetectedFact) -> str:
    instead = f" in place of {fact.instead_of}" if fact.instead_of else ""
    return f"loop detected, {describe_loop(fact)}: {fact.strategy}{instead}"


def _run_retried(fact: runs.RunRetried) -> str:
    since = f" from {fact.since} on" if fact.since else ""
    changed = f", with changes in {', '.join(fact.changed)}" if fact.changed else ""
    raised = ", ".join(f"{name} {limit:g}" for name, limit in fact.budget.items())
    budget = f", with a budget of {raised}" if raised else ""
    return f"{fact.by} retried the run{since}{changed}{budget}"


def _run_forked(fact: runs.RunForked) -> str:
    if fact.continues:
        return f"{fact.by} continued run {fact.of}, which had ended with event {fact.at}"
    changed = f", with changes in {', '.join(fact.changed)}" if fact.changed else ""
    values = f", with other values of {', '.join(fact.values)}" if fact.values else ""
    what = f"{fact.by} forked run {fact.of} after event {fact.at}"
    return f"{what}{changed}{values}, tools: {fact.tools}"


def _rewound(fact: flow.FlowRewound) -> str:
    kept = ", ".join(fact.kept)
    return f"the flow starts again{f', with the results of {kept}' if kept else ''}"


# Descriptions of all facts; a test compares the keys with the kinds in the log.
WORDS: Words = {
    runs.RunStarted: lambda fact: f"run of {fact.workflow} began",
    runs.RunPaused: _paused,
    runs.RunResumed: lambda fact: "resumed",
    runs.RunLimited: lambda fact: f"waited {fact.seconds:.1f} s for a limit: {fact.reason}",
    runs.RunRetried: _run_retried,
    runs.RunForked: _run_forked,
    runs.RunFinished: lambda fact: fact.reason,
    runs.RunFailed: lambda fact: f"{fact.error}: {fact.message}",
    runs.RunCancelled: _cancelled,
    runs.CancelRequested: lambda fact: f"{fact.by} asked to cancel the run",
    variables.ContextLoaded: _loaded,
    variables.ContextChanged: _variable,
    variables.ContextRefused: _refused,
    variables.ContextMissed: _missed,
    variables.ContextSuppressed: lambda fact: f"without {', '.join(fact.names)}: {fact.reason}",
    variables.TimerSet: lambda fact: f"{fact.timer} is due at {fact.due.isoformat()}",
    variables.TimerExpired: lambda fact: f"{fact.timer} was due",
    FrameAssembled: lambda fact: f"{_saw(fact)}{_history(fact)}",
    assembly.ContextGathered: _gathered,
    assembly.ProviderFailed: lambda fact: f"{fact.provider} {outcome(fact)}",
    assembly.RetrievalSearched: _searched,
    assembly.HistorySummarised: lambda fact: f"events {fact.first} to {fact.last} were summarised",
    agents.TurnStarted: lambda fact: f"turn {fact.turn} of {fact.agent} began",
    agents.TurnFinished: _turn_ended,
    agents.ModelCalled: lambda fact: f"{fact.engine} was asked",
    agents.ModelAnswered: _answered,
    agents.ModelLimited: lambda fact: f"{fact.agent} waits for {fact.model}: {fact.reason}",
    agents.ModelRetried: lambda fact: (
        f"{fact.engine} retries in {duration(fact.pause)}, after {fault(fact)}"
    ),
    agents.ModelFailed: lambda fact: f"the engine failed: {one_line(fact.message, SHOWN)}",
    agents.AgentText: lambda fact: f"{fact.agent}: {one_line(fact.text, SAID)}",
    agents.AgentOutput: lambda fact: f"{fact.agent} gave {fact.model} {data(fact.output)}",
    agents.OutputRefused: _output_refused,
    agents.TransferChosen: lambda fact: f"{fact.agent} handed off to {fact.target}",
    agents.ToolCalled: _called,
    agents.ToolReturned: _tool,
    agents.ToolFailed: _tool,
    agents.CallsSettled: lambda fact: "all calls of the answer ended",
    agents.ToolsOffered: lambda fact: f"server {fact.server} {outcome(fact)}",
    agents.EffectDone: lambda fact: f"{fact.name} was done, {data(fact.result)}",
    agents.ChanceDrawn: lambda fact: f"chance drew {fact.drawn} of {', '.join(fact.among)}",
    agents.SpeakerPicked: lambda fact: f"the model picked {fact.picked} of {', '.join(fact.among)}",
    agents.MessageSent: lambda fact: f"{fact.by}: {one_line(fact.text, SAID)} ({fact.verdict})",
    agents.UserText: lambda fact: f"{fact.author}: {one_line(fact.text, SAID)}",
    agents.QuestionAsked: _asked,
    agents.QuestionAnswered: lambda fact: f"{fact.by} answered {data(fact.value)}",
    agents.QuestionExpiredFact: lambda fact: fact.reason or "no answer came in time",
    agents.AnswerRefused: lambda fact: f"an answer of {fact.by} was refused: {fact.reason}",
    hooks.MessageHookCalled: lambda fact: f"{_message_hook_name(fact)} was called",
    hooks.MessageHooked: _message_hook,
    hooks.MessageHookFailed: _message_hook,
    hooks.LifecycleToolCall: lambda fact: f"{_hook_name(fact)} was called",
    hooks.LifecycleToolResult: _hook,
    hooks.LifecycleToolError: _hook,
    RouteDecided: lambda fact: f"{fact.source or 'start'} → {fact.target} ({fact.reason})",
    board.ArtifactPublished: lambda fact: f"{_artifact(fact.artifact)} was published",
    board.ArtifactRefused: lambda fact: f"{fact.artifact} was not published: {fact.reason}",
    board.ArtifactMade: lambda fact: f"{_artifact(fact.artifact)} was made, and not published",
    ArtifactConsumed: _consumed,
    reaction.ArtifactOffered: _offered,
    ArtifactOpened: lambda fact: f"{fact.subscription} can see {fact.artifact} now",
    reaction.ArtifactReceived: lambda fact: (
        f"{_artifact(fact.artifact)} arrived from run {fact.artifact.run}"
    ),
    reaction.ArtifactsGiven: _given,
    reaction.ArtifactForwarded: lambda fact: (
        f"{fact.artifact} was sent to the run that collects for {fact.subscription}"
    ),
    reaction.RunOpened: lambda fact: f"run {fact.run} got {listed(fact.artifacts)}",
    JoinExpired: lambda fact: (
        f"{listed(fact.artifacts)} waited too long for others, for {fact.subscription}"
    ),
    reaction.BatchClosed: lambda fact: f"the batch of {fact.subscription} closed: {fact.reason}",
    reaction.RetryAsked: lambda fact: f"{fact.by} asked to take turn {fact.turn} again",
    reaction.LimitReached: lambda fact: (
        f"{fact.root} reached the limit of {fact.limit} turns; "
        f"not delivered: {listed(fact.undelivered)}"
    ),
    reaction.SampleChosen: _chosen,
    flow.StateGiven: lambda fact: f"the state is {data(fact.state)}",
    flow.StateMigrated: lambda fact: f"the state is now {data(fact.states.get(''))}",
    flow.StepStarted: _began,
    flow.StepCompleted: _step,
    flow.StepRetried: _step,
    flow.StepFailed: _step,
    flow.StepRecovered: lambda fact: f"the failure of {fact.place} is handled: the flow continues",
    flow.StepHandled: lambda fact: f"the failure of {fact.place} is handled, and stands",
    flow.StepSkipped: _step,
    flow.StepCompensated: _compensated,
    flow.BranchTaken: _taken,
    flow.ForkOpened: lambda fact: f"{fact.place} opens {counted(len(fact.paths), 'path')}",
    flow.ForkFailed: lambda fact: (
        f"{fact.path} failed, so {fact.place} is not joined: {fault(fact)}"
    ),
    flow.ForkJoined: _joined,
    flow.LoopPassed: _passed,
    flow.LoopEnded: lambda fact: f"{fact.place} ended after pass {fact.passes}: {fact.reason}",
    flow.ApprovalDecided: _decided,
    flow.FlowStopped: lambda fact: f"the flow stops: {fault(fact)}",
    flow.FlowRewound: _rewound,
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


# Reasons why an artifact does not match a subscription. The recorded detail follows for the
# verdicts in `_TELLING`.
_WHY_NOT = {
    "own": "its agent made it, and does not wake itself",
    "from_agents": "its producer does not match",
    "tags": "its tags do not match",
    "not_visible": "its agent may not see it",
    "no_key": "it has no join key",
    KEY_FAILED: "its join key failed",
    "where": "",
    WHERE_FAILED: "",
    NOT_CHOSEN: "",
}
_TELLING = frozenset({"from_agents", "tags", "where", NOT_CHOSEN})


def words_for(verdict: SubscriptionVerdict, then: Event | None) -> str:
    """Describe a verdict; `then` is the next event between artifact and subscription."""
    if verdict.verdict == TAKEN:
        return _accepted(then)
    if verdict.verdict == FORWARDED:
        return "forwarded to the run that collects for it"
    if verdict.verdict == LATER:
        return _later(then)
    why = _WHY_NOT.get(verdict.verdict, verdict.verdict)
    return f"no: {', '.join(filter(None, (why, _detail(verdict))))}"


def _detail(verdict: SubscriptionVerdict) -> str:
    if verdict.verdict in _TELLING:
        return verdict.detail
    # Keep "condition 2 failed: KeyError" or "KeyError", without the message of the exception.
    kept = {WHERE_FAILED: 2, KEY_FAILED: 1}.get(verdict.verdict, 0)
    return ": ".join(verdict.detail.split(": ")[:kept])


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
        return f"not visible yet; offered again after seq {then.seq}"
    return "not visible yet"
