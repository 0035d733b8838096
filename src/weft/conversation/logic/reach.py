"""Who can follow whom, and which agents can ever be asked."""

from collections.abc import Iterable, Mapping

from weft.agents.spec import TERMINATE, USER
from weft.conversation.logic.scope import Scope
from weft.conversation.spec import Orchestrator, Rule

# Whom the first speaker follows, as `route.decided` has it.
START = ""


def check_reach(
    scope: Scope, orchestrator: Orchestrator, rules: Mapping[str, tuple[Rule, ...]]
) -> None:
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


def reached(
    agents: Iterable[str], orchestrator: Orchestrator, rules: Mapping[str, tuple[Rule, ...]]
) -> set[str]:
    """Whom the rules lead to, from whoever begins; `agents` in declared order."""
    return beyond(START, followers(agents, orchestrator, rules))


def followers(
    agents: Iterable[str], orchestrator: Orchestrator, rules: Mapping[str, tuple[Rule, ...]]
) -> dict[str, set[str]]:
    """Who can come after each agent and at the start, whatever the conditions say.

    Where the user comes, so does whoever can follow the user's answer: by the rules, or as whom
    the user answered.
    """
    roster = list(agents)
    first = orchestrator.initial_agent or roster[0]
    default = USER if orchestrator.human_in_the_loop else TERMINATE
    found = {name: _targets(rules.get(name, ()), default) for name in roster}
    found[START] = {USER if orchestrator.startup_mode == "UserDriven" else first}
    for name, targets in found.items():
        if USER in targets:
            targets |= _targets(rules.get(USER, ()), name or first)
    return found


def _targets(rules: tuple[Rule, ...], default: str) -> set[str]:
    """Whom rules can lead to; the default follows unless one of them always fires."""
    found = {rule.target for rule in rules}
    return found if any(rule.condition is None for rule in rules) else {*found, default}


def beyond(name: str, follows: Mapping[str, Iterable[str]]) -> set[str]:
    """Everybody who can come after somebody, sooner or later."""
    waiting, found = list(follows.get(name, ())), set[str]()
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += follows.get(other, ())
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
