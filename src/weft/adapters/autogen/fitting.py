"""Whether a group chat of the classic line and a workflow fit."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat.group.patterns.pattern import Pattern

from weft.adapters.autogen.chats import Chat
from weft.conversation.spec import Conversation
from weft.errors import UsageError
from weft.runtime.spec import Loaded
from weft.variables.logic.matching import ENDING, ends_chats
from weft.variables.spec import (
    AgentText,
    AgentTurnCount,
    ContextChange,
    Definition,
    Derived,
    Trigger,
)

# The triggers that what agents send is enough for.
HEARD = (AgentText, AgentTurnCount, ContextChange)


def refuse_misfits(pattern: Pattern, workflow: Loaded) -> Conversation:
    """The conversation of a workflow that the chat can follow.

    Raises:
        UsageError: it cannot.
    """
    deciding: Any = workflow.workflow
    conversation = getattr(deciding, "conversation", None)
    if not isinstance(conversation, Conversation):
        raise UsageError(f"{deciding.name!r} is no conversation. Attach a workflow folder.")
    problems = [*_misfits(pattern, conversation)]
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
    for hook in chain.from_iterable(conversation.hooks.values()):
        yield f"Hook {hook.name!r} is none of messages, and the chat has no others. Drop it."
    for definition in conversation.variables.definitions.values():
        if isinstance(definition.source, Derived):
            for trigger in definition.source.triggers:
                yield from _unheard(pattern, definition, trigger)


def _used(agent: ConversableAgent) -> Iterator[str]:
    """Why an agent cannot take part: what it learned in one run would leak into the next."""
    hooks = agent.hook_lists["process_message_before_send"]
    is_attached = any(isinstance(getattr(hook, "__self__", None), Chat) for hook in hooks)
    if is_attached or any(agent.chat_messages.values()):
        yield (
            f"Agent {agent.name!r} was in a chat before; its tools and messages are still of that "
            "one. Make agents for each run."
        )


def _unheard(pattern: Pattern, definition: Definition, trigger: Trigger) -> Iterator[str]:
    """Why a trigger would never fire."""
    if not isinstance(trigger, HEARD):
        kinds = "`agent_text`, `agent_turn_count` and `context_changed`"
        yield (
            f"Variable {definition.name!r} has a trigger {trigger.type!r}, and the chat tells of "
            f"{kinds} only. Set it from a tool, by `ReplyResult`."
        )
    if isinstance(trigger, AgentText) and _ends(pattern, trigger):
        yield (
            f"Variable {definition.name!r} waits for {ENDING!r}, which ends the chat before "
            "anything is decided. Choose another word, or give the manager and the agents an "
            "`is_termination_msg` of your own."
        )


def _ends(pattern: Pattern, trigger: AgentText) -> bool:
    is_usual = "is_termination_msg" not in pattern.group_manager_args
    return is_usual and ends_chats(trigger)
