"""A route from the log: the rules, their verdicts, and who was picked."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from turnloom.agents.events import ChanceDrawn, QuestionAnswered, QuestionAsked, SpeakerPicked
from turnloom.agents.spec import SELECTOR, ToolSchema
from turnloom.assembly.events import FrameAssembled
from turnloom.conversation.events import Considered, RouteDecided
from turnloom.conversation.logic.transfers import transfer
from turnloom.conversation.spec import Conversation, Rule
from turnloom.errors import UsageError
from turnloom.explain.logic.alternatives import alternatives
from turnloom.explain.logic.frames import Frames
from turnloom.explain.logic.selection import selection_at
from turnloom.explain.spec.explanations import NOTHING_DECLARED, Declared
from turnloom.explain.spec.route import Picked, RouteExplained, Weighed
from turnloom.kernel.values import as_array, as_object
from turnloom.log.spec import Event

# What is said of a rule that the model could not choose.
NOT_OFFERED = "it was not offered to the agent's model"


def explain_route(
    events: Sequence[Event], seq: int, declared: Declared = NOTHING_DECLARED
) -> RouteExplained:
    """Why the work went where it went, at the route of that event or the next one after it.

    Raises:
        UsageError: there is no such event, or no route after it.
    """
    routes = [event for event in events if isinstance(event.data, RouteDecided)]
    found = next((event for event in routes if event.seq >= seq), None)
    if found is None or seq < 1:
        known = ", ".join(str(event.seq) for event in routes) or "none"
        raise UsageError(f"No route was decided at seq {seq} or after it. Routes: {known}.")
    fact: RouteDecided = found.data
    before = [event for event in events if event.seq < found.seq]
    rules = _rules(declared.conversation)
    offered = _offered(before, fact.source)
    otherwise, doubt = alternatives(before, found, declared.conversation)
    return RouteExplained(
        found.run,
        found.seq,
        seq,
        fact.source,
        fact.target,
        fact.reason,
        (
            *(_weighed(each, rules.get(each.rule), offered) for each in fact.considered),
            *_unasked(fact, declared.conversation),
        ),
        _picked(before),
        tuple(otherwise),
        doubt,
        selection_at(events, found.id.rpartition("/")[0]),
    )


def _rules(conversation: Conversation | None) -> dict[int, Rule]:
    """The declared rules by their number."""
    some = conversation.rules.values() if conversation else ()
    return {rule.number: rule for rules in some for rule in rules}


def _weighed(each: Considered, rule: Rule | None, offered: Mapping[str, str]) -> Weighed:
    model, pre = rule is not None and rule.llm, rule is not None and rule.pre
    words = offered.get(transfer(rule, {}, {}).schema.name, "") if rule and model else ""
    why_not = NOT_OFFERED if model and not words and not each.fired else each.why_not
    return Weighed(
        each.rule,
        each.target,
        each.condition,
        dict(each.saw),
        each.fired,
        why_not,
        model,
        pre,
        words,
    )


def _unasked(fact: RouteDecided, conversation: Conversation | None) -> Iterator[Weighed]:
    """The rules behind the one that fired, which nobody had to ask."""
    fired = next((each.rule for each in fact.considered if each.fired), None)
    if fired is None or conversation is None:
        return
    asked = {each.rule for each in fact.considered}
    rules = conversation.rules.get(fact.source, ())
    pre = any(rule.pre and rule.number == fired for rule in rules)
    for rule in rules:
        if rule.pre == pre and rule.number not in asked:
            why_not = f"rule {fired} fired before it was asked"
            yield Weighed(
                rule.number, rule.target, rule.said, {}, False, why_not, rule.llm, rule.pre
            )


def _offered(before: Sequence[Event], agent: str) -> dict[str, str]:
    """What the last frame of an agent said of each tool, by the tool's name."""
    shown = [event.data for event in before if isinstance(event.data, FrameAssembled)]
    last = next((frame for frame in reversed(shown) if frame.agent == agent), None)
    frames = Frames(before)
    sighted = frames.sighted(last) if last else None
    texts = [
        frames.texts.get(segment.digest, "{}")
        for segment in (sighted.segments if sighted else ())
        if segment.kind == "tool"
    ]
    tools = [msgspec.json.decode(text, type=ToolSchema) for text in texts]
    return {tool.name: tool.description for tool in tools}


def _picked(before: Sequence[Event]) -> Picked | None:
    """Who was picked since the last route, if somebody was."""
    asked: QuestionAsked | None = None
    found: Picked | None = None
    for event in before:
        match event.data:
            case RouteDecided():
                found = None
            case ChanceDrawn(among=among, drawn=drawn):
                found = Picked(event.seq, "chance", drawn, among)
            case SpeakerPicked(among=among, picked=picked):
                found = Picked(event.seq, "the model", picked, among)
            case QuestionAsked():
                asked = event.data
            case QuestionAnswered(tool=tool, by=by, value=value) if tool == SELECTOR:
                found = Picked(event.seq, by, str(value), _choices(asked))
            case _:
                pass
    return found


def _choices(asked: QuestionAsked | None) -> tuple[str, ...]:
    """Among whom a person was asked to pick."""
    schema = as_object(asked.schema) if asked else None
    return tuple(as_array((schema or {}).get("enum")) or ())
