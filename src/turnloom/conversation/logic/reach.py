"""Who can follow whom, and which agents can ever be asked."""

from collections.abc import Iterable, Mapping

from turnloom.agents.spec import USER
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.spec import Orchestrator, Rule

Rules = Mapping[str, tuple[Rule, ...]]

# Whom the first speaker follows, as `route.decided` has it.
START = ""


def check_reach(scope: Scope, orchestrator: Orchestrator, rules: Rules) -> None:
    """Note agents that no rule leads to."""
    if not scope.is_sound:
        return
    for name in sorted(scope.agent_names - reached(scope.places, orchestrator, rules)):
        document, path = scope.places[name]
        scope.report.warn(
            document,
            path,
            "W030",
            f"Nothing ever hands over to agent {name!r}.",
            "Add a handoff to it, or remove it.",
        )


def reached(agents: Iterable[str], orchestrator: Orchestrator, rules: Rules) -> set[str]:
    """Whom the rules lead to, from whoever begins; `agents` in declared order."""
    return beyond(START, followers(agents, orchestrator, rules))


def followers(
    agents: Iterable[str], orchestrator: Orchestrator, rules: Rules
) -> dict[str, set[str]]:
    """Who can come after each agent and at the start, whatever the conditions say.

    Where the user comes, so does whoever can follow the user's answer.
    """
    roster = list(agents)
    people = {USER} if orchestrator.human_in_the_loop else set[str]()
    usual = orchestrator.orchestration_pattern == "DefaultPattern"
    picked = set[str]() if usual else {*roster, *people}
    first = orchestrator.initial_agent or roster[0]
    # People come in also where a rule always fires: its target may have replied too often.
    found = {name: _after(name, rules, picked) | people for name in roster}
    found[START] = {USER if orchestrator.startup_mode == "UserDriven" else first}
    candidates = candidates_of(orchestrator)
    for name, targets in found.items():
        _pass_on(targets, rules, candidates)
        if USER in targets:
            # With no rule that fires, the user's answer goes back to whom it is for.
            targets |= _after(USER, rules, picked or {name or first})
            _pass_on(targets, rules, candidates)
    return found


def candidates_of(orchestrator: Orchestrator) -> frozenset[str]:
    """Those of whom any can get a turn that would go to one of them."""
    selection = orchestrator.guards.selection
    return frozenset(selection.candidates if selection else ())


def _after(name: str, rules: Rules, default: set[str]) -> set[str]:
    """Whom the rules of somebody lead to; the default too, unless one of them always fires."""
    asked = [rule for rule in rules.get(name, ()) if not rule.pre]
    found = {rule.target for rule in asked}
    always = any(rule.condition is None and not rule.llm for rule in asked)
    return found if always else found | default


def _pass_on(targets: set[str], rules: Rules, candidates: frozenset[str]) -> None:
    """Add those who get the turn of a target before it replies, or in its place."""
    waiting = list(targets)
    while waiting:
        target = waiting.pop()
        instead = {rule.target for rule in rules.get(target, ()) if rule.pre}
        instead |= candidates if target in candidates else set()
        waiting += instead - targets
        targets |= instead


def beyond(name: str, follows: Mapping[str, Iterable[str]]) -> set[str]:
    """Everybody who can come after somebody, sooner or later."""
    waiting, found = list(follows.get(name, ())), set[str]()
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += follows.get(other, ())
    return found


def check_nobody_is_asked(scope: Scope, rules: Rules) -> None:
    """Note whatever asks people in a run without people: rules here, tools where they stand."""
    for document, path, title in scope.asking:
        message = f"BackendOnly runs without people, and tool {title!r} asks them."
        remedy = "Drop it, or set `startup_mode: AgentDriven`."
        scope.report.add(document, path, "W033", message, remedy)
    document = scope.document("handoffs")
    root = scope.report.part(document, "handoff_rules").path
    for source, found in rules.items():
        for rule in found:
            if rule.target == USER:
                scope.report.add(
                    document,
                    (*root, rule.number - 1),
                    "W033",
                    f"BackendOnly runs without people, and {source!r} hands over to the user.",
                    "Hand over to an agent or to `terminate`.",
                )
