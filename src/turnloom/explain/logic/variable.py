"""Explain a variable from the log: its values, their causes and its readers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from turnloom.agents.spec import ToolSchema
from turnloom.assembly.events import FrameAssembled, Segment
from turnloom.conversation.events import RouteDecided
from turnloom.conversation.logic.routing import ConversationForm, names_in, transfer
from turnloom.conversation.spec import Conversation
from turnloom.errors import UsageError
from turnloom.explain.logic.causes import Causes
from turnloom.explain.logic.frames import Frames, call_of, hook_of
from turnloom.explain.logic.state import up_to
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RunDeclarations
from turnloom.explain.spec.variable import (
    FrameMention,
    GatedHook,
    JudgedRule,
    Omission,
    RefusedValue,
    VariableChange,
    VariableExplained,
)
from turnloom.hooks.events import LifecycleToolCall, LifecycleToolResult
from turnloom.hooks.spec import Hook
from turnloom.kernel.values import Json, nearest
from turnloom.log.logic import standing
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import evolve, fresh
from turnloom.variables.events import (
    ContextChanged,
    ContextLoaded,
    ContextMissed,
    ContextRefused,
    ContextSuppressed,
    InitialValue,
)
from turnloom.variables.logic.conditions import judge


def frames(
    events: Sequence[Event], name: str, conversation: Conversation | None
) -> Iterator[FrameMention]:
    """Yield the frames that showed or withheld the variable, by itself or in the text of a
    handoff."""
    seen, handoffs = Frames(), _handoff_segments(name, conversation)
    own = f"context_variables.{name}"
    for event in events:
        seen.take(event)
        if not isinstance(event.data, FrameAssembled):
            continue
        view = seen.view_of(event.data)
        at = (event.seq, event.data.turn, event.data.agent)
        for segment in view.segments if view else ():
            if segment.origin == own or segment.origin in handoffs:
                text = _text_of(segment, seen.texts)
                yield FrameMention(*at, text, origin=segment.origin)
        for each in view.withheld if view else ():
            if each.origin == own:
                yield FrameMention(*at, "", f"withheld, {each.reason}: {each.detail}", each.origin)


def _handoff_segments(name: str, conversation: Conversation | None) -> set[str]:
    """Origins of the handoff segments whose text contains the variable."""
    rules = conversation.rules.values() if conversation else ()
    return {
        f"tools.{transfer(rule, {}, {}).schema.name}"
        for some in rules
        for rule in some
        if rule.llm and name in names_in(rule.said)
    }


def _text_of(segment: Segment, texts: Mapping[str, str]) -> str:
    """The text of a segment; for a tool, its description."""
    text = texts.get(segment.digest, "").strip()
    if segment.kind == "tool" and text:
        return msgspec.json.decode(text, type=ToolSchema).description
    return text


def conditions(
    events: Sequence[Event], name: str, conversation: Conversation | None
) -> Iterator[JudgedRule]:
    """Yield the handoff rules whose conditions read the variable, with their owners."""
    declared = conversation.rules.items() if conversation else ()
    owners = {rule.number: source for source, rules in declared for rule in rules}
    for event in events:
        if not isinstance(event.data, RouteDecided):
            continue
        for rule in event.data.considered:
            if _looked(name, rule.saw, rule.why_not):
                yield JudgedRule(
                    event.seq,
                    owners.get(rule.rule, event.data.source),
                    rule.target,
                    rule.rule,
                    condition=rule.condition,
                    value=rule.saw.get(name),
                    fired=rule.fired,
                    why_not=rule.why_not,
                )


def hooks(
    events: Sequence[Event], name: str, conversation: Conversation | None
) -> Iterator[GatedHook]:
    """Yield the hooks whose conditions read the variable, once per evaluation."""
    gates = _gates(conversation)
    if conversation is None or not gates:
        return
    workflow = ConversationForm(conversation)
    state = fresh(RunKey("", ""), workflow)
    for event in events:
        hook = gates.get(hook_of(call_of(event))) if _was_judged(event) else None
        if hook is not None and hook.when is not None:
            verdict = judge(hook.when, state.values, state.absent)
            if _looked(name, verdict.saw, verdict.why_not):
                yield _gated(event, hook, verdict.saw.get(name), verdict.why_not)
        evolve(workflow, state, event)


def _gates(conversation: Conversation | None) -> dict[int | None, Hook]:
    """The hooks that have a condition, by number."""
    some: Iterable[tuple[Hook, ...]] = conversation.hooks.values() if conversation else ()
    return {hook.number: hook for hooks in some for hook in hooks if hook.when is not None}


def _was_judged(event: Event) -> bool:
    """Whether the event shows that the condition of a hook was just evaluated."""
    match event.data:
        case LifecycleToolCall(restored=restored):
            return not restored
        case LifecycleToolResult(status="skipped", result=why):
            return str(why).startswith("only when")
        case _:
            return False


def _gated(event: Event, hook: Hook, value: Json, why_not: str) -> GatedHook:
    fact: LifecycleToolCall | LifecycleToolResult = event.data
    ran = isinstance(fact, LifecycleToolCall)
    when = hook.declared.when or ""
    return GatedHook(
        event.seq,
        hook.name,
        fact.trigger,
        fact.agent,
        condition=when,
        value=value,
        ran=ran,
        why_not=why_not,
    )


def _looked(name: str, saw: Mapping[str, Json], why_not: str) -> bool:
    return name in saw or why_not.startswith(f"{name} is absent")


def explain_variable(
    events: Sequence[Event],
    name: str,
    at: int | None = None,
    declared: RunDeclarations = NOTHING_DECLARED,
) -> VariableExplained:
    """Explain the value of a variable, as of an event or of the last one.

    Raises:
        UsageError: the run has no such variable, or no such event.
    """
    _check(events, name, at)
    until = standing(up_to(events, at))
    loaded, suppressed = _loaded(until, name), _suppressed(until, name)
    causes = Causes(until)
    changes = tuple(_changes(until, name, causes, loaded is not None and not suppressed))
    last = changes[-1] if changes else None
    first = loaded or InitialValue(name, "")
    return VariableExplained(
        run=events[-1].run,
        name=name,
        description=declared.descriptions.get(name, ""),
        at=until[-1].seq,
        present=not last.removed if last else loaded is not None and not suppressed,
        value=last.value if last else first.value,
        ephemeral=last is not None and last.ephemeral,
        undeclared=_undeclared(until, name),
        source=first.source,
        place=first.origin,
        raw=first.raw,
        first=first.value,
        defaulted=first.defaulted,
        note=first.note,
        suppressed=suppressed,
        changes=changes,
        refused=tuple(_refused(until, name, causes)),
        missed=tuple(_missed(until, name, causes)),
        frames=tuple(frames(until, name, declared.conversation)),
        conditions=tuple(conditions(until, name, declared.conversation)),
        hooks=tuple(hooks(until, name, declared.conversation)),
    )


def _check(events: Sequence[Event], name: str, at: int | None) -> None:
    last = events[-1].seq
    if at is not None and not 1 <= at <= last:
        raise UsageError(f"Unknown event {at}. This run has the events 1 to {last}.")
    known = dict.fromkeys(names_of(events))
    if name not in known:
        hint = nearest(name, known)
        remedy = f"Did you mean {hint!r}?" if hint else f"Variables: {', '.join(known)}."
        raise UsageError(f"This run has no variable {name!r}. {remedy}")


def names_of(events: Sequence[Event]) -> Iterator[str]:
    """Yield the names of the variables of a run; a name may come several times."""
    for event in events:
        match event.data:
            case ContextLoaded(values=values):
                yield from (each.name for each in values)
            case ContextSuppressed(names=names):
                yield from names
            case ContextChanged(name=name) | ContextRefused(name=name) | ContextMissed(name=name):
                yield name
            case _:
                pass


def _loaded(events: Sequence[Event], name: str) -> InitialValue | None:
    for event in events:
        if isinstance(event.data, ContextLoaded):
            return next((each for each in event.data.values if each.name == name), None)
    return None


def _suppressed(events: Sequence[Event], name: str) -> str:
    for event in events:
        if isinstance(event.data, ContextSuppressed) and name in event.data.names:
            return event.data.reason
    return ""


def _undeclared(events: Sequence[Event], name: str) -> bool:
    facts = (event.data for event in events if isinstance(event.data, ContextChanged))
    return any(fact.undeclared for fact in facts if fact.name == name)


def _changes(
    events: Sequence[Event], name: str, causes: Causes, present: bool
) -> Iterator[VariableChange]:
    for event in events:
        fact = event.data
        if isinstance(fact, ContextChanged) and fact.name == name:
            yield VariableChange(
                event.seq,
                event.at,
                fact.previous,
                fact.value,
                writer=fact.writer,
                causes=causes.of(event),
                absent=not present,
                removed=fact.removed,
                ephemeral=fact.ephemeral,
            )
            present = not fact.removed


def _refused(events: Sequence[Event], name: str, causes: Causes) -> Iterator[RefusedValue]:
    for event in events:
        fact = event.data
        if isinstance(fact, ContextRefused) and fact.name == name:
            yield RefusedValue(
                event.seq, event.at, fact.writer, fact.reason, causes=causes.of(event)
            )


def _missed(events: Sequence[Event], name: str, causes: Causes) -> Iterator[Omission]:
    for event in events:
        fact = event.data
        if isinstance(fact, ContextMissed) and fact.name == name:
            yield Omission(
                event.seq, event.at, fact.tool, fact.key, value=fact.value, causes=causes.of(event)
            )
