"""Routes from the log: rules, subscriptions, choices, and what would have led elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnloom.agents.events import ChanceDrawn, QuestionAnswered, QuestionAsked, SpeakerPicked
from turnloom.agents.spec import SELECTOR, RunState, ToolSchema
from turnloom.assembly.events import FrameAssembled
from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.conversation.events import ConsideredRule, RouteDecided
from turnloom.conversation.logic.routing import ConversationForm, transfer
from turnloom.conversation.spec import Conversation, HandoffRule
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import ArtifactHistory, is_board
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.flow_routes import explain_flow_route, is_flow
from turnloom.explain.logic.frames import Frames
from turnloom.explain.spec.board import ArrivedArtifact, ConsumptionExplained, OfferExplained
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RouteExplanation, RunDeclarations
from turnloom.explain.spec.route import (
    Alternative,
    RouteExplained,
    ShownSelection,
    SpeakerPick,
    WeighedRule,
)
from turnloom.guards.events import SelectionMade
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event, RunKey
from turnloom.reaction.events import ArtifactOffered, ArtifactReceived, ArtifactsGiven
from turnloom.runtime.logic import evolve, fresh
from turnloom.variables.logic.types import same

# What is said where there is no other route to tell of.
PICKED = "no rule would have fired, and somebody would have been picked"
UNREADABLE = "what decided this route cannot be read from the declarations of the run"


class _Changed(NamedTuple):
    """A value that could have been another one; `ELSE` stands for anything that nobody asks for."""

    name: str
    value: Json


class _Else:
    """Equal to nothing that a condition names."""


ELSE = _Else()


def alternatives(
    before: Sequence[Event], found: Event, conversation: Conversation | None
) -> tuple[list[Alternative], str]:
    """Each single value that would have led elsewhere, and what makes that doubtful if anything.

    `before` are the events before the route that was found.
    """
    if conversation is None:
        return [], UNREADABLE
    workflow = ConversationForm(conversation)
    earlier = _same_moment(before, found)
    state = _state(workflow, before[: len(before) - len(earlier)])
    place = len(earlier)
    decided = _routes(workflow, state)
    if _ways(decided[place : place + 1]) != _ways([found.data]):
        again = [f"{route.target} ({route.reason})" for route in decided[place : place + 1]]
        return [], f"decided again from the log, the work goes to {', '.join(again) or 'nobody'}"
    return list(_otherwise(workflow, state, decided, place)), ""


def _same_moment(before: Sequence[Event], found: Event) -> list[Event]:
    """The routes that were decided together with one, before it."""
    moment = found.id.rpartition("/")[0]
    together: list[Event] = []
    for event in reversed(before):
        if not isinstance(event.data, RouteDecided) or event.id.rpartition("/")[0] != moment:
            break
        together.append(event)
    return together


def _state(workflow: ConversationForm, events: Sequence[Event]) -> RunState:
    """What the run knew after these events."""
    state = fresh(RunKey("", ""), workflow)
    for event in events:
        evolve(workflow, state, event)
    return state


def _routes(workflow: ConversationForm, state: RunState) -> list[RouteDecided]:
    """The routes that are decided at this moment; none when somebody is to pick first."""
    action = workflow.decide(state)
    facts = [fact for _, fact in action.facts] if action is not None else []
    return [fact for fact in facts if isinstance(fact, RouteDecided)]


def _otherwise(
    workflow: ConversationForm, state: RunState, decided: Sequence[RouteDecided], place: int
) -> Iterator[Alternative]:
    """Every single change of a value after which the work goes elsewhere from this place."""
    values = state.values
    for change in _candidates(workflow.conversation, decided[place]):
        if change.name in values and same(values[change.name], change.value):
            continue
        state.values = {**values, change.name: change.value}
        instead = _routes(workflow, state)
        state.values = values
        if _ways(instead[:place]) != _ways(decided[:place]):
            continue  # then this route would not have been decided at all
        if _ways(instead[place:]) != _ways(decided[place:]):
            yield _told(change, values, *_parting(decided, instead))


def _ways(routes: Sequence[RouteDecided]) -> list[tuple[str, int]]:
    """Where routes lead and which rule leads there."""
    return [(route.target, _fired(route)) for route in routes]


def _fired(route: RouteDecided) -> int:
    return next((rule.rule for rule in route.considered if rule.fired), 0)


def _candidates(conversation: Conversation, route: RouteDecided) -> list[_Changed]:
    """Values that a rule asks for, and values that the rule which fired does not ask for."""
    found: list[_Changed] = []
    fired = _fired(route)
    for rule in _asked(conversation, route):
        for term in rule.condition.terms if rule.condition else ():
            found.append(_Changed(term.name, term.value))
            if rule.number == fired:
                other = not term.value if isinstance(term.value, bool) else ELSE
                found.append(_Changed(term.name, other))
    return [each for place, each in enumerate(found) if not _listed(each, found[:place])]


def _asked(conversation: Conversation, route: RouteDecided) -> Iterator[HandoffRule]:
    """The rules that a route can depend on: of who hands over, and of who would reply."""
    yield from conversation.rules.get(route.source, ())
    for rule in conversation.rules.get(route.target, ()) if route.target != route.source else ():
        if rule.pre:
            yield rule


def _listed(change: _Changed, earlier: Sequence[_Changed]) -> bool:
    return any(each.name == change.name and same(each.value, change.value) for each in earlier)


def _parting(
    decided: Sequence[RouteDecided], instead: Sequence[RouteDecided]
) -> tuple[RouteDecided | None, str]:
    """The first route that would have been another one, and in words where the work would go."""
    ways, others = _ways(decided), _ways(instead)
    place = next(n for n in range(len(ways) + 1) if ways[n : n + 1] != others[n : n + 1])
    if place == len(instead):
        replies = f"{decided[place].source} would have replied" if place else PICKED
        return None, replies
    route = instead[place]
    fired, why = _fired(route), route.reason.removeprefix("no rule fired: ")
    then = f"rule {fired} would have fired" if fired else "no rule would have fired"
    told = "" if fired and why.endswith(f"rule {fired}") else f" ({why})"
    return route, f"{then} → {route.target}{told}"


def _told(
    change: _Changed, values: Mapping[str, Json], route: RouteDecided | None, then: str
) -> Alternative:
    anything = change.value is ELSE
    becomes = None if anything else change.value
    wanted = "anything else" if anything else preview(becomes)
    was = preview(values[change.name]) if change.name in values else "absent"
    return Alternative(
        change.name,
        values.get(change.name),
        becomes,
        anything,
        rule=_fired(route) if route else 0,
        target=route.target if route else "",
        says=f"had {change.name} been {wanted} (it was {was}), {then}",
    )


def selection_at(events: Sequence[Event], moment: str) -> ShownSelection | None:
    """The choice that was made at a moment: that is what ids of its events begin with."""
    for event in events:
        if isinstance(event.data, SelectionMade) and event.id.startswith(f"{moment}/"):
            return selected(event, event.data)
    return None


def selected(event: Event, fact: SelectionMade) -> ShownSelection:
    """A choice as it is told."""
    return ShownSelection(
        event.seq,
        fact.chosen,
        fact.meant,
        fact.category,
        confidence=fact.confidence,
        candidates=fact.candidates,
        excluded=fact.excluded,
        notes=fact.notes,
    )


# What is said of a rule that the model could not choose.
NOT_OFFERED = "it was not offered to the agent's model"


def explain_route(
    events: Sequence[Event], seq: int, declared: RunDeclarations = NOTHING_DECLARED
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
        target=fact.target,
        reason=fact.reason,
        rules=(
            *(_weighed(each, rules.get(each.rule), offered) for each in fact.considered),
            *_unasked(fact, declared.conversation),
        ),
        picked=_picked(before),
        otherwise=tuple(otherwise),
        doubt=doubt,
        selection=selection_at(events, found.id.rpartition("/")[0]),
    )


def _rules(conversation: Conversation | None) -> dict[int, HandoffRule]:
    """The declared rules by their number."""
    some = conversation.rules.values() if conversation else ()
    return {rule.number: rule for rules in some for rule in rules}


def _weighed(
    each: ConsideredRule, rule: HandoffRule | None, offered: Mapping[str, str]
) -> WeighedRule:
    model, pre = rule is not None and rule.llm, rule is not None and rule.pre
    words = offered.get(transfer(rule, {}, {}).schema.name, "") if rule and model else ""
    why_not = NOT_OFFERED if model and not words and not each.fired else each.why_not
    return WeighedRule(
        each.rule,
        each.target,
        each.condition,
        dict(each.saw),
        fired=each.fired,
        why_not=why_not,
        model=model,
        pre=pre,
        offered=words,
    )


def _unasked(fact: RouteDecided, conversation: Conversation | None) -> Iterator[WeighedRule]:
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
            yield WeighedRule(
                rule.number,
                rule.target,
                rule.said,
                {},
                fired=False,
                why_not=why_not,
                model=rule.llm,
                pre=rule.pre,
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


def _picked(before: Sequence[Event]) -> SpeakerPick | None:
    """Who was picked since the last route, if somebody was."""
    asked: QuestionAsked | None = None
    found: SpeakerPick | None = None
    for event in before:
        match event.data:
            case RouteDecided():
                found = None
            case ChanceDrawn(among=among, drawn=drawn):
                found = SpeakerPick(event.seq, "chance", drawn, among)
            case SpeakerPicked(among=among, picked=picked):
                found = SpeakerPick(event.seq, "the model", picked, among)
            case QuestionAsked():
                asked = event.data
            case QuestionAnswered(tool=tool, by=by, value=value) if tool == SELECTOR:
                found = SpeakerPick(event.seq, by, str(value), _choices(asked))
            case _:
                pass
    return found


def _choices(asked: QuestionAsked | None) -> tuple[str, ...]:
    """Among whom a person was asked to pick."""
    schema = as_object(asked.schema) if asked else None
    return tuple(as_array((schema or {}).get("enum")) or ())


def explain_reaction(events: Sequence[Event], seq: int) -> OfferExplained | ConsumptionExplained:
    """Who was offered an artifact, or why a subscription took what it took: at that event, for the
    artifact that came with it, or at the next such event after it.

    Raises:
        UsageError: there is no such event, and none after it.
    """
    artifacts = ArtifactHistory(events)
    at = next((event for event in events if event.seq == seq), None)
    if at is not None and isinstance(at.data, ArtifactPublished | ArtifactReceived):
        return _came(at, artifacts)
    routes = [e for e in events if isinstance(e.data, ArtifactOffered | ArtifactConsumed)]
    found = next((event for event in routes if event.seq >= seq), None)
    if found is None or seq < 1:
        known = ", ".join(str(event.seq) for event in routes) or "none"
        raise UsageError(f"Nothing was offered or taken at seq {seq} or after it. It was: {known}.")
    if isinstance(found.data, ArtifactOffered):
        return _offer(found, seq, artifacts)
    return _consumption(events, found, seq, artifacts)


def _came(event: Event, artifacts: ArtifactHistory) -> OfferExplained:
    """What became of an artifact that was published, or came from another run."""
    id = event.data.artifact.id
    for offer in artifacts.offers(id):
        return _offer(offer, event.seq, artifacts)
    return OfferExplained(
        event.run, event.seq, event.seq, artifacts.named(id), offered=False, to=()
    )


def _offer(offer: Event, asked: int, artifacts: ArtifactHistory) -> OfferExplained:
    id = offer.data.artifact
    verdicts, chosen = artifacts.verdicts(offer), artifacts.choice(id)
    return OfferExplained(
        offer.run,
        offer.seq,
        asked,
        artifacts.named(id),
        offered=True,
        to=verdicts,
        selection=selected(chosen, chosen.data) if chosen else None,
    )


def _consumption(
    events: Sequence[Event], consumed: Event, asked: int, artifacts: ArtifactHistory
) -> ConsumptionExplained:
    fact: ArtifactConsumed = consumed.data
    offers, leading = artifacts.taken(consumed), artifacts.leading(consumed)
    arrived = [
        ArrivedArtifact(artifacts.named(id), offer.seq if offer else 0, offer.at if offer else None)
        for id in fact.artifacts
        for offer in (offers.get(id),)
    ]
    return ConsumptionExplained(
        consumed.run,
        consumed.seq,
        asked,
        fact.agent,
        subscription=fact.subscription,
        turn=fact.turn,
        opened=fact.run,
        artifacts=tuple(arrived),
        cause=leading.seq if leading else 0,
        because=_because(fact, leading, events[0].data),
    )


def _because(fact: ArtifactConsumed, leading: Event | None, started: RunStarted) -> str:
    """What completed a set, in words."""
    match leading.data if leading else None:
        case ArtifactOffered(artifact=id) if len(fact.artifacts) > 1:
            return f"{id} completed the set"
        case ArtifactOffered(artifact=id):
            return f"{id} was offered, and is all that was waited for"
        case ArtifactsGiven(subscription=""):
            return "somebody gave it to the agent directly"
        case ArtifactsGiven():
            return f"the set was collected in run {started.parents[0]}"
        case _:
            return describe(leading.data) if leading else "the log does not say"


def explain_any_route(
    events: Sequence[Event], seq: int, declared: RunDeclarations
) -> RouteExplanation:
    """Why the work went where it went, by the event that says so.

    Raises:
        UsageError: the event decides no route.
    """
    if is_flow(events):
        return explain_flow_route(events, seq)
    if is_board(events):
        return explain_reaction(events, seq)
    return explain_route(events, seq, declared)
