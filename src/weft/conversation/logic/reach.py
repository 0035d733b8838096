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
        waiting += _usually(name, first, agents, orchestrator)
    return found


def _usually(name: str, first: str, agents: Iterable[str], orchestrator: Orchestrator) -> list[str]:
    """Who may follow somebody when no rule fires."""
    if orchestrator.orchestration_pattern != "DefaultPattern":
        return [*agents, *([USER] if orchestrator.human_in_the_loop else [])]
    if name == USER:
        return [first]
    return [USER] if orchestrator.human_in_the_loop else []


def check_nobody_is_asked(scope: Scope, rules: Mapping[str, tuple[Rule, ...]]) -> None:
    """Note whatever asks people in a run without people: rules here, tools where they stand."""
    for document, path, title in scope.asking:
        message = f"BackendOnly runs without people, and tool {title!r} asks them."
        scope.report.add(document, path, "W033", message, "Make it an Agent_Tool, or drop it.")
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
