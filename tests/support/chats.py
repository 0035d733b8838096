"""Group chats of AG2's classic line in tests: agents whose lines are known, and nobody reads."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat import a_initiate_group_chat, initiate_group_chat
from autogen.agentchat.group import (
    AgentTarget,
    ContextVariables,
    OnContextCondition,
    StringContextCondition,
    TerminateTarget,
)
from autogen.agentchat.group.patterns import DefaultPattern
from autogen.agentchat.group.patterns.pattern import Pattern
from autogen.io.base import IOStream
from autogen.testing import TestAgent

from tests.support.folders import write_folder
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.wiring import Folders


class Quiet:
    """A stream that nobody reads."""

    def print(self, *objects: Any, **how: Any) -> None: ...

    def send(self, message: Any) -> None: ...

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        return "exit"


def loaded(folder: Path, files: Mapping[str, str]) -> LoadedWorkflow:
    """A workflow folder with these files."""
    found, problems = Folders().examine(write_folder(folder, files))
    assert found is not None, problems
    return found


def chat(
    *, asker: Mapping[str, Any] | None = None, **more: Any
) -> tuple[DefaultPattern, dict[str, ConversableAgent]]:
    """Three agents; the planner hands over to the reviewer before it says anything, once the
    variable `known` is true."""
    own = {"Asker": asker or {}}
    agents = {
        name: ConversableAgent(
            name, system_message=f"Be {name}.", human_input_mode="NEVER", **own.get(name, {})
        )
        for name in ("Asker", "Planner", "Reviewer")
    }
    agents["Planner"].handoffs.add_context_condition(
        OnContextCondition(
            target=AgentTarget(agents["Reviewer"]),
            condition=StringContextCondition(variable_name="known"),
        )
    )
    pattern = DefaultPattern(
        initial_agent=agents["Asker"],
        agents=[*agents.values()],
        group_after_work=TerminateTarget(),
        **more,
    )
    return pattern, agents


def say(agents: Mapping[str, ConversableAgent], **lines: list[Any]) -> ExitStack:
    """While agents have these lines, and nobody reads them."""
    stack = ExitStack()
    stack.enter_context(IOStream.set_default(Quiet()))
    for name, said in lines.items():
        stack.enter_context(TestAgent(agents[name], said))
    return stack


async def converse(
    pattern: Pattern, is_async: bool, messages: Any = "Begin."
) -> tuple[Any, ContextVariables]:
    """What was said in a chat, run in one of both ways, and the variables in the end."""
    if is_async:
        result, context, _ = await a_initiate_group_chat(pattern, messages, 8)
    else:
        result, context, _ = initiate_group_chat(pattern, messages, 8)
    return result, context


def speakers(result: Any) -> list[str]:
    """Who spoke, but for whoever began."""
    return [message["name"] for message in result.chat_history[1:]]
