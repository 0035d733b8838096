"""One turn of an agent of the classic line, with tools of its own and variables of the run."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables
from autogen.agentchat.group.group_tool_executor import GroupToolExecutor
from autogen.agentchat.group.reply_result import ReplyResult
from autogen.fast_depends.utils import is_coroutine_callable
from autogen.io.base import IOStream

from turnloom.adapters.autogen.forms import messages_of
from turnloom.adapters.autogen.mirrors import Lent, Mirror
from turnloom.adapters.autogen.people import InThread
from turnloom.adapters.autogen.tools import sharing
from turnloom.agents.logic.dialogues import Called
from turnloom.agents.spec import ToolCall, ToolResult
from turnloom.errors import EngineError
from turnloom.kernel import threads
from turnloom.variables.spec import Context


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function of the library or its user, as something to await; it may ask people."""

    @wraps(function)
    async def called(*args: Any, **arguments: Any) -> Any:
        with IOStream.set_default(InThread()):
            return await threads.in_thread(partial(function, *args, **arguments))

    return called


def free_loop(agent: Any) -> None:
    """Let what an agent does without awaiting leave the event loop alone."""
    functions = [each["reply_func"] for each in agent._reply_func_list]
    named = {function.__name__ for function in functions}
    for function in functions:
        if not is_coroutine_callable(function) and f"a_{function.__name__}" not in named:
            agent.replace_reply_func(function, in_thread(function))


class Tools:
    """An agent's own tools, called one after the other, with the variables of the run.

    `schemas` tell the model of them.
    """

    def __init__(self, agent: Any, variables: Context | None) -> None:
        self._agent = agent.name
        self._lent = Lent(variables) if variables is not None else None
        if self._lent is not None:
            _begin(agent.context_variables, self._lent)
            agent.context_variables = Mirror(self._lent)
        self._executor: Any = GroupToolExecutor()
        self._executor.context_variables = agent.context_variables
        self._executor.register_function(agent.function_map)
        shared = [sharing(tool, agent.context_variables) for tool in agent.tools]
        for tool in shared:
            self._executor.register_for_execution(serialize=False, silent_override=True)(tool)
        own = {name: self._called(each) for name, each in self._executor.function_map.items()}
        self._executor.register_function(own, silent_override=True)
        told = {tool.name: tool.tool_schema for tool in shared}
        offered: list[dict[str, Any]] = agent.llm_config.tools if agent.llm_config else []
        self.schemas = [told.get(each["function"]["name"]) or each for each in offered]

    def __contains__(self, name: str) -> bool:
        return name in self._executor.function_map

    async def call(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """What the tools give; one that fails says why.

        Raises:
            EngineError: one of them decides who is next.
        """
        (message,) = messages_of(Called(call.id, call.tool, call.arguments) for call in calls)
        given = await self._executor.a_generate_reply([message])
        if self._executor.has_next_target():
            target = self._executor.get_next_target()
            raise EngineError(
                f"A tool of agent {self._agent!r} hands over to {target.display_name()!r}, and "
                "whose turn it is, is decided by the workflow. Let the tool write a variable, and "
                "declare a handoff that depends on it."
            )
        return tuple(ToolResult(each["content"]) for each in given["tool_responses"])

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function = function if iscoroutinefunction(function) else in_thread(function)

        @wraps(function)
        async def called(*args: Any, **arguments: Any) -> Any:
            try:
                given = await function(*args, **arguments)
            finally:
                if self._lent is not None:
                    self._lent.settle()
            if isinstance(given, ReplyResult) and given.context_variables is not None:
                self._executor.context_variables.update(given.context_variables.to_dict())
            return given

        return called


def _begin(own: ContextVariables, lent: Lent) -> None:
    """Let values that an agent was made with begin in the run, unless it has them."""
    for name, value in own.items():
        if name not in lent:
            lent[name] = value


class Instructions:
    """What an agent is told: its own instructions of the moment, and behind them the task's."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._told: str | None = None
        self.own: list[str] = []

    def update(self, agent: ConversableAgent, messages: Any) -> None:
        """Tell the agent the task's instructions beside its own."""
        if agent.system_message != self._told:  # which it is by itself at first, or was told since
            self.own.append(agent.system_message)
        self._told = "\n\n".join(filter(None, (self.own[-1], self._system)))
        agent.update_system_message(self._told)
