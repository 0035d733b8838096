"""Who read a variable: frames, the words of handoffs, conditions of routes and of hooks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from turnloom.agents.spec import ToolSchema
from turnloom.assembly.events import FrameAssembled, Segment
from turnloom.conversation.events import RouteDecided
from turnloom.conversation.logic.routing import Conversing
from turnloom.conversation.logic.transfers import names_in, transfer
from turnloom.conversation.spec import Conversation
from turnloom.explain.logic.calls import call_of, hook_of
from turnloom.explain.logic.frames import Frames
from turnloom.explain.spec.variable import Gated, Judged, Sight
from turnloom.kernel.values import Json
from turnloom.lifecycle.events import LifecycleToolCall, LifecycleToolResult
from turnloom.lifecycle.spec import Hook
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import evolve, fresh
from turnloom.variables.logic.conditions import judge


def frames(
    events: Sequence[Event], name: str, conversation: Conversation | None
) -> Iterator[Sight]:
    """The frames that showed a variable or were to show it, by itself or in words of a handoff."""
    seen, worded = Frames(), _worded(name, conversation)
    own = f"context_variables.{name}"
    for event in events:
        seen.take(event)
        if not isinstance(event.data, FrameAssembled):
            continue
        sighted = seen.sighted(event.data)
        at = (event.seq, event.data.turn, event.data.agent)
        for segment in sighted.segments if sighted else ():
            if segment.origin == own or segment.origin in worded:
                text = _said(segment, seen.texts)
                yield Sight(*at, text, origin=segment.origin)
        for each in sighted.withheld if sighted else ():
            if each.origin == own:
                yield Sight(*at, "", f"withheld, {each.reason}: {each.detail}", each.origin)


def _worded(name: str, conversation: Conversation | None) -> set[str]:
    """The segments of the handoffs whose words have a place for a variable."""
    rules = conversation.rules.values() if conversation else ()
    return {
        f"tools.{transfer(rule, {}, {}).schema.name}"
        for some in rules
        for rule in some
        if rule.llm and name in names_in(rule.said)
    }


def _said(segment: Segment, texts: Mapping[str, str]) -> str:
    """What a segment says: its text, or of a tool what it is for."""
    text = texts.get(segment.digest, "").strip()
    if segment.kind == "tool" and text:
        return msgspec.json.decode(text, type=ToolSchema).description
    return text


def conditions(
    events: Sequence[Event], name: str, conversation: Conversation | None
) -> Iterator[Judged]:
    """The rules of routes whose conditions looked at a variable, each with whose it is."""
    declared = conversation.rules.items() if conversation else ()
    owners = {rule.number: source for source, rules in declared for rule in rules}
    for event in events:
        if not isinstance(event.data, RouteDecided):
            continue
        for rule in event.data.considered:
            if _looked(name, rule.saw, rule.why_not):
                yield Judged(
                    event.seq,
                    owners.get(rule.rule, event.data.source),
                    rule.target,
                    rule.rule,
                    rule.condition,
                    rule.saw.get(name),
                    rule.fired,
                    rule.why_not,
                )


def hooks(events: Sequence[Event], name: str, conversation: Conversation | None) -> Iterator[Gated]:
    """The hooks that run on a condition which looked at a variable, each time it was judged."""
    gates = _gates(conversation)
    if conversation is None or not gates:
        return
    workflow = Conversing(conversation)
    state = fresh(RunKey("", ""), workflow)
    for event in events:
        hook = gates.get(hook_of(call_of(event))) if _was_judged(event) else None
        if hook is not None and hook.when is not None:
            verdict = judge(hook.when, state.values, state.absent)
            if _looked(name, verdict.saw, verdict.why_not):
                yield _gated(event, hook, verdict.saw.get(name), verdict.why_not)
        evolve(workflow, state, event)


def _gates(conversation: Conversation | None) -> dict[int | None, Hook]:
    """The hooks that run on a condition, by their place."""
    some: Iterable[tuple[Hook, ...]] = conversation.hooks.values() if conversation else ()
    return {hook.number: hook for hooks in some for hook in hooks if hook.when is not None}


def _was_judged(event: Event) -> bool:
    """Whether the condition of a hook was judged just before: it is about to run, or skipped."""
    match event.data:
        case LifecycleToolCall(restored=restored):
            return not restored
        case LifecycleToolResult(status="skipped", result=why):
            return str(why).startswith("only when")
        case _:
            return False


def _gated(event: Event, hook: Hook, value: Json, why_not: str) -> Gated:
    fact: LifecycleToolCall | LifecycleToolResult = event.data
    ran = isinstance(fact, LifecycleToolCall)
    when = hook.declared.when or ""
    return Gated(event.seq, hook.name, fact.trigger, fact.agent, when, value, ran, why_not)


def _looked(name: str, saw: Mapping[str, Json], why_not: str) -> bool:
    return name in saw or why_not.startswith(f"{name} is absent")
