"""Reachability of agents: who can follow whom, who is never reached, and where a run ends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turnloom.agents.spec import TERMINATE, USER, Agent
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.spec import HandoffRule, Orchestrator
from turnloom.variables.logic.types import same
from turnloom.variables.spec import VariableDefinition

Rules = Mapping[str, tuple[HandoffRule, ...]]

# The parts that decide who speaks.
ROUTING = ("orchestrator", "agents", "handoffs")

# Problems of conditions, which do not change where a rule leads.
CONDITIONS = ("W021", "W022", "W023", "W024")

# The source of the first route, as in `route.decided`.
START = ""


def check_reach(scope: Scope, orchestrator: Orchestrator, rules: Rules) -> None:
    """Report agents that no rule leads to."""
    if not scope.is_sound(("orchestrator", "handoffs"), besides=CONDITIONS):
        return
    for name in sorted(scope.agent_names - reached(scope.places, orchestrator, rules)):
        document, path = scope.places[name]
        scope.report.warn(
            document,
            path,
            "W030",
            f"No handoff leads to agent {name!r}.",
            remedy="Add a handoff to it, or remove it.",
        )


def reached(agents: Iterable[str], orchestrator: Orchestrator, rules: Rules) -> set[str]:
    """The agents that the rules lead to from the start; `agents` in declared order."""
    return beyond(START, followers(agents, orchestrator, rules))


def followers(
    agents: Iterable[str], orchestrator: Orchestrator, rules: Rules
) -> dict[str, set[str]]:
    """The possible successors of each agent and of the start, for any values of variables.

    Where the user can follow, so can those who follow the user's answer.
    """
    roster = list(agents)
    people = {USER} if orchestrator.human_in_the_loop else set[str]()
    usual = orchestrator.orchestration_pattern == "DefaultPattern"
    picked = set[str]() if usual else {*roster, *people}
    first = orchestrator.initial_agent or roster[0]
    # The user can follow even if a rule always fires: its target may have reached its limit.
    found = {name: _after(name, rules, picked) | people for name in roster}
    found[START] = {USER if orchestrator.startup_mode == "UserDriven" else first}
    candidates = candidates_of(orchestrator)
    for name, targets in found.items():
        _pass_on(targets, rules, candidates)
        if USER in targets:
            # If no rule fires, the user's answer goes back to the agent that asked.
            targets |= _after(USER, rules, picked or {name or first})
            _pass_on(targets, rules, candidates)
    return found


def candidates_of(orchestrator: Orchestrator) -> frozenset[str]:
    """The candidates of the selection, who can take each other's turns."""
    selection = orchestrator.guards.selection
    return frozenset(selection.candidates if selection else ())


def _after(name: str, rules: Rules, default: set[str]) -> set[str]:
    """The targets of an agent's rules; the default too, unless one of them always fires."""
    asked = [rule for rule in rules.get(name, ()) if not rule.pre]
    found = {rule.target for rule in asked}
    always = any(not rule.said for rule in asked)
    return found if always else found | default


def _pass_on(targets: set[str], rules: Rules, candidates: frozenset[str]) -> None:
    """Add those who can take the turn of a target, by `pre` rules or selection."""
    waiting = list(targets)
    while waiting:
        target = waiting.pop()
        instead = {rule.target for rule in rules.get(target, ()) if rule.pre}
        instead |= candidates if target in candidates else set()
        waiting += instead - targets
        targets |= instead


def beyond(name: str, follows: Mapping[str, Iterable[str]]) -> set[str]:
    """Everyone who can follow an agent, directly or later."""
    waiting, found = list(follows.get(name, ())), set[str]()
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += follows.get(other, ())
    return found


def check_no_questions(scope: Scope, rules: Rules) -> None:
    """Report rules and tools that ask the user in a run without one."""
    for document, path, title in scope.asking:
        message = f"BackendOnly runs have no user, but tool {title!r} asks one."
        remedy = "Drop it, or set `startup_mode: AgentDriven`."
        scope.report.add(document, path, "W033", message, remedy=remedy)
    document = scope.document("handoffs")
    root = scope.report.part(document, "handoff_rules").path
    for source, found in rules.items():
        for rule in found:
            if rule.target == USER:
                scope.report.add(
                    document,
                    (*root, rule.number - 1),
                    "W033",
                    f"BackendOnly runs have no user, but {source!r} has a handoff to the user.",
                    remedy="Change the target to an agent or `terminate`.",
                )


def check_ends(
    scope: Scope, orchestrator: Orchestrator, agents: Mapping[str, Agent], rules: Rules
) -> None:
    """Report runs that never end, and agents at which a run ends because no rule fires."""
    if not scope.is_sound((*ROUTING, "context_variables")):
        return
    found = reached(agents, orchestrator, rules)
    met = [name for name in agents if name in found]
    _check_endless(scope, orchestrator, agents, rules, met=met)
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
    message = f"A run never ends after {', '.join(endless)}, and no person is asked there."
    remedy = "Set `max_turns`, or add a handoff to `terminate`."
    scope.report.warn(document, where, "W054", message, remedy=remedy)


def _followers(
    rules: Sequence[HandoffRule], orchestrator: Orchestrator, agents: Mapping[str, Agent]
) -> set[str]:
    """Everyone who can follow an agent with these rules."""
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


def _check_dead_end(scope: Scope, name: str, rules: Sequence[HandoffRule]) -> None:
    """Report an agent with conditional handoffs only; one without rules is meant to be last."""
    if not rules or any(map(_always_fires, rules)) or _cover_all(scope, rules):
        return
    document, path = scope.places[name]
    message = f"If no rule of {name!r} fires, the run ends there, and no rule says so."
    remedy = "Add an `after_work` handoff, to `terminate` if that is intended."
    scope.report.warn(document, path, "W054", message, remedy=remedy)


def _always_fires(rule: HandoffRule) -> bool:
    return rule.kind == "after_work" and rule.condition is None


def _cover_all(scope: Scope, rules: Sequence[HandoffRule]) -> bool:
    """Whether the rules cover every value of some variable."""
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


def _has_no_other(definition: VariableDefinition, values: Sequence[Any]) -> bool:
    possible = [False, True] if definition.type == "boolean" else definition.enum or ()
    return bool(possible) and all(any(same(each, value) for value in values) for each in possible)
