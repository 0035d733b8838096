"""What happens beside the conversation, in a line each."""

from collections.abc import Callable
from typing import Any

from turnloom.agents import events as agents
from turnloom.agents.spec import USER
from turnloom.conversation.events import RouteDecided
from turnloom.explain.logic.flow_words import FLOW_WORDS
from turnloom.explain.spec.text import moment, one_line
from turnloom.flow import events as flow
from turnloom.guards.events import LoopDetected, ScarcityChanged, WindowNeared
from turnloom.guards.logic.recovering import told
from turnloom.guards.logic.windows import told_near
from turnloom.kernel.values import Json, as_data, as_object
from turnloom.lifecycle.events import (
    LifecycleToolError,
    LifecycleToolResult,
    MessageHooked,
    MessageHookFailed,
)
from turnloom.log.events import RunResumed
from turnloom.log.spec import Event, Fact
from turnloom.variables.events import (
    UNAVAILABLE,
    ContextChanged,
    ContextLoaded,
    ContextMissed,
    ContextRefused,
    ContextSuppressed,
)

# How many characters of a value are shown.
SHOWN = 120

# What somebody should look at.
TROUBLES = (
    LifecycleToolError,
    MessageHookFailed,
    ContextRefused,
    ContextLoaded,
    ContextMissed,
    ContextSuppressed,
    LoopDetected,
    WindowNeared,
    agents.AnswerRefused,
    agents.OutputRefused,
    agents.QuestionExpired,
    agents.ToolFailed,
    flow.StepFailed,
    flow.StepRetried,
    flow.ForkFailed,
    flow.FlowStopped,
)


# What says how a step, or an attempt of one, ended.
Stepped = flow.StepCompleted | flow.StepFailed | flow.StepRetried | flow.StepCompensated


def aside(event: Event) -> str:
    """An event in a line, or nothing if it is not worth one."""
    say = _BY_KIND.get(event.kind)
    return say(event.data) if say is not None else ""


def called(fact: agents.ToolCalled) -> str:
    """Which tool an agent calls, and with what."""
    given = as_object(fact.arguments) or {}
    arguments = ", ".join(f"{name}={as_data(value)}" for name, value in given.items())
    return f"{fact.agent} calls {fact.tool}({one_line(arguments, SHOWN)})"


def came_of(fact: agents.ToolReturned | agents.ToolFailed) -> str:
    """What came of a tool's call."""
    if isinstance(fact, agents.ToolReturned):
        return data(fact.result)
    return f"failed: {_fault(fact.error, fact.message)}"


def begun(fact: flow.StepStarted) -> str:
    """Which step is taken, and in which attempt if not in the first."""
    again = f", attempt {fact.attempt}" if fact.attempt > 1 else ""
    return f"{fact.step} makes up for {fact.undoes}" if fact.undoes else f"{fact.place}{again}"


def stepped(fact: Stepped) -> str:
    """What came of a step."""
    match fact:
        case flow.StepRetried(error=error, message=message, due=due):
            when = f" at {moment(due)}" if due else ""
            return f"failed: {_fault(error, message)}; again{when}"
        case flow.StepCompleted(update=update) | flow.StepCompensated(update=update, error=""):
            return data(update) if update else "done"
        case flow.StepFailed() | flow.StepCompensated():
            what = fact.what if isinstance(fact, flow.StepFailed) else ""
            return f"{what} failed: {_fault(fact.error, fact.message)}".lstrip()


def data(value: Json) -> str:
    """A value as data, cut if it is long."""
    return one_line(as_data(value), SHOWN)


def _fault(error: str, message: str) -> str:
    return one_line(f"{error}: {message}" if message else error, SHOWN)


def _route(fact: RouteDecided) -> str:
    return f"{fact.source or 'start'} → {fact.target} ({fact.reason})"


def _opening(fact: agents.UserText) -> str:
    return "" if fact.author == USER else f"{fact.author}: {one_line(fact.text, 200)}"


def _unavailable(fact: ContextLoaded) -> str:
    lacking = [each for each in fact.values if each.note.startswith(UNAVAILABLE)]
    if not lacking:
        return ""
    reason = lacking[0].note.removeprefix(UNAVAILABLE)
    return f"without stored values of {', '.join(each.name for each in lacking)}: {reason}"


