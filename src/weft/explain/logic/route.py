"""A route from the log: the rules, their verdicts, and what would have led elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from weft.conversation.events import Considered, RouteDecided
from weft.errors import UsageError
from weft.explain.spec.route import Otherwise, RouteExplained, Weighed
from weft.kernel.values import Json, preview
from weft.log.spec import Event
from weft.variables.events import ContextChanged, ContextLoaded, ContextSuppressed
from weft.variables.logic.conditions import Condition, judge, parse_condition
from weft.variables.logic.types import same


def explain_route(events: Sequence[Event], seq: int) -> RouteExplained:
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
    return RouteExplained(
        found.run,
        found.seq,
        seq,
        fact.source,
        fact.target,
        fact.reason,
        tuple(_weighed(rule) for rule in fact.considered),
        tuple(_otherwise(events, routes, found)),
    )


def _weighed(rule: Considered) -> Weighed:
    return Weighed(rule.rule, rule.target, rule.condition, dict(rule.saw), rule.fired, rule.why_not)


class _Rule(NamedTuple):
    """A rule that can be judged again; without a condition it always fires."""

    number: int
    target: str
    condition: Condition | None


class _Changed(NamedTuple):
    """A value that could have been another one; `ELSE` stands for anything that nobody asks for."""

    name: str
    value: Json


class _Else:
    """Equal to nothing that a condition names."""


ELSE = _Else()


def _otherwise(
    events: Sequence[Event], routes: Sequence[Event], found: Event
) -> Iterator[Otherwise]:
    """Every single change of a value after which another rule comes first."""
    fact: RouteDecided = found.data
    if not fact.considered:
        return
    rules, complete = _rules_of(fact, routes)
    values = _values_at(events, found.seq)
    fired = _first(rules, values)
    for change in _candidates(rules, fired):
        if change.name in values and same(values[change.name], change.value):
            continue
        instead = _first(rules, {**values, change.name: change.value})
        if instead != fired:
            yield _told(change, values, instead, complete)


def _rules_of(fact: RouteDecided, routes: Sequence[Event]) -> tuple[list[_Rule], bool]:
    """The rules of who handed over, as far as the run shows them, and whether those are all."""
    asked = [_asked(route.data) for route in routes if route.data.source == fact.source]
    longest = max((each for before, each in asked if before == _asked(fact)[0]), key=len)
    chosen = {rule.rule for rule in fact.considered if rule.by_model and rule.fired}
    rules = [
        _Rule(rule.rule, rule.target, None if rule.by_model else _condition(rule))
        for rule in longest
        if not rule.by_model or rule.rule in chosen
    ]
    return rules, not longest or not longest[-1].fired or not longest[-1].condition


def _asked(fact: RouteDecided) -> tuple[bool, list[Considered]]:
    """The rules of who handed over that were asked, and whether that was before their reply."""
    before = [rule for rule in fact.considered if rule.before == fact.source]
    return bool(before), before or [rule for rule in fact.considered if not rule.before]


def _condition(rule: Considered) -> Condition | None:
    return parse_condition(rule.condition) if rule.condition else None


def _values_at(events: Sequence[Event], seq: int) -> dict[str, Json]:
    values: dict[str, Json] = {}
    for event in events:
        if event.seq >= seq:
            break
        match event.data:
            case ContextLoaded(values=loaded):
                values = {each.name: each.value for each in loaded}
            case ContextSuppressed(names=names):
                values = {name: value for name, value in values.items() if name not in names}
            case ContextChanged(name=name, value=value):
                values[name] = value
            case _:
                pass
    return values


def _first(rules: Sequence[_Rule], values: Mapping[str, Json]) -> _Rule | None:
    """The rule that fires for these values."""
    for rule in rules:
        if rule.condition is None or judge(rule.condition, values, {}).holds:
            return rule
    return None


def _candidates(rules: Sequence[_Rule], fired: _Rule | None) -> list[_Changed]:
    """Values that a rule asks for, and values that the rule which fired does not ask for."""
    found: list[_Changed] = []
    for rule in rules:
        for term in rule.condition.terms if rule.condition else ():
            found.append(_Changed(term.name, term.value))
            if rule is fired:
                other = not term.value if isinstance(term.value, bool) else ELSE
                found.append(_Changed(term.name, other))
    return [each for place, each in enumerate(found) if not _listed(each, found[:place])]


def _listed(change: _Changed, earlier: Sequence[_Changed]) -> bool:
    return any(each.name == change.name and same(each.value, change.value) for each in earlier)


def _told(
    change: _Changed, values: Mapping[str, Json], instead: _Rule | None, complete: bool
) -> Otherwise:
    anything = change.value is ELSE
    becomes = None if anything else change.value
    wanted = "anything else" if anything else preview(becomes)
    was = preview(values[change.name]) if change.name in values else "absent"
    if instead is not None:
        then = f"rule {instead.number} would have fired → {instead.target}"
    elif complete:
        then = "no rule would have fired, and the pattern's default would have decided"
    else:
        then = "the rules behind would have been asked, which no route of this run shows"
    return Otherwise(
        change.name,
        values.get(change.name),
        becomes,
        anything,
        instead.number if instead else 0,
        instead.target if instead else "",
        f"had {change.name} been {wanted} (it was {was}), {then}",
    )
