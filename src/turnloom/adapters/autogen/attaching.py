"""Attach a workflow folder's variables, exposure and hooks to a group chat."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from autogen import ConversableAgent, GroupChatManager
from autogen.agentchat.group.group_tool_executor import GroupToolExecutor
from autogen.agentchat.group.patterns.pattern import Pattern

from turnloom.adapters.autogen.chats import Chat, ExposureHook
from turnloom.adapters.autogen.initial_values import (
    has_external_source,
    initial_values,
    missing_variables,
)
from turnloom.adapters.autogen.recorders import ChatRunStore, NoRecord, recorded
from turnloom.adapters.autogen.tools import observed, share_context
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

# The lookup key that does not exist before a chat begins.
CHAT_ID = "chat_id"

# The triggers that a chat supports.
SUPPORTED = (AgentTextTrigger, AgentTurnCount, ContextChange, ToolResponse, UiResponse)

# Why other triggers are not supported.
UNSUPPORTED = {
    "timer_expired": "but a chat has no timers. Set the variable in a tool.",
    "function": "but a chat does not call trigger functions. Set the variable in a tool.",
    "user_text": "but a chat reads the texts of agents only. Set the variable in a tool.",
}
UNKNOWN = "which does not exist in a chat. Set the variable in a tool."


def check_fit(pattern: Pattern, workflow: LoadedWorkflow, *, is_recorded: bool) -> Conversation:
    """The conversation of a workflow that fits the chat.

    Raises:
        UsageError: the workflow does not fit.
    """
    deciding: Any = workflow.workflow
    conversation = getattr(deciding, "conversation", None)
    if not isinstance(conversation, Conversation):
        raise UsageError(f"{deciding.name!r} is not a conversation. Attach a workflow folder.")
    problems = [
        *_misfit_problems(pattern, conversation),
        *_missing_values(pattern, conversation, is_recorded),
    ]
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"Workflow {conversation.name!r} does not fit the chat:\n{lines}")
    return conversation


def _misfit_problems(pattern: Pattern, conversation: Conversation) -> Iterator[str]:
    there = {agent.name for agent in pattern.agents}
    for name in sorted(conversation.agents.keys() - there):
        yield f"The chat has no agent {name!r}. Add it, or remove it from the workflow."
    for agent in pattern.agents:
        yield from _reuse_problems(agent)
    for definition in conversation.variables.definitions.values():
        if isinstance(definition.source, Derived):
            for trigger in definition.source.triggers:
                yield from _trigger_problems(pattern, conversation.toolkit, definition, trigger)


def _missing_values(
    pattern: Pattern, conversation: Conversation, is_recorded: bool
) -> Iterator[str]:
    """Why variables without values in the chat cannot be initialized."""
    for name, definition in missing_variables(
        pattern.context_variables, conversation.variables
    ).items():
        source = definition.source
        if isinstance(source, DatabaseSource) and CHAT_ID in source.ids.values():
            yield (
                f"Variable {name!r} is looked up by {CHAT_ID!r}, which does not exist before the "
                "chat begins. Set its value in the chat."
            )
        elif has_external_source(definition) and not is_recorded:
            yield (
                f"Variable {name!r} has an external source ({source.type}), and no value in the "
                "chat. Attach with `Records`, or set its value in the chat."
            )


def _reuse_problems(agent: ConversableAgent) -> Iterator[str]:
    """Why an agent cannot be reused: its state would leak into the next run."""
    hooks = agent.hook_lists["process_message_before_send"]
    is_attached = any(isinstance(getattr(hook, "__self__", None), Chat) for hook in hooks)
    if is_attached or any(agent.chat_messages.values()):
        yield (
            f"Agent {agent.name!r} was in a chat before, and still has its tools and messages. "
            "Create new agents for each run."
        )


def _trigger_problems(
    pattern: Pattern, toolkit: Toolkit, definition: VariableDefinition, trigger: Trigger
) -> Iterator[str]:
    """Why a trigger would never fire."""
    about = f"Variable {definition.name!r}"
    if not isinstance(trigger, SUPPORTED):
        yield f"{about} has a trigger {trigger.type!r}, {UNSUPPORTED.get(trigger.type, UNKNOWN)}"
    if isinstance(trigger, UiResponse) and trigger.apply == "auto":
        yield (
            f"{about} takes the answer to tool {trigger.tool!r}, but only the tool itself sees it "
            "in a chat. Set the variable in the tool, and remove `apply`."
        )
    if isinstance(trigger, (ToolResponse, UiResponse)):
        tool = toolkit.called(trigger.tool)
        if tool not in _tools(pattern):
            yield (
                f"{about} waits for tool {tool!r}, which no agent of the chat has. Register it "
                "with an agent before you attach."
            )
    if isinstance(trigger, AgentTextTrigger) and _ends(pattern, trigger):
        yield (
            f"{about} waits for {ENDING!r}, which ends the chat before variables change. Choose "
            "another word, or set your own `is_termination_msg` for the manager and the agents."
        )


def _tools(pattern: Pattern) -> set[str]:
    """The tools of the chat's agents."""
    return {
        name
        for agent in pattern.agents
        for name in (*agent.function_map, *(tool.name for tool in agent.tools))
    }


def _ends(pattern: Pattern, trigger: AgentTextTrigger) -> bool:
    is_usual = "is_termination_msg" not in pattern.group_manager_args
    return is_usual and ends_chats(trigger)


# The return types of message hooks in AutoGen.
RETURNED: Mapping[str, tuple[type, ...]] = {
    "process_all_messages_before_reply": (list,),
    "process_last_received_message": (str, list),
    "process_message_before_send": (str, dict),
}


