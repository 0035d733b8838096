"""Attach a workflow folder's variables, exposure and hooks to a group chat."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from autogen import ConversableAgent, GroupChatManager
from autogen.agentchat.group.group_tool_executor import GroupToolExecutor
from autogen.agentchat.group.patterns.pattern import Pattern

from turnloom.adapters.autogen.beginnings import begin, lacking, looks_outside
from turnloom.adapters.autogen.chats import Chat, Showing
from turnloom.adapters.autogen.diaries import ChatRunStore, Unrecorded, recorded
from turnloom.adapters.autogen.tools import overheard, share
from turnloom.agents.spec import Toolkit
from turnloom.conversation.spec import Conversation
from turnloom.errors import UsageError
from turnloom.hooks.spec import MessageHook
from turnloom.kernel.values import preview
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.logic.matching import ENDING, ends_chats
from turnloom.variables.spec import (
    AgentTextTrigger,
    AgentTurnCount,
    ContextChange,
    DatabaseSource,
    Derived,
    ToolResponse,
    Trigger,
    UiResponse,
    VariableDefinition,
)

# The id by which nothing can be looked up before a chat began.
CHAT_ID = "chat_id"

# The triggers that what happens in a chat is enough for.
HEARD = (AgentTextTrigger, AgentTurnCount, ContextChange, ToolResponse, UiResponse)

# Why others are not.
UNHEARD = {
    "timer_expired": "and a chat keeps no time. Set it from a tool.",
    "function": "which is asked about events, and a chat asks no functions. Set it from a tool.",
}
FOREIGN = "of which the chat knows nothing. Set it from a tool."


def refuse_misfits(
    pattern: Pattern, workflow: LoadedWorkflow, *, is_recorded: bool
) -> Conversation:
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
        if isinstance(source, DatabaseSource) and source.search_by == CHAT_ID:
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
    pattern: Pattern, toolkit: Toolkit, definition: VariableDefinition, trigger: Trigger
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
    if isinstance(trigger, AgentTextTrigger) and _ends(pattern, trigger):
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


def _ends(pattern: Pattern, trigger: AgentTextTrigger) -> bool:
    is_usual = "is_termination_msg" not in pattern.group_manager_args
    return is_usual and ends_chats(trigger)


# What message hooks give, as the classic line has messages.
RETURNED: Mapping[str, tuple[type, ...]] = {
    "process_all_messages_before_reply": (list,),
    "process_last_received_message": (str, list),
    "process_message_before_send": (str, dict),
}


def attach(pattern: Pattern, workflow: LoadedWorkflow, records: ChatRunStore | None = None) -> None:
    """Let a chat have the derived variables, the exposure and the hooks of a workflow, and be on
    record as a run of it.

    A variable changes while what changes it happens, so that whatever is decided after it sees the
    change. Whose turn it is, tools and models stay the chat's own; attach when the agents have
    their tools.

    Variables that the chat has no values of begin as in a run; those of the environment and of
    databases need `records`, which knows where these are.

    Raises:
        UsageError: the chat and the workflow do not fit; the message says why.
        MissingContext: a variable that is required has no value.
    """
    conversation = refuse_misfits(pattern, workflow, is_recorded=records is not None)
    functions = _functions(workflow, conversation)
    beginning = begin(pattern.context_variables, workflow, conversation.variables, records)
    keep = Unrecorded if records is None else recorded(records, workflow)
    chat = Chat(pattern.context_variables, conversation, workflow.hooks, beginning, begin=keep)
    for agent in pattern.agents:
        share(agent, pattern.context_variables)
        _register(agent, chat, conversation, functions)
    _follow(pattern, chat)


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
    # Before whatever else an agent does with the values of the moment.
    agent.hook_lists["update_agent_state"].insert(0, chat.take)
    if agent.name in conversation.variables.exposures:
        showing = Showing(agent.name, conversation.variables, chat)
        agent.register_hook("update_agent_state", showing.update)


def _functions(
    workflow: LoadedWorkflow, conversation: Conversation
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
        found[hook] = _checked(hook, function)
    return found


def _checked(hook: MessageHook, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a hook, which fails if it gives what a hook of its kind cannot.

    The chat would go on with what the hook was to change.
    """
    kinds = RETURNED.get(hook.hook_type)
    if kinds is None:
        return function

    @wraps(function)
    def called(*args: Any, **more: Any) -> Any:
        given = function(*args, **more)
        if not isinstance(given, kinds):
            raise TypeError(
                f"Message hook {hook.function!r} of {hook.filename} gave {preview(given)}. Let it "
                "return what is to take the place of what it is given."
            )
        return given

    return called


def _follow(pattern: Any, chat: Chat) -> None:
    """Be there when the chat is prepared, by whichever runner: who runs it is made then."""
    prepare = pattern.prepare_group_chat

    @wraps(prepare)
    def prepared(*args: Any, **more: Any) -> Any:
        made = prepare(*args, **more)
        (manager,) = (each for each in made if isinstance(each, GroupChatManager))
        everybody: list[Any] = manager.groupchat.agents
        for each in everybody:
            if isinstance(each, GroupToolExecutor):
                _listen(each, chat)
            elif each not in pattern.agents:
                each.hook_lists["update_agent_state"].insert(0, chat.leave)
                each.register_hook("process_message_before_send", chat.hear)
        _accompany(manager, chat, {agent.name for agent in pattern.agents})
        return made

    pattern.prepare_group_chat = prepared


def _listen(executor: Any, chat: Chat) -> None:
    """Tell the chat what tools give, and when the executor made something of it."""
    tools = executor.function_map.items()
    heard = {name: overheard(name, function, chat) for name, function in tools}
    executor.register_function(heard, silent_override=True)
    executor.register_hook("process_message_before_send", chat.pass_on)


def _accompany(manager: Any, chat: Chat, agents: Set[str]) -> None:
    """Tell the chat when it goes on, and how it ended; it is run in one of two ways."""
    run, run_async = GroupChatManager.run_chat, GroupChatManager.a_run_chat

    def going_on(messages: Any, sender: Any) -> AbstractContextManager[None]:
        said = [(each.get("name") or "", each) for each in manager.groupchat.messages]
        earlier = [*said, (sender.name, messages[-1])]
        return chat.going_on(manager, [(name, each, name in agents) for name, each in earlier])

    @wraps(run)
    def run_chat(recipient: Any, messages: Any, sender: Any, config: Any) -> Any:
        with going_on(messages, sender):
            return run(recipient, messages=messages, sender=sender, config=config)

    @wraps(run_async)
    async def a_run_chat(recipient: Any, messages: Any, sender: Any, config: Any) -> Any:
        with going_on(messages, sender):
            return await run_async(recipient, messages=messages, sender=sender, config=config)

    manager.replace_reply_func(run, run_chat)
    manager.replace_reply_func(run_async, a_run_chat)
