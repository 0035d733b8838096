"""Explain routes from the log: rules, subscriptions, selections and alternatives."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.events import ChanceDrawn, QuestionAnswered, QuestionAsked, SpeakerPicked
from turnloom.agents.spec import SELECTOR, USER, RunState, ToolSchema
from turnloom.assembly.events import FrameAssembled
from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.conversation.events import ConsideredRule, RouteDecided
from turnloom.conversation.logic.routing import ConversationForm, transfer
from turnloom.conversation.spec import Conversation, HandoffRule
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import ArtifactHistory, is_board
from turnloom.explain.logic.counterfactuals import (
    ELSE,
    domain_of,
    failed_parts,
    smallest_change,
)
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.flow_routes import explain_flow_route, is_flow
from turnloom.explain.logic.frames import Frames
from turnloom.explain.logic.offers import OfferedArtifact, weighed
from turnloom.explain.spec.board import ArrivedArtifact, ConsumptionExplained, OfferExplained
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RouteExplanation, RunDeclarations
from turnloom.explain.spec.route import (
    Alternative,
    ChangedValue,
    FailedPart,
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
from turnloom.variables.spec import VariableDefinition

# Texts shown if there is no alternative route.
PICKED = "no rule would have fired, and a speaker would have been picked"
UNREADABLE = "the declarations of the run do not contain the rules of this route"


class _Changed(NamedTuple):
    """A hypothetical value of a variable; `ELSE` stands for any value that no condition names."""

    name: str
    value: Any


class Counterfactuals(NamedTuple):
    """Single changes of a value that lead elsewhere, and for each rule that did not fire the parts
    that failed and the values that would have fired it; `doubt` is why they are not known."""

    otherwise: tuple[Alternative, ...] = ()
    failed: Mapping[int, tuple[FailedPart, ...]] = {}
    needed: Mapping[int, tuple[ChangedValue, ...]] = {}
    doubt: str = ""


def counterfactuals(
    before: Sequence[Event], found: Event, declared: RunDeclarations
) -> Counterfactuals:
    """Decide a route again with other values; `before` are the events before the route `found`."""
    if (conversation := declared.conversation) is None:
        return Counterfactuals(doubt=UNREADABLE)
    workflow = ConversationForm(conversation)
    earlier = _same_moment(before, found)
    state = _state(workflow, before[: len(before) - len(earlier)])
    place = len(earlier)
    decided = _routes(workflow, state)
    if _ways(decided[place : place + 1]) != _ways([found.data]):
        again = [f"{route.target} ({route.reason})" for route in decided[place : place + 1]]
        doubt = f"recomputed from the log, the route is: {', '.join(again) or 'none'}"
        return Counterfactuals(doubt=doubt)
    decision = _Decision(workflow, state, decided, place, types=declared.types)
    rules = [rule for rule in _relevant_rules(conversation, found.data) if not rule.llm]
    idle = [rule for rule in rules if rule.number != _fired(found.data)]
    return Counterfactuals(
        tuple(_changes(workflow, state, decided, place)),
        {
            rule.number: failed_parts(rule.condition, state.values, state.absent)
            for rule in idle
            if rule.condition
        },
        {rule.number: decision.needed(rule, rules) for rule in idle},
    )


class _Decision(NamedTuple):
    """A decision that can be repeated with other values: the routes decided together, of which the
    one at `place` is explained."""

    workflow: ConversationForm
    state: RunState
    decided: Sequence[RouteDecided]
    place: int
    types: Mapping[str, VariableDefinition]

    def needed(self, rule: HandoffRule, rules: Sequence[HandoffRule]) -> tuple[ChangedValue, ...]:
        """The smallest set of values that would have fired a rule."""
        terms = [term for each in rules if each.condition for term in each.condition.terms]
        names = list(dict.fromkeys(term.name for term in terms))
        domains = {
            name: domain_of(self.types.get(name), [t.value for t in terms if t.name == name])
            for name in names
        }
        return smallest_change(
            rule.condition,
            names,
            domains,
            self.state.values,
            fires=lambda changed: self.fires(rule, changed),
        )

    def fires(self, rule: HandoffRule, changed: Mapping[str, Any]) -> bool:
        """Whether a rule fires with some values changed, and the routes before stay the same."""
        values = self.state.values
        self.state.values = {**values, **changed}
        instead = _routes(self.workflow, self.state)
        self.state.values = values
        if _ways(instead[: self.place]) != _ways(self.decided[: self.place]):
            return False
        return any(_fired(route) == rule.number for route in instead[self.place :])


def _same_moment(before: Sequence[Event], found: Event) -> list[Event]:
    """The earlier routes that were decided together with `found`."""
    moment = found.id.rpartition("/")[0]
    together: list[Event] = []
    for event in reversed(before):
        if not isinstance(event.data, RouteDecided) or event.id.rpartition("/")[0] != moment:
            break
        together.append(event)
    return together


def _state(workflow: ConversationForm, events: Sequence[Event]) -> RunState:
    """Fold the events into a state."""
    state = fresh(RunKey("", ""), workflow)
    for event in events:
        evolve(workflow, state, event)
    return state


def _routes(workflow: ConversationForm, state: RunState) -> list[RouteDecided]:
    """The routes decided in this state; none if a speaker is picked first."""
    action = workflow.decide(state)
    facts = [fact for _, fact in action.facts] if action is not None else []
    return [fact for fact in facts if isinstance(fact, RouteDecided)]


def _changes(
    workflow: ConversationForm, state: RunState, decided: Sequence[RouteDecided], place: int
) -> Iterator[Alternative]:
    """Yield every single change of a value that leads elsewhere from this place."""
    values = state.values
    for change in _candidates(workflow.conversation, decided[place]):
        if change.name in values and same(values[change.name], change.value):
            continue
        state.values = {**values, change.name: change.value}
        instead = _routes(workflow, state)
        state.values = values
        if _ways(instead[:place]) != _ways(decided[:place]):
            continue  # this route would not be decided
        if _ways(instead[place:]) != _ways(decided[place:]):
            yield _alternative(change, values, *_difference(decided, instead))


def _ways(routes: Sequence[RouteDecided]) -> list[tuple[str, int]]:
    """The targets of routes and the rules that fired."""
    return [(route.target, _fired(route)) for route in routes]


def _fired(route: RouteDecided) -> int:
    return next((rule.rule for rule in route.considered if rule.fired), 0)


def _candidates(conversation: Conversation, route: RouteDecided) -> list[_Changed]:
    """Values that a rule requires, and values that contradict the rule that fired."""
    found: list[_Changed] = []
    fired = _fired(route)
    for rule in _relevant_rules(conversation, route):
        for term in rule.condition.terms if rule.condition else ():
            found.append(_Changed(term.name, term.value))
            if rule.number == fired:
                other = not term.value if isinstance(term.value, bool) else ELSE
                found.append(_Changed(term.name, other))
    return [each for place, each in enumerate(found) if not _listed(each, found[:place])]


def _relevant_rules(conversation: Conversation, route: RouteDecided) -> Iterator[HandoffRule]:
    """The rules that a route depends on: those of the source, and `pre` rules of the target."""
    yield from conversation.rules.get(route.source, ())
    for rule in conversation.rules.get(route.target, ()) if route.target != route.source else ():
        if rule.pre:
            yield rule


def _listed(change: _Changed, earlier: Sequence[_Changed]) -> bool:
    return any(each.name == change.name and same(each.value, change.value) for each in earlier)


def _difference(
    decided: Sequence[RouteDecided], instead: Sequence[RouteDecided]
) -> tuple[RouteDecided | None, str]:
    """The first route that differs, and a description of it."""
    ways, others = _ways(decided), _ways(instead)
    place = next(n for n in range(len(ways) + 1) if ways[n : n + 1] != others[n : n + 1])
    if place == len(instead):
        replies = f"{decided[place].source} would have replied" if place else PICKED
        return None, replies
    route = instead[place]
    fired, why = _fired(route), route.reason.removeprefix("no rule fired: ")
    then = f"rule {fired} would have fired" if fired else "no rule would have fired"
    reason = "" if fired and why.endswith(f"rule {fired}") else f" ({why})"
    return route, f"{then} → {route.target}{reason}"


def _alternative(
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
    """The selection made at a moment, which is the prefix of its event ids."""
    for event in events:
        if isinstance(event.data, SelectionMade) and event.id.startswith(f"{moment}/"):
            return selected(event, event.data)
    return None


def selected(event: Event, fact: SelectionMade) -> ShownSelection:
    """Convert a recorded selection."""
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


# The reason shown for a rule that the model could not choose.
NOT_OFFERED = "not offered to the agent's model"


def explain_route(
    events: Sequence[Event], seq: int, declared: RunDeclarations = NOTHING_DECLARED
) -> RouteExplained:
    """Explain the route at an event, or the next one after it.

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
    if fact.source == USER:
        llm = [rule for rule in rules.values() if rule.llm]
        offered = {transfer(rule, {}, {}).schema.name: rule.said for rule in llm}
    instead = counterfactuals(before, found, declared)
    return RouteExplained(
        events[-1].run,
        found.seq,
        seq,
        fact.source,
        target=fact.target,
        reason=fact.reason,
        rules=tuple(
            msgspec.structs.replace(
                each,
                failed=() if each.fired else instead.failed.get(each.rule, ()),
                needed=() if each.fired else instead.needed.get(each.rule, ()),
            )
            for each in (
                *(_weighed(each, rules.get(each.rule), offered) for each in fact.considered),
                *_unevaluated(fact, declared.conversation),
            )
        ),
        picked=_picked(before),
        otherwise=instead.otherwise,
        doubt=instead.doubt,
        selection=selection_at(events, found.id.rpartition("/")[0]),
    )


