"""Whether a group chat of the classic line and a workflow fit."""

from collections.abc import Iterator
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat.group.patterns.pattern import Pattern

from turnloom.adapters.autogen.beginnings import lacking, looks_outside
from turnloom.adapters.autogen.chats import Chat
from turnloom.agents.spec import Toolkit
from turnloom.conversation.spec import Conversation
from turnloom.errors import UsageError
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.matching import ENDING, ends_chats
from turnloom.variables.spec import (
    AgentText,
    AgentTurnCount,
    ContextChange,
    Database,
    Definition,
    Derived,
    ToolResponse,
    Trigger,
    UiResponse,
)

# The id by which nothing can be looked up before a chat began.
CHAT_ID = "chat_id"

# The triggers that what happens in a chat is enough for.
HEARD = (AgentText, AgentTurnCount, ContextChange, ToolResponse, UiResponse)

# Why others are not.
UNHEARD = {
    "timer_expired": "and a chat keeps no time. Set it from a tool.",
    "function": "which is asked about events, and a chat asks no functions. Set it from a tool.",
}
FOREIGN = "of which the chat knows nothing. Set it from a tool."


def refuse_misfits(pattern: Pattern, workflow: Loaded, *, is_recorded: bool) -> Conversation:
    """The conversation of a workflow that the chat can follow.

    Raises:
        UsageError: it cannot.
    """
    deciding: Any = workflow.workflow
    conversation = getattr(deciding, "conversation", None)
    if not isinstance(conversation, Conversation):
        raise UsageError(f"{deciding.name!r} is no conversation. Attach a workflow folder.")
    problems = [*_misfits(pattern, conversation), *_unread(pattern, conversation, is_recorded)]
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"The chat cannot have workflow {conversation.name!r}:\n{lines}")
    return conversation


def _misfits(pattern: Pattern, conversation: Conversation) -> Iterator[str]:
    there = {agent.name for agent in pattern.agents}
    for name in sorted(conversation.agents.keys() - there):
        yield f"It has no agent {name!r}. Give it one, or drop it from the workflow."
    for agent in pattern.agents:
        yield from _used(agent)
    for definition in conversation.variables.definitions.values():
        if isinstance(definition.source, Derived):
            for trigger in definition.source.triggers:
                yield from _unheard(pattern, conversation.toolkit, definition, trigger)


def _unread(pattern: Pattern, conversation: Conversation, is_recorded: bool) -> Iterator[str]:
    """Why variables that the chat has no values of would have none."""
    for name, definition in lacking(pattern.context_variables, conversation.variables).items():
        source = definition.source
        if isinstance(source, Database) and source.search_by == CHAT_ID:
            yield (
                f"Variable {name!r} is looked up by {CHAT_ID!r}, and a chat has none when it is "
                "attached. Give the chat a value of it."
            )
        elif looks_outside(definition) and not is_recorded:
            yield (
                f"Variable {name!r} is read from outside ({source.type}), and the chat has no "
                "value of it. Attach with `Records`, or give the chat a value."
            )


def _used(agent: ConversableAgent) -> Iterator[str]:
    """Why an agent cannot take part: what it learned in one run would leak into the next."""
    hooks = agent.hook_lists["process_message_before_send"]
    is_attached = any(isinstance(getattr(hook, "__self__", None), Chat) for hook in hooks)
    if is_attached or any(agent.chat_messages.values()):
        yield (
            f"Agent {agent.name!r} was in a chat before; its tools and messages are still of that "
            "one. Make agents for each run."
        )


def _unheard(
    pattern: Pattern, toolkit: Toolkit, definition: Definition, trigger: Trigger
) -> Iterator[str]:
    """Why a trigger would never fire."""
    about = f"Variable {definition.name!r}"
    if not isinstance(trigger, HEARD):
        yield f"{about} has a trigger {trigger.type!r}, {UNHEARD.get(trigger.type, FOREIGN)}"
    if isinstance(trigger, UiResponse) and trigger.apply == "auto":
        yield (
            f"{about} takes the answer that tool {trigger.tool!r} gets, and what people answer a "
            "tool of the chat is known to that tool alone. Let it set the variable: drop `apply`."
        )
    if isinstance(trigger, (ToolResponse, UiResponse)):
        tool = toolkit.called(trigger.tool)
        if tool not in _tools(pattern):
            yield (
                f"{about} waits for tool {tool!r}, and no agent of the chat has it. Register it "
                "with an agent before you attach."
            )
    if isinstance(trigger, AgentText) and _ends(pattern, trigger):
        yield (
            f"{about} waits for {ENDING!r}, which ends the chat before anything is decided. Choose "
            "another word, or give the manager and the agents an `is_termination_msg` of your own."
        )


def _tools(pattern: Pattern) -> set[str]:
    """The tools that agents of the chat have."""
    return {
        name
        for agent in pattern.agents
        for name in (*agent.function_map, *(tool.name for tool in agent.tools))
    }


def _ends(pattern: Pattern, trigger: AgentText) -> bool:
    is_usual = "is_termination_msg" not in pattern.group_manager_args
    return is_usual and ends_chats(trigger)
