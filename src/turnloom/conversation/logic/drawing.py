"""Pictures of conversations: who hands over to whom, and when."""

from turnloom.agents.spec import TERMINATE, USER
from turnloom.conversation.spec import Conversation, Rule
from turnloom.kernel.pictures import Flowchart


def draw(conversation: Conversation) -> str:
    """A conversation as a flowchart: its agents, and its handoffs in the order of their rules."""
    chart, setup = Flowchart(), conversation.orchestrator
    ids = {name: f"agent_{number}" for number, name in enumerate(conversation.agents)}
    ids |= {USER: "user", TERMINATE: "terminate"}
    chart.node("start", conversation.name, "end")
    for name in conversation.agents:
        chart.node(ids[name], name)
    reached = {rule.target for rules in conversation.rules.values() for rule in rules}
    if USER in reached or USER in conversation.rules:
        chart.node(ids[USER], USER, "person")
    if TERMINATE in reached:
        chart.node(ids[TERMINATE], "end", "end")
    first = setup.initial_agent or next(iter(conversation.agents))
    chart.edge("start", ids[first], setup.orchestration_pattern)
    for source, rules in conversation.rules.items():
        for rule in rules:
            chart.edge(ids[source], ids[rule.target], _text(rule), dotted=rule.llm)
    return str(chart)


def _text(rule: Rule) -> str:
    """When a rule fires, with its number."""
    when = "before the reply, " if rule.pre else ""
    return f"{rule.number}. {when}{rule.said or 'after its work'}"
