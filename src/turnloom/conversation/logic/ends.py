"""Where a run ends: agents behind whom it never does, and those at whom it ends unsaid."""

from collections.abc import Mapping, Sequence
from typing import Any

from turnloom.agents.spec import TERMINATE, USER, Agent
from turnloom.conversation.logic.reach import candidates_of, reached
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.spec import Orchestrator, Rule
from turnloom.variables.logic.types import same
from turnloom.variables.spec import Definition

Rules = Mapping[str, tuple[Rule, ...]]


def check_ends(
    scope: Scope, orchestrator: Orchestrator, agents: Mapping[str, Agent], rules: Rules
) -> None:
    """Note agents who go on for ever, and agents at whom a run stops because no rule fires."""
    if scope.broken or any(problem.severity == "error" for problem in scope.report.problems):
        return
    found = reached(agents, orchestrator, rules)
    met = [name for name in agents if name in found]
    _check_endless(scope, orchestrator, agents, rules, met)
    ends = orchestrator.orchestration_pattern == "DefaultPattern"
    for name in met if ends and not orchestrator.human_in_the_loop else ():
        _check_dead_end(scope, name, [rule for rule in rules.get(name, ()) if not rule.pre])


def _check_endless(
    scope: Scope,
    orchestrator: Orchestrator,
    agents: Mapping[str, Agent],
    rules: Rules,
    met: Sequence[str],
) -> None:
    if orchestrator.max_turns is not None:
        return
    ending = {name for name in met if agents[name].max_consecutive_auto_reply is not None}
    ending |= {USER, TERMINATE}
    followers = {name: _followers(rules.get(name, ()), orchestrator, agents) for name in met}
    while more := {name for name in met if name not in ending and followers[name] & ending}:
        ending |= more
    endless = [name for name in met if name not in ending]
    if not endless:
        return
    document = scope.document("orchestrator")
    where = (*scope.report.part(document, "orchestrator").path, "orchestration_pattern")
    message = f"Nothing ever ends a run behind {', '.join(endless)}, and no person is asked there."
    remedy = "Set `max_turns`, or add a handoff to `terminate`."
    scope.report.warn(document, where, "W054", message, remedy)


def _followers(
    rules: Sequence[Rule], orchestrator: Orchestrator, agents: Mapping[str, Agent]
) -> set[str]:
    """Everybody who can come behind an agent with these rules."""
    found, candidates = {rule.target for rule in rules}, candidates_of(orchestrator)
    found |= candidates if found & candidates else set()
    if any(_always_fires(rule) for rule in rules):
        return found
    match orchestrator.orchestration_pattern:
        case "DefaultPattern":
            return found | {USER if orchestrator.human_in_the_loop else TERMINATE}
        case "ManualPattern":
            return found | {USER}
        case _:
            return found.union(agents, [USER] if orchestrator.human_in_the_loop else [])


def _check_dead_end(scope: Scope, name: str, rules: Sequence[Rule]) -> None:
    """Note an agent who hands over under conditions only; one without rules is meant to be last."""
    if not rules or any(map(_always_fires, rules)) or _cover_all(scope, rules):
        return
    document, path = scope.places[name]
    message = f"If none of the rules of {name!r} fires, the run ends there, and no rule says so."
    remedy = "Add an `after_work` handoff, to `terminate` if that is meant."
    scope.report.warn(document, path, "W054", message, remedy)


def _always_fires(rule: Rule) -> bool:
    return rule.kind == "after_work" and rule.condition is None


def _cover_all(scope: Scope, rules: Sequence[Rule]) -> bool:
    """Whether the rules name every value that some variable can have."""
    named: dict[str, list[Any]] = {}
    for rule in rules:
        terms = rule.condition.terms if rule.condition else ()
        if len(terms) == 1:
            named.setdefault(terms[0].name, []).append(terms[0].value)
    return any(
        definition is not None and _has_no_other(definition, values)
        for name, values in named.items()
        for definition in [scope.definition(name)]
    )


def _has_no_other(definition: Definition, values: Sequence[Any]) -> bool:
    possible = [False, True] if definition.type == "boolean" else definition.enum or ()
    return bool(possible) and all(any(same(each, value) for value in values) for each in possible)
