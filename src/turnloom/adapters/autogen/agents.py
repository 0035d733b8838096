"""Engine in which agents of AutoGen take turns."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

import msgspec
from anyio import from_thread, to_thread
from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables
from autogen.agentchat.group.group_tool_executor import GroupToolExecutor
from autogen.agentchat.group.reply_result import ReplyResult
from autogen.fast_depends.utils import is_coroutine_callable
from autogen.io.base import IOStream

from turnloom.adapters.autogen.asking import CallTransport, DeltaStream, ModelAsker
from turnloom.adapters.autogen.clients import Clients, Config
from turnloom.adapters.autogen.engine import without_retries
from turnloom.adapters.autogen.forms import (
    Response,
    messages_of,
    read_message,
    request_options,
    usage_of,
    with_stop,
)
from turnloom.adapters.autogen.mirrors import ContextVariablesMirror, RunVariables
from turnloom.adapters.autogen.tools import with_context
from turnloom.agents.logic.dialogues import Called, added_to, dialogue_of, exchanged, spelled
from turnloom.agents.logic.endings import Ending
from turnloom.agents.logic.outputs.forms import given_output
from turnloom.agents.spec import (
    Answer,
    Exchange,
    Patience,
    Task,
    ToolCall,
    ToolResult,
    Usage,
    use_ui_tool,
)
from turnloom.errors import EngineError, TurnloomError, UsageError
from turnloom.kernel.threads import in_thread, threads
from turnloom.kernel.values import as_data, error_text, preview
from turnloom.variables.spec import Context

# The name of the UI tool by which agents ask people.
INPUT = "human_input"


async def ask(prompt: str) -> str:
    """The answer of the run's user; the run waits for it."""
    answer = await use_ui_tool(INPUT, {"prompt": prompt})
    return answer if isinstance(answer, str) else as_data(answer)


class SilentStream:
    """An I/O stream that discards output: the log records what matters."""

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Discard the output."""

    def send(self, message: Any) -> None:
        """Discard the message."""


class LoopStream(SilentStream):
    """The I/O stream for code in the event loop."""

    async def input(self, prompt: str = "", *, password: bool = False) -> str:
        """The user's answer."""
        return await ask(prompt)


class ThreadStream(SilentStream):
    """The I/O stream for code in a thread."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """The user's answer."""
        return from_thread.run(ask, prompt)


# Keys of a configuration that do not belong to one model.
SHARED = ("config_list", "tools", "functions", "routing_method")

Schemas = Sequence[Mapping[str, Any]]


class Relay:
    """Replaces an agent's client. It adds the task's tools and output schema to each request.

    `usage` is the total of all requests. `model` is the model that answered last, and `ending` is
    how that answer ended.
    """

    def __init__(
        self, agent: Any, task: Task, names: Mapping[str, str], own: Schemas, asking: ModelAsker
    ) -> None:
        self.usage, self.model, self.ending = Usage(), "", Ending()
        self._asking = asking
        self._task = task
        self._connection: tuple[CallTransport, DeltaStream] | None = None
        if agent.llm_config:
            self._demands = request_options(task, names, own)
            self._clients = Clients(_configs(agent.llm_config, self._demands))
            agent.client = self
            for each in agent._reply_func_list:
                if each["reply_func"].__name__ == "a_generate_oai_reply":
                    each["reply_func"] = self.reply

    async def reply(
        self, agent: ConversableAgent, messages: Any, sender: Any, config: Any
    ) -> tuple[bool, Any]:
        """The agent's reply, made in a thread, since its client blocks."""

        def ask(transport: CallTransport, deltas: DeltaStream) -> tuple[bool, Any]:
            self._connection = transport, deltas
            return agent.generate_oai_reply(messages, sender)

        return await self._asking(self._task, self._clients.model, ask)

    def create(self, *, messages: Any, **more: Any) -> Response:
        """The model's response, in the format of the agent's own client.

        Raises:
            EngineError: the agent calls its model outside of a reply.
        """
        if self._connection is None:
            raise EngineError("The agent called its model outside of a reply. Use another agent.")
        response = self._clients.ask({"messages": messages, **self._demands}, *self._connection)
        self.usage, self.model = self.usage + usage_of(response), response.model
        self.ending = response.ending
        return response

    def extract_text_or_completion_object(self, response: Response) -> list[Any]:
        """The message of a response."""
        return [response.message]


