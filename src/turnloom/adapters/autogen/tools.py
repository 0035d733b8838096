"""The tools of a group chat: what they are given, and what becomes known of what they give."""

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

# The parameter by which a tool of a chat is given the variables.
CONTEXT = "context_variables"

Function = Callable[..., Any]


class Audience(Protocol):
    """Who is told what tools give."""

    def returned(self, tool: str, arguments: Json, result: Json) -> None:
        """A tool gave something."""
        ...

    def failed(self, tool: str, arguments: Json, error: Exception) -> None:
        """A tool failed."""
        ...


def share(agent: ConversableAgent, context: ContextVariables) -> None:
    """Give an agent's tools the chat's own variables; of themselves they would get a copy."""
    for tool in agent.tools:
        shared = sharing(tool, context)
        if shared is not tool:
            agent.remove_tool_for_llm(tool)
            agent.register_for_llm()(shared)


def sharing(tool: Tool, context: ContextVariables) -> Tool:
    """A tool that is given these variables, if it takes any; else the tool itself."""
    form = signature(tool.func)
    if CONTEXT not in form.parameters:
        return tool
    if iscoroutinefunction(tool.func):

        async def asked(**arguments: Any) -> Any:
            return await tool.func(**arguments, **{CONTEXT: context})

        function: Any = asked
    else:

        def called(**arguments: Any) -> Any:
            return tool.func(**arguments, **{CONTEXT: context})

        function = called
    rest = [each for name, each in form.parameters.items() if name != CONTEXT]
    function.__signature__ = form.replace(parameters=rest)
    return Tool(name=tool.name, description=tool.description, func_or_tool=function)


def overheard(name: str, function: Function, audience: Audience) -> Function:
    """A tool as the chat calls it, of which an audience is told what comes of it."""

    async def awaited(given: Awaitable[Any], arguments: Any) -> Any:
        try:
            return _tell(name, arguments, await given, audience)
        except Exception as error:
            audience.failed(name, _plain(arguments), error)
            raise

    if iscoroutinefunction(function):

        @wraps(function)
        async def asked(*args: Any, **arguments: Any) -> Any:
            return await awaited(function(*args, **arguments), arguments)

        return asked

    @wraps(function)
    def called(*args: Any, **arguments: Any) -> Any:
        try:
            given = function(*args, **arguments)
        except Exception as error:
            audience.failed(name, _plain(arguments), error)
            raise
        if isawaitable(given):
            return awaited(given, arguments)
        return _tell(name, arguments, given, audience)

    return called


def _tell(name: str, arguments: Any, given: Any, audience: Audience) -> Any:
    """Tell what a tool gives the model to read; a handoff is no tool."""
    if not isinstance(given, TransitionTarget):
        result = given.message if isinstance(given, ReplyResult) else given
        audience.returned(name, _plain(arguments), _plain(result))
    return given


def _plain(value: Any) -> Json:
    return to_jsonable_python(value, fallback=str)
