"""Which agents can ever be asked."""

from collections.abc import Iterable, Mapping

from weft.agents.spec import TERMINATE, USER
from weft.conversation.logic.scope import Scope
from weft.conversation.spec import Orchestrator, Rule


def check_reach(
    scope: Scope, orchestrator: Orchestrator, rules: Mapping[str, tuple[Rule, ...]]
) -> None:
    """Note agents that no rule leads to."""
    if scope.broken or any(problem.severity == "error" for problem in scope.report.problems):
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


def reached(
    agents: Iterable[str], orchestrator: Orchestrator, rules: Mapping[str, tuple[Rule, ...]]
) -> set[str]:
    """Whom the rules lead to, from whoever begins; `agents` in declared order."""
    first = orchestrator.initial_agent or next(iter(agents))
    start = USER if orchestrator.startup_mode == "UserDriven" else first
    waiting, found = [start], set[str]()
    while waiting:
        name = waiting.pop()
        if name in found or name == TERMINATE:
            continue
        found.add(name)
        waiting += [rule.target for rule in rules.get(name, ())]
        if name == USER:
            waiting.append(first)
        elif orchestrator.human_in_the_loop:
            waiting.append(USER)
    return found


def check_nobody_is_asked(scope: Scope, rules: Mapping[str, tuple[Rule, ...]]) -> None:
    """Note rules that hand over to people in a run without people."""
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
