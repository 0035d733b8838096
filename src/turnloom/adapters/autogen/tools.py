"""The tools of a group chat: their context variables, and reports of their results."""

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import isawaitable, iscoroutinefunction, signature
from typing import Any, Protocol

from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables
from autogen.agentchat.group.reply_result import ReplyResult
from autogen.agentchat.group.targets.transition_target import TransitionTarget
from autogen.tools import Tool
from pydantic_core import to_jsonable_python

from turnloom.kernel.values import Json

# The parameter by which a tool of a chat receives the variables.
CONTEXT = "context_variables"

Function = Callable[..., Any]


class ToolObserver(Protocol):
    """Receives the results of tools."""

    def returned(self, tool: str, arguments: Json, result: Json) -> None:
        """A tool returned a result."""
        ...

    def failed(self, tool: str, arguments: Json, error: Exception) -> None:
        """A tool failed."""
        ...


def share_context(agent: ConversableAgent, context: ContextVariables) -> None:
    """Give an agent's tools the chat's variables; by default, AutoGen gives them a copy."""
    for tool in agent.tools:
        shared = with_context(tool, context)
        if shared is not tool:
            agent.remove_tool_for_llm(tool)
            agent.register_for_llm()(shared)


def with_context(tool: Tool, context: ContextVariables) -> Tool:
    """A tool bound to these variables, if it has a parameter for them; else the tool itself."""
    form = signature(tool.func)
    if CONTEXT not in form.parameters:
        return tool
    if iscoroutinefunction(tool.func):

        async def call_async(**arguments: Any) -> Any:
            return await tool.func(**arguments, **{CONTEXT: context})

        function: Any = call_async
    else:

        def call(**arguments: Any) -> Any:
            return tool.func(**arguments, **{CONTEXT: context})

        function = call
    rest = [each for name, each in form.parameters.items() if name != CONTEXT]
    function.__signature__ = form.replace(parameters=rest)
    return Tool(name=tool.name, description=tool.description, func_or_tool=function)


def observed(name: str, function: Function, observer: ToolObserver) -> Function:
    """A tool that reports its results and failures to an observer."""

    async def awaited(given: Awaitable[Any], arguments: Any) -> Any:
        try:
            return _report(name, arguments, await given, observer)
        except Exception as error:
            observer.failed(name, _plain(arguments), error)
            raise

    if iscoroutinefunction(function):

        @wraps(function)
        async def call_async(*args: Any, **arguments: Any) -> Any:
            return await awaited(function(*args, **arguments), arguments)

        return call_async

    @wraps(function)
    def call(*args: Any, **arguments: Any) -> Any:
        try:
            given = function(*args, **arguments)
        except Exception as error:
            observer.failed(name, _plain(arguments), error)
            raise
        if isawaitable(given):
            return awaited(given, arguments)
        return _report(name, arguments, given, observer)

    return call


def _report(name: str, arguments: Any, given: Any, observer: ToolObserver) -> Any:
    """Report a tool's result, unless it is a handoff."""
    if not isinstance(given, TransitionTarget):
        result = given.message if isinstance(given, ReplyResult) else given
        observer.returned(name, _plain(arguments), _plain(result))
    return given


def _plain(value: Any) -> Json:
    return to_jsonable_python(value, fallback=str)