def _configs(own: Any, demands: Config) -> list[Config]:
    """The configurations of an agent's models, with shared settings merged in."""
    common = {key: value for key, value in own.model_dump().items() if key not in SHARED}
    found = [
        without_retries(common | each.model_dump(exclude_none=True)) for each in own.config_list
    ]
    if any("response_format" in each for each in found):
        demands["stream"] = False  # a partial output is of no use
    return found


def run_in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A synchronous function as an async one that runs in a thread and may ask people."""

    @wraps(function)
    async def called(*args: Any, **arguments: Any) -> Any:
        with IOStream.set_default(ThreadStream()):
            return await in_thread(partial(function, *args, **arguments))

    return called


def unblock_loop(agent: Any) -> None:
    """Move an agent's synchronous reply functions to threads."""
    functions = [each["reply_func"] for each in agent._reply_func_list]
    named = {function.__name__ for function in functions}
    for function in functions:
        if not is_coroutine_callable(function) and f"a_{function.__name__}" not in named:
            agent.replace_reply_func(function, run_in_thread(function))


class AgentTools:
    """An agent's own tools, called one after the other, with the run's variables.

    `schemas` are their schemas for the model.
    """

    def __init__(self, agent: Any, variables: Context | None) -> None:
        self._agent = agent.name
        self._variables = RunVariables(variables) if variables is not None else None
        if self._variables is not None:
            _add_missing(agent.context_variables, self._variables)
            agent.context_variables = ContextVariablesMirror(self._variables)
        self._executor: Any = GroupToolExecutor()
        self._executor.context_variables = agent.context_variables
        self._executor.register_function(agent.function_map)
        shared = [with_context(tool, agent.context_variables) for tool in agent.tools]
        for tool in shared:
            self._executor.register_for_execution(serialize=False, silent_override=True)(tool)
        own = {name: self._called(each) for name, each in self._executor.function_map.items()}
        self._executor.register_function(own, silent_override=True)
        schemas = {tool.name: tool.tool_schema for tool in shared}
        offered: list[dict[str, Any]] = agent.llm_config.tools if agent.llm_config else []
        self.schemas = [schemas.get(each["function"]["name"]) or each for each in offered]

    def __contains__(self, name: str) -> bool:
        return name in self._executor.function_map

    async def call(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """The results of tool calls; errors are results too.

        Raises:
            EngineError: a tool selects the next speaker.
        """
        (message,) = messages_of(Called(call.id, call.tool, call.arguments) for call in calls)
        given = await self._executor.a_generate_reply([message])
        if self._executor.has_next_target():
            target = self._executor.get_next_target()
            raise EngineError(
                f"A tool of agent {self._agent!r} hands over to {target.display_name()!r}, but the "
                "workflow decides the next turn. Write a variable in the tool, and declare a "
                "handoff that depends on it."
            )
        return tuple(ToolResult(each["content"]) for each in given["tool_responses"])

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function = function if iscoroutinefunction(function) else run_in_thread(function)

        @wraps(function)
        async def called(*args: Any, **arguments: Any) -> Any:
            try:
                given = await function(*args, **arguments)
            finally:
                if self._variables is not None:
                    self._variables.settle()
            if isinstance(given, ReplyResult) and given.context_variables is not None:
                self._executor.context_variables.update(given.context_variables.to_dict())
            return given

        return called


def _add_missing(own: ContextVariables, variables: RunVariables) -> None:
    """Set variables that the agent was created with, unless the run has them."""
    for name, value in own.items():
        if name not in variables:
            variables[name] = value


class Instructions:
    """Combines an agent's own system message with the task's."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._system_message: str | None = None
        self.own: list[str] = []

    def update(self, agent: ConversableAgent, messages: Any) -> None:
        """Append the task's instructions to the agent's own."""
        if agent.system_message != self._system_message:  # its own, at first or after a change
            self.own.append(agent.system_message)
        self._system_message = "\n\n".join(filter(None, (self.own[-1], self._system)))
        agent.update_system_message(self._system_message)


# The name of the sender to whom an agent replies.
USER = "user"


class ConversableAgentEngine:
    """Lets an agent take the turn; `make` creates one for each call.

    The agent has its own model, instructions and tools. Its `ContextVariables` are the run's
    variables, and its requests for input become questions of the run. With `keep_open`, connections
    stay open between calls, until `aclose`.
    """

    takes_variables = True

    def __init__(
        self,
        make: Callable[[], ConversableAgent],
        *,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._make = make
        self._asking = ModelAsker(patience or Patience(), keep_open)

    async def __call__(self, task: Task) -> Answer:
        """The agent's answer to a task, or its calls of the task's tools.

        Raises:
            EngineError: the agent fails; the message has the library's reason.
        """
        try:
            turn = await to_thread.run_sync(
                AgentTurn, self._make, task, self._asking, limiter=threads()
            )
            with IOStream.set_default(LoopStream()):
                return await turn.take()
        except TurnloomError:
            raise
        except Exception as error:
            name = type(error).__name__
            raise EngineError(
                f"The agent of {task.agent!r} failed: {name}: {error_text(error)}"
            ) from error

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._asking.aclose()


class AgentTurn:
    """One call of an agent, until it answers or calls tools of the task."""

    def __init__(
        self, make: Callable[[], ConversableAgent], task: Task, asking: ModelAsker
    ) -> None:
        agent: Any = make()
        _check_agent(agent)
        self._agent = agent
        self._task = task
        self._tools = AgentTools(agent, task.variables)
        self._names = spelled(tool.name for tool in task.tools)
        self._check_tool_names()
        self._instructions = Instructions(task.system)
        agent.register_hook("update_agent_state", self._instructions.update)
        self._relay = Relay(agent, task, self._names, self._tools.schemas, asking=asking)
        unblock_loop(agent)
        self._sender = ConversableAgent(USER, llm_config=False, human_input_mode="NEVER")

    async def take(self) -> Answer:
        """The agent's answer, after calls of its own tools."""
        parts = dialogue_of(self._task, self._names)
        done: list[Exchange] = []
        while True:
            shown = len(done)
            reply = await self._agent.a_generate_reply(messages_of(parts), self._sender)
            text, calls = read_message(reply, self._names)
            own = tuple(call for call in calls if call.tool in self._tools)
            others = tuple(call for call in calls if call.tool not in self._tools)
            if own:
                results = await self._tools.call(own)
                done.append(Exchange("" if others else text, own, results))
            if others or not own:
                answer = self._answer(text, others, done[:shown])
                return msgspec.structs.replace(answer, before=tuple(done))
            parts += exchanged(done[-1], len(self._task.exchanges) + shown, {})
            self._task.say(None)

    def _answer(self, text: str, calls: tuple[ToolCall, ...], shown: Sequence[Exchange]) -> Answer:
        relay, task = self._relay, self._task
        output = None if calls or task.output is None else given_output(task.output, text)
        own = (*self._instructions.own, *map(as_data, self._tools.schemas)) if relay.model else ()
        given = [str(result.value) for each in shown for result in each.results]
        added = (*own, *added_to(task), *given)
        answer = Answer(text, relay.usage, calls, output, model=relay.model, added=added)
        return with_stop(answer, relay.ending) if relay.model else answer

    def _check_tool_names(self) -> None:
        for name, plain in self._names.items():
            if plain in self._tools:
                raise UsageError(
                    f"Tool {name!r} exists both in the workflow and in agent {self._agent.name!r}. "
                    "Rename one of them."
                )


def _check_agent(agent: Any) -> None:
    """Refuse an agent with features that only work in a group chat.

    Raises:
        UsageError: it has handoffs, guardrails, or tools of the old function protocol.
    """
    if not isinstance(agent, ConversableAgent):
        raise UsageError(f"`make` returned {preview(agent)}. Return a `ConversableAgent`.")
    handoffs = agent.handoffs
    if handoffs.llm_conditions or handoffs.context_conditions or handoffs.after_works:
        raise UsageError(
            f"Agent {agent.name!r} has its own handoffs, but the workflow decides the next turn. "
            "Declare them in the workflow."
        )
    if agent.input_guardrails or agent.output_guardrails:
        raise UsageError(
            f"Agent {agent.name!r} has guardrails, which only work in a group chat. Use a hook."
        )
    if agent.llm_config and agent.llm_config.functions:
        raise UsageError(
            f'Agent {agent.name!r} has functions of `api_style="function"`. Register them as tools.'
        )
