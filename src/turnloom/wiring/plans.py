"""What gives agents of a workflow their context, for people."""

from collections.abc import Mapping

from turnloom.assembly.logic.descriptions import by_agent, describe_assembly, describe_provider
from turnloom.assembly.service.gathering import Choices
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.sources import Assembly
from turnloom.runtime.spec import AgentRuntime


def describe_staff(staff: Mapping[str, AgentRuntime]) -> str:
    """What gives each agent of a folder its context."""
    return by_agent({agent: _described(each.context) for agent, each in staff.items()})


def _described(context: ChosenProvider | Assembly | None) -> str:
    if context is None:
        return "nothing"
    if isinstance(context, Assembly):
        return describe_assembly(context)
    asked = context.provider
    choices = asked.choices if isinstance(asked, Choices) else (context,)
    return "\n".join(map(describe_provider, choices))
