"""What would have led elsewhere: the decision is made again, each time with one value changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from turnloom.agents.spec import RunState
from turnloom.conversation.events import RouteDecided
from turnloom.conversation.logic.routing import Conversing
from turnloom.conversation.spec import Conversation, Rule
from turnloom.explain.spec.route import Otherwise
from turnloom.kernel.values import Json, preview
from turnloom.log.spec import Event, RunKey
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
) -> tuple[list[Otherwise], str]:
    """Each single value that would have led elsewhere, and what makes that doubtful if anything.

    `before` are the events before the route that was found.
    """
    if conversation is None:
        return [], UNREADABLE
    workflow = Conversing(conversation)
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


def _state(workflow: Conversing, events: Sequence[Event]) -> RunState:
    """What the run knew after these events."""
    state = fresh(RunKey("", ""), workflow)
    for event in events:
        evolve(workflow, state, event)
    return state


def _routes(workflow: Conversing, state: RunState) -> list[RouteDecided]:
    """The routes that are decided at this moment; none when somebody is to pick first."""
    action = workflow.decide(state)
    facts = [fact for _, fact in action.facts] if action is not None else []
    return [fact for fact in facts if isinstance(fact, RouteDecided)]


def _otherwise(
    workflow: Conversing, state: RunState, decided: Sequence[RouteDecided], place: int
) -> Iterator[Otherwise]:
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


def _asked(conversation: Conversation, route: RouteDecided) -> Iterator[Rule]:
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
) -> Otherwise:
    anything = change.value is ELSE
    becomes = None if anything else change.value
    wanted = "anything else" if anything else preview(becomes)
    was = preview(values[change.name]) if change.name in values else "absent"
    return Otherwise(
        change.name,
        values.get(change.name),
        becomes,
        anything,
        _fired(route) if route else 0,
        route.target if route else "",
        f"had {change.name} been {wanted} (it was {was}), {then}",
    )