def _rules(conversation: Conversation | None) -> dict[int, HandoffRule]:
    """The declared rules by number."""
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
        description=rule.description if rule else "",
    )


def _unevaluated(fact: RouteDecided, conversation: Conversation | None) -> Iterator[WeighedRule]:
    """The rules after the one that fired, which were not evaluated."""
    fired = next((each.rule for each in fact.considered if each.fired), None)
    if fired is None or conversation is None:
        return
    asked = {each.rule for each in fact.considered}
    rules = conversation.rules.get(fact.source, ())
    pre = any(rule.pre and rule.number == fired for rule in rules)
    for rule in rules:
        if rule.pre == pre and rule.number not in asked:
            why_not = f"rule {fired} fired first"
            yield WeighedRule(
                rule.number,
                rule.target,
                rule.said,
                {},
                fired=False,
                why_not=why_not,
                model=rule.llm,
                pre=rule.pre,
                description=rule.description,
            )


def _offered(before: Sequence[Event], agent: str) -> dict[str, str]:
    """The tool descriptions in the last frame of an agent, by tool name."""
    shown = [event.data for event in before if isinstance(event.data, FrameAssembled)]
    last = next((frame for frame in reversed(shown) if frame.agent == agent), None)
    frames = Frames(before)
    view = frames.view_of(last) if last else None
    texts = [
        frames.texts.get(segment.digest, "{}")
        for segment in (view.segments if view else ())
        if segment.kind == "tool"
    ]
    tools = [msgspec.json.decode(text, type=ToolSchema) for text in texts]
    return {tool.name: tool.description for tool in tools}