def attach(pattern: Pattern, workflow: LoadedWorkflow, records: ChatRunStore | None = None) -> None:
    """Attach a workflow's derived variables, exposure and hooks to a group chat, and record it as a
    run.

    A variable changes as soon as its trigger fires, so that all later decisions see the change.
    Speaker selection, tools and models remain the chat's own. Attach after the agents have their
    tools.

    Variables without values in the chat are initialized as in a run. Those from the environment or
    from databases need `records`, which knows how to load them.

    Raises:
        UsageError: the chat and the workflow do not fit; the message says why.
        MissingContext: a required variable has no value.
    """
    conversation = check_fit(pattern, workflow, is_recorded=records is not None)
    functions = _functions(workflow, conversation)
    initial = initial_values(pattern.context_variables, workflow, conversation.variables, records)
    keep = NoRecord if records is None else recorded(records, workflow)
    chat = Chat(pattern.context_variables, conversation, workflow.hooks, initial, begin=keep)
    for agent in pattern.agents:
        share_context(agent, pattern.context_variables)
        _register(agent, chat, conversation, functions)
    _attach_on_prepare(pattern, chat)


def _register(
    agent: Any,  # AutoGen does not type its hooks
    chat: Chat,
    conversation: Conversation,
    functions: Mapping[MessageHook, Callable[..., Any]],
) -> None:
    """Register the folder's hooks first, so that triggers see the message as the hooks leave it."""
    for hook, function in functions.items():
        if hook.goes_with(agent.name):
            agent.register_hook(hook.hook_type, function)
    agent.register_hook("process_message_before_send", chat.say)
    # Before the agent's other hooks, which use the current values.
    agent.hook_lists["update_agent_state"].insert(0, chat.begin_turn)
    if agent.name in conversation.variables.exposures:
        showing = ExposureHook(agent.name, conversation.variables, chat)
        agent.register_hook("update_agent_state", showing.update)


def _functions(
    workflow: LoadedWorkflow, conversation: Conversation
) -> dict[MessageHook, Callable[..., Any]]:
    """The functions of message hooks, which must be synchronous."""
    modules: Any = workflow.modules
    found: dict[MessageHook, Callable[..., Any]] = {}
    for hook in conversation.message_hooks:
        function = modules.function(hook.filename, hook.function)
        if inspect.iscoroutinefunction(function):
            raise UsageError(
                f"Message hook {hook.function!r} in {hook.filename} is `async`, but AutoGen does "
                "not await hooks. Make it a plain function."
            )
        found[hook] = _checked(hook, function)
    return found


def _checked(hook: MessageHook, function: Callable[..., Any]) -> Callable[..., Any]:
    """A hook's function that raises on a result of the wrong type.

    Otherwise the chat would continue with the unchanged message.
    """
    kinds = RETURNED.get(hook.hook_type)
    if kinds is None:
        return function

    @wraps(function)
    def called(*args: Any, **more: Any) -> Any:
        given = function(*args, **more)
        if not isinstance(given, kinds):
            raise TypeError(
                f"Message hook {hook.function!r} in {hook.filename} returned {preview(given)}. "
                "Return the replacement of its argument."
            )
        return given

    return called


def _attach_on_prepare(pattern: Any, chat: Chat) -> None:
    """Attach to the manager and executor when any runner prepares the chat, since they are created
    then."""
    prepare = pattern.prepare_group_chat

    @wraps(prepare)
    def prepared(*args: Any, **more: Any) -> Any:
        parts = prepare(*args, **more)
        (manager,) = (each for each in parts if isinstance(each, GroupChatManager))
        agents: list[Any] = manager.groupchat.agents
        for each in agents:
            if isinstance(each, GroupToolExecutor):
                _observe_tools(each, chat)
            elif each not in pattern.agents:
                each.hook_lists["update_agent_state"].insert(0, chat.end_turn)
                each.register_hook("process_message_before_send", chat.note_message)
        _observe_run(manager, chat, {agent.name for agent in pattern.agents})
        return parts

    pattern.prepare_group_chat = prepared


def _observe_tools(executor: Any, chat: Chat) -> None:
    """Report tool results to the chat, and check for writes after the executor's message."""
    tools = executor.function_map.items()
    observed_tools = {name: observed(name, function, chat) for name, function in tools}
    executor.register_function(observed_tools, silent_override=True)
    executor.register_hook("process_message_before_send", chat.check_writes_hook)


def _observe_run(manager: Any, chat: Chat, agents: Set[str]) -> None:
    """Report the start and the end of the chat, for synchronous and async runs."""
    run, run_async = GroupChatManager.run_chat, GroupChatManager.a_run_chat

    def running(messages: Any, sender: Any) -> AbstractContextManager[None]:
        history = [(each.get("name") or "", each) for each in manager.groupchat.messages]
        earlier = [*history, (sender.name, messages[-1])]
        return chat.running(manager, [(name, each, name in agents) for name, each in earlier])

    @wraps(run)
    def run_chat(recipient: Any, messages: Any, sender: Any, config: Any) -> Any:
        with running(messages, sender):
            return run(recipient, messages=messages, sender=sender, config=config)

    @wraps(run_async)
    async def a_run_chat(recipient: Any, messages: Any, sender: Any, config: Any) -> Any:
        with running(messages, sender):
            return await run_async(recipient, messages=messages, sender=sender, config=config)

    manager.replace_reply_func(run, run_chat)
    manager.replace_reply_func(run_async, a_run_chat)