def _changed(fact: ContextChanged) -> str:
    value = "removed" if fact.removed else data(fact.value)
    return f"{fact.name}: {data(fact.previous)} → {value} ({fact.writer})"


def _not_written(fact: ContextRefused) -> str:
    return f"{fact.name} was not written by {fact.writer}: {one_line(fact.reason, SHOWN)}"


def _missed(fact: ContextMissed) -> str:
    given = f"{fact.key} = {data(fact.value)}"
    return f"{fact.name} was not set: {fact.tool} was answered {given} and did not write it"


def _ended(fact: agents.TurnFinished) -> str:
    return "" if fact.status == "done" else f"turn {fact.turn} of {fact.agent} {fact.status}"


def _refused(fact: agents.AnswerRefused) -> str:
    return f"an answer of {fact.by} was refused: {fact.reason}"


def _formless(fact: agents.OutputRefused) -> str:
    problem = one_line(fact.problem, SHOWN)
    return f"an answer of {fact.agent} was refused, as it is no {fact.model}: {problem}"


def _offered(fact: agents.ToolsOffered) -> str:
    if fact.error:
        return f"server {fact.server} offers nothing: {one_line(fact.error, SHOWN)}"
    names = ", ".join(tool.name for tool in fact.tools) or "no tools"
    return f"server {fact.server} offers {one_line(names, SHOWN)}"


def _ran(fact: LifecycleToolResult) -> str:
    if fact.status == "success":
        return f"{_hook(fact)} ran"
    return f"{_hook(fact)} was {fact.status}: {one_line(str(fact.result), SHOWN)}"


def _broke(fact: LifecycleToolError) -> str:
    return f"{_hook(fact)} failed: {_fault(fact.error, fact.message)}"


def _hook(fact: LifecycleToolResult | LifecycleToolError) -> str:
    when = f"{fact.trigger} of {fact.agent}" if fact.agent else fact.trigger
    return f"hook {fact.hook} ({when})"


def _message_hook(fact: MessageHooked | MessageHookFailed) -> str:
    return f"hook {fact.function} ({fact.hook_type} of {fact.agent})"


# What is told of a flow beside its steps, as explanations tell it.
_TOLD = (
    flow.StepRecovered,
    flow.StepHandled,
    flow.StepSkipped,
    flow.BranchTaken,
    flow.ForkOpened,
    flow.ForkFailed,
    flow.ForkJoined,
    flow.LoopEnded,
    flow.ApprovalDecided,
    flow.FlowStopped,
)

_BY_FACT: dict[type[Fact], Callable[[Any], str]] = {
    RouteDecided: _route,
    RunResumed: lambda fact: "resumed",
    ContextLoaded: _unavailable,
    ContextChanged: _changed,
    ContextRefused: _not_written,
    ContextMissed: _missed,
    ContextSuppressed: lambda fact: f"without {', '.join(fact.names)}: {fact.reason}",
    LifecycleToolResult: _ran,
    LifecycleToolError: _broke,
    MessageHooked: lambda fact: f"{_message_hook(fact)} ran",
    MessageHookFailed: lambda fact: (
        f"{_message_hook(fact)} failed: {_fault(fact.error, fact.message)}"
    ),
    ScarcityChanged: lambda fact: (
        f"the budget is {fact.level}: {fact.share:.0%} of {fact.resource} left"
    ),
    WindowNeared: told_near,
    LoopDetected: lambda fact: f"loop detected, {told(fact)}: {fact.strategy}",
    agents.UserText: _opening,
    agents.TurnFinished: _ended,
    agents.AnswerRefused: _refused,
    agents.OutputRefused: _formless,
    agents.ToolsOffered: _offered,
    agents.QuestionExpired: lambda fact: fact.reason or "nobody answered in time",
    agents.TransferChosen: lambda fact: f"{fact.agent} hands over to {fact.target}",
    agents.SpeakerPicked: lambda fact: f"the model picks {fact.picked} of {', '.join(fact.among)}",
    **{fact: FLOW_WORDS[fact] for fact in _TOLD},
    agents.ChanceDrawn: lambda fact: f"chance draws {fact.drawn} of {', '.join(fact.among)}",
}
_BY_KIND = {fact.kind: say for fact, say in _BY_FACT.items()}
