"""Events in a few words."""

from collections.abc import Callable
from typing import Any

from weft.agents import events as agents
from weft.assembly.events import ContextGathered, FrameAssembled, ProviderFailed
from weft.conversation.events import RouteDecided
from weft.explain.spec.text import one_line
from weft.kernel.values import preview
from weft.lifecycle import events as lifecycle
from weft.log import events as runs
from weft.log.spec import Event, Fact
from weft.variables import events as variables


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
    return f"the engine wants {wanted}" if wanted else "the engine answered"


def _asked(fact: agents.QuestionAsked) -> str:
    return f"{fact.tool or 'the run'} asked {fact.to or 'nobody'}"


def _gathered(fact: ContextGathered) -> str:
    instead = " as the fallback" if fact.fallback else ""
    return f"{fact.provider}{instead} gave {len(fact.items)} items for {fact.agent}"


def _among(names: tuple[str, ...]) -> str:
    return f"among {', '.join(names)}"


_BY_FACT: dict[type[Fact], Callable[[Any], str]] = {
    runs.RunStarted: lambda fact: f"run of {fact.workflow} began",
    runs.RunPaused: lambda fact: f"waits for {fact.waiting_for}",
    runs.RunResumed: lambda fact: "another process took the run up",
    runs.RunFinished: lambda fact: fact.reason,
    runs.RunFailed: lambda fact: f"{fact.error}: {fact.message}",
    runs.RunCancelled: lambda fact: f"by {fact.by}" + (f": {fact.reason}" if fact.reason else ""),
    runs.CancelRequested: lambda fact: f"{fact.by} wanted the end",
    ContextGathered: _gathered,
    ProviderFailed: lambda fact: f"{fact.provider} failed: {fact.error}: {one_line(fact.message)}",
    FrameAssembled: lambda fact: f"frame of {fact.agent}, {fact.tokens} tokens",
    agents.TurnStarted: lambda fact: f"turn {fact.turn} of {fact.agent} began",
    agents.TurnFinished: lambda fact: f"turn {fact.turn} of {fact.agent} ended",
    agents.ModelCalled: lambda fact: f"{fact.engine} was asked",
    agents.ModelAnswered: _answered,
    agents.ModelFailed: lambda fact: f"the engine failed: {one_line(fact.message)}",
    agents.AgentText: lambda fact: f"{fact.agent} said {preview(fact.text)}",
    agents.AgentOutput: lambda fact: f"{fact.agent} gave {fact.model} {preview(fact.output)}",
    agents.OutputRefused: lambda fact: f"no {fact.model}: {one_line(fact.problem)}",
    agents.TransferChosen: lambda fact: f"{fact.agent} chose {fact.target} (rule {fact.rule})",
    agents.ToolCalled: lambda fact: f"{fact.tool} was called with {preview(fact.arguments)}",
    agents.ToolReturned: lambda fact: f"{fact.tool} returned {preview(fact.result)}",
    agents.ToolFailed: lambda fact: f"{fact.tool} failed: {fact.error}: {one_line(fact.message)}",
    agents.ToolsOffered: _offered,
    agents.EffectDone: lambda fact: f"{fact.name} was done, {preview(fact.result)}",
    agents.ChanceDrawn: lambda fact: f"chance drew {fact.drawn} {_among(fact.among)}",
    agents.SpeakerPicked: lambda fact: f"the model picked {fact.picked} {_among(fact.among)}",
    agents.UserText: lambda fact: f"{fact.author} said {preview(fact.text)}",
    agents.QuestionAsked: _asked,
    agents.QuestionAnswered: lambda fact: f"{fact.by} answered {preview(fact.value)}",
    agents.QuestionExpired: lambda fact: "nobody answered in time",
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
}
_WORDS = {fact.kind: say for fact, say in _BY_FACT.items()}


def words(event: Event) -> str:
    """The event in a few words."""
    return _WORDS[event.kind](event.data)