def _picked(before: Sequence[Event]) -> SpeakerPick | None:
    """The speaker picked since the last route, if any."""
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
    """The options of a question to pick a speaker."""
    schema = as_object(asked.schema) if asked else None
    return tuple(as_array((schema or {}).get("enum")) or ())


def explain_reaction(
    events: Sequence[Event], seq: int, declared: RunDeclarations = NOTHING_DECLARED
) -> OfferExplained | ConsumptionExplained:
    """Explain an offer or a consumption: at that event, of the artifact that arrived with it, or
    the next one after it.

    Raises:
        UsageError: there is no such event, and none after it.
    """
    artifacts = ArtifactHistory(events)
    at = next((event for event in events if event.seq == seq), None)
    if at is not None and isinstance(at.data, ArtifactPublished | ArtifactReceived):
        found = _arrival(at, artifacts)
        return _with_reasons(found, events, artifacts, declared.plan)
    routes = [e for e in events if isinstance(e.data, ArtifactOffered | ArtifactConsumed)]
    found = next((event for event in routes if event.seq >= seq), None)
    if found is None or seq < 1:
        known = ", ".join(str(event.seq) for event in routes) or "none"
        raise UsageError(f"Nothing was offered or taken at seq {seq} or after it. Events: {known}.")
    if isinstance(found.data, ArtifactOffered):
        offer = _offer(found, seq, artifacts)
        return _with_reasons(offer, events, artifacts, declared.plan)
    return _consumption(events, found, seq, artifacts)


def _with_reasons(
    found: OfferExplained, events: Sequence[Event], artifacts: ArtifactHistory, plan: str
) -> OfferExplained:
    """An offer with the reasons of each refusal, as far as the plan of the board tells."""
    offer = next((e for e in events if e.seq == found.seq), None)
    whole = artifacts.whole([found.artifact.id])
    if offer is None or not isinstance(offer.data, ArtifactOffered) or not whole:
        return found
    offered = OfferedArtifact(whole[0], events[0].data.tenant, offer.data.at)
    return msgspec.structs.replace(
        found, to=tuple(weighed(each, offered, plan) for each in found.to)
    )


def _arrival(event: Event, artifacts: ArtifactHistory) -> OfferExplained:
    """Explain the offer of an artifact that was published or received."""
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
        events[-1].run,
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
    """Describe what completed a set."""
    match leading.data if leading else None:
        case ArtifactOffered(artifact=id) if len(fact.artifacts) > 1:
            return f"{id} completed the set"
        case ArtifactOffered(artifact=id):
            return f"{id} was offered, and completed the set alone"
        case ArtifactsGiven(subscription=""):
            return "given to the agent directly"
        case ArtifactsGiven():
            return f"the set was collected in run {started.parents[0]}"
        case _:
            return describe(leading.data) if leading else "the log does not say"


def explain_any_route(
    events: Sequence[Event], seq: int, declared: RunDeclarations
) -> RouteExplanation:
    """Explain the route, offer or flow decision at an event.

    Raises:
        UsageError: the event decides no route.
    """
    if is_flow(events):
        return explain_flow_route(events, seq, declared)
    if is_board(events):
        return explain_reaction(events, seq, declared)
    return explain_route(events, seq, declared)
