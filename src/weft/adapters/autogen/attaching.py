"""A workflow folder's variables, exposure and message hooks in a group chat of the classic line."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from autogen.agentchat.group.patterns.pattern import Pattern

from weft.adapters.autogen.chats import Chat, Showing
from weft.adapters.autogen.fitting import refuse_misfits
from weft.conversation.spec import Conversation
from weft.errors import UsageError
from weft.lifecycle.spec import MessageHook
from weft.runtime.spec import Loaded


def attach(pattern: Pattern, workflow: Loaded) -> None:
    """Let a chat have the derived variables, the exposure and the message hooks of a workflow.

    A variable changes while the message that changes it is being sent, so that whatever is decided
    after it sees the change. Whose turn it is, tools and models stay the chat's own.

    Raises:
        UsageError: the chat and the workflow do not fit; the message says why.
    """
    conversation = refuse_misfits(pattern, workflow)
    functions = _functions(workflow, conversation)
    chat = Chat(pattern.context_variables, conversation)
    for agent in pattern.agents:
        _register(agent, chat, conversation, functions)


def _register(
    agent: Any,  # the types of hooks are not known there
    chat: Chat,
    conversation: Conversation,
    functions: Mapping[MessageHook, Callable[..., Any]],
) -> None:
    """Hooks of the folder come first: what they leave of a message is what is said."""
    for hook, function in functions.items():
        if hook.goes_with(agent.name):
            agent.register_hook(hook.hook_type, function)
    agent.register_hook("process_message_before_send", chat.say)
    if agent.name in conversation.variables.exposures:
        showing = Showing(agent.name, conversation.variables, chat)
        agent.register_hook("update_agent_state", showing.update)


def _functions(
    workflow: Loaded, conversation: Conversation
) -> dict[MessageHook, Callable[..., Any]]:
    """The functions of message hooks, as the chat calls them: without awaiting anything."""
    modules: Any = workflow.modules
    found: dict[MessageHook, Callable[..., Any]] = {}
    for hook in conversation.message_hooks:
        function = modules.function(hook.filename, hook.function)
        if inspect.iscoroutinefunction(function):
            raise UsageError(
                f"Message hook {hook.function!r} of {hook.filename} is `async`, and a chat of the "
                "classic line awaits no hooks. Make it a plain function."
            )
        found[hook] = function
    return found
