"""Flowcharts of conversations: agents and handoffs."""

from collections.abc import Sequence

from turnloom.agents.spec import TERMINATE, USER
from turnloom.conversation.spec import Conversation, HandoffRule
from turnloom.kernel.markup import Flowchart


def draw(conversation: Conversation) -> str:
    """A conversation as a flowchart: its agents and user, its handoffs in the order of their rules,
    and the ways to the user when no rule fires."""
    chart, setup = Flowchart(), conversation.orchestrator
    ids = {name: f"agent_{number}" for number, name in enumerate(conversation.agents)}
    ids |= {USER: "user", TERMINATE: "terminate"}
    chart.node("start", conversation.name, "end")
    for name in conversation.agents:
        chart.node(ids[name], name)
    first = setup.initial_agent or next(iter(conversation.agents))
    begins = USER if setup.startup_mode == "UserDriven" else first
    unruled = _unruled(conversation, first)
    reached = {rule.target for rules in conversation.rules.values() for rule in rules}
    if unruled or begins == USER or USER in reached or USER in conversation.rules:
        chart.node(ids[USER], USER, "person")
    if TERMINATE in reached:
        chart.node(ids[TERMINATE], "end", "end")
    chart.edge("start", ids[begins], setup.orchestration_pattern)
    for source, rules in conversation.rules.items():
        for rule in rules:
            chart.edge(ids[source], ids[rule.target], _text(rule), dotted=rule.llm)
    for source, target in unruled:
        chart.edge(ids[source], ids[target], "no rule fires")
    return str(chart)


def _unruled(conversation: Conversation, first: str) -> list[tuple[str, str]]:
    """The ways to the user and back when no rule fires."""
    setup, rules, agents = conversation.orchestrator, conversation.rules, conversation.agents
    asks = [name for name in agents if setup.human_in_the_loop and not _always(rules.get(name, ()))]
    ruled = [name for name in agents if any(rule.target == USER for rule in rules.get(name, ()))]
    back = [name for name in agents if name in asks or name in ruled]
    if setup.startup_mode == "UserDriven" and first not in back:
        back.append(first)
    if _always(rules.get(USER, ())):
        back = []
    return [*((name, USER) for name in asks), *((USER, name) for name in back)]


def _always(rules: Sequence[HandoffRule]) -> bool:
    """Whether one of the rules always fires."""
    return any(rule.condition is None and not (rule.llm or rule.pre) for rule in rules)


def _text(rule: HandoffRule) -> str:
    """The label of a rule: its number, its condition and its description."""
    when = "before the reply, " if rule.pre else ""
    note = f": {rule.description}" if rule.description else ""
    return f"{rule.number}. {when}{rule.said or 'after its work'}{note}"
