"""An engine whose turns are taken by agents of AG2's classic line."""

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

from turnloom.adapters.autogen.asking import CallTransport, Hearing, ModelAsker
from turnloom.adapters.autogen.clients import Clients, Config
from turnloom.adapters.autogen.engine import alone
from turnloom.adapters.autogen.forms import (
    Response,
    demands_of,
    ended,
    messages_of,
    read_message,
    usage_of,
)
from turnloom.adapters.autogen.mirrors import ContextVariablesMirror, LentVariables
from turnloom.adapters.autogen.tools import sharing
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
from turnloom.kernel.values import as_data, preview, said
from turnloom.variables.spec import Context

# What asks, when an agent wants input: the name of its questions.
INPUT = "human_input"


async def ask(prompt: str) -> str:
    """What the person answers that the run belongs to; the run waits for it."""
    answer = await use_ui_tool(INPUT, {"prompt": prompt})
    return answer if isinstance(answer, str) else as_data(answer)


class Silent:
    """A stream that nobody reads: what is to be known of a call is on record."""

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Print nothing."""

    def send(self, message: Any) -> None:
        """Tell nobody."""


class InLoop(Silent):
    """The stream of what runs in the event loop."""

    async def input(self, prompt: str = "", *, password: bool = False) -> str:
        """What the person answers."""
        return await ask(prompt)


class InThread(Silent):
    """The stream of what runs in a thread of the call."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """What the person answers."""
        return from_thread.run(ask, prompt)


# What configurations hold that is not for one model: tools are the request's.
SHARED = ("config_list", "tools", "functions", "routing_method")

Schemas = Sequence[Mapping[str, Any]]


class Relay:
    """Stands where an agent has its client: the task's tools and form go with each request.

    `usage` is that of all requests, `model` who answered last, if one was made, and `ending` how
    that answer ended.
    """

    def __init__(
        self, agent: Any, task: Task, names: Mapping[str, str], own: Schemas, asking: ModelAsker
    ) -> None:
        self.usage, self.model, self.ending = Usage(), "", Ending()
        self._asking = asking
        self._task = task
        self._line: tuple[CallTransport, Hearing] | None = None
        if agent.llm_config:
            self._demands = demands_of(task, names, own)
            self._clients = Clients(_configs(agent.llm_config, self._demands))
            agent.client = self
            for each in agent._reply_func_list:
                if each["reply_func"].__name__ == "a_generate_oai_reply":
                    each["reply_func"] = self.reply

    async def reply(
        self, agent: ConversableAgent, messages: Any, sender: Any, config: Any
    ) -> tuple[bool, Any]:
        """What the agent makes of its model's answer: in a thread, as it waits for it."""

        def ask(way: CallTransport, hearing: Hearing) -> tuple[bool, Any]:
            self._line = way, hearing
            return agent.generate_oai_reply(messages, sender)

        return await self._asking(self._task, self._clients.model, ask)

    def create(self, *, messages: Any, **more: Any) -> Response:
        """What the model answers, as the agent's own client would give it.

        Raises:
            EngineError: the agent asks although no reply is wanted of it.
        """
        if self._line is None:
            raise EngineError("The agent asked its model outside of a reply. Give it another one.")
        response = self._clients.ask({"messages": messages, **self._demands}, *self._line)
        self.usage, self.model = self.usage + usage_of(response), response.model
        self.ending = response.ending
        return response

    def extract_text_or_completion_object(self, response: Response) -> list[Any]:
        """The message of an answer."""
        return [response.message]


def _configs(own: Any, demands: Config) -> list[Config]:
    """The configurations of an agent's models, each whole."""
    common = {key: value for key, value in own.model_dump().items() if key not in SHARED}
    found = [alone(common | each.model_dump(exclude_none=True)) for each in own.config_list]
    if any("response_format" in each for each in found):
        demands["stream"] = False  # nobody reads half an output
    return found


def awaited_in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function of the library or its user, as something to await; it may ask people."""

    @wraps(function)
    async def called(*args: Any, **arguments: Any) -> Any:
        with IOStream.set_default(InThread()):
            return await in_thread(partial(function, *args, **arguments))

    return called


def free_loop(agent: Any) -> None:
    """Let what an agent does without awaiting leave the event loop alone."""
    functions = [each["reply_func"] for each in agent._reply_func_list]
    named = {function.__name__ for function in functions}
    for function in functions:
        if not is_coroutine_callable(function) and f"a_{function.__name__}" not in named:
            agent.replace_reply_func(function, awaited_in_thread(function))


class AgentTools:
    """An agent's own tools, called one after the other, with the variables of the run.

    `schemas` tell the model of them.
    """

    def __init__(self, agent: Any, variables: Context | None) -> None:
        self._agent = agent.name
        self._lent = LentVariables(variables) if variables is not None else None
        if self._lent is not None:
            _begin(agent.context_variables, self._lent)
            agent.context_variables = ContextVariablesMirror(self._lent)
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
        function = function if iscoroutinefunction(function) else awaited_in_thread(function)

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


def _begin(own: ContextVariables, lent: LentVariables) -> None:
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


# Whose word an agent answers to.
USER = "user"


class ConversableAgentEngine:
    """Lets an agent take the turn that `make` gives, anew for each call.

    It has its own model, instructions and tools; its `ContextVariables` are those of the run, and
    what it asks people is asked by the run. With `keep_open`, connections stay open between calls,
    until `aclose`.
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
        """What the agent says to the task, or which of the task's tools it wants called.

        Raises:
            EngineError: it does not answer; the message says why, in the library's words.
        """
        try:
            turn = await to_thread.run_sync(
                AgentTurn, self._make, task, self._asking, limiter=threads()
            )
            with IOStream.set_default(InLoop()):
                return await turn.take()
        except TurnloomError:
            raise
        except Exception as error:
            name = type(error).__name__
            raise EngineError(
                f"The agent of {task.agent!r} failed: {name}: {said(error)}"
            ) from error

    async def aclose(self) -> None:
        """Part from the providers."""
        await self._asking.aclose()


class AgentTurn:
    """A call of an agent, which goes on until it says something or calls tools of the task."""

    def __init__(
        self, make: Callable[[], ConversableAgent], task: Task, asking: ModelAsker
    ) -> None:
        agent: Any = make()
        _refuse_unheard(agent)
        self._agent = agent
        self._task = task
        self._tools = AgentTools(agent, task.variables)
        self._names = spelled(tool.name for tool in task.tools)
        self._refuse_doubles()
        self._instructions = Instructions(task.system)
        agent.register_hook("update_agent_state", self._instructions.update)
        self._relay = Relay(agent, task, self._names, self._tools.schemas, asking=asking)
        free_loop(agent)
        self._sender = ConversableAgent(USER, llm_config=False, human_input_mode="NEVER")

    async def take(self) -> Answer:
        """What the agent answers, after its own tools were called."""
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
                answer = self._answered(text, others, done[:shown])
                return msgspec.structs.replace(answer, before=tuple(done))
            parts += exchanged(done[-1], len(self._task.exchanges) + shown, {})
            self._task.say(None)

    def _answered(
        self, text: str, calls: tuple[ToolCall, ...], shown: Sequence[Exchange]
    ) -> Answer:
        relay, task = self._relay, self._task
        output = None if calls or task.output is None else given_output(task.output, text)
        own = (*self._instructions.own, *map(as_data, self._tools.schemas)) if relay.model else ()
        given = [str(result.value) for each in shown for result in each.results]
        added = (*own, *added_to(task), *given)
        answer = Answer(text, relay.usage, calls, output, model=relay.model, added=added)
        return ended(answer, relay.ending) if relay.model else answer

    def _refuse_doubles(self) -> None:
        for name, plain in self._names.items():
            if plain in self._tools:
                raise UsageError(
                    f"Tool {name!r} is offered by the workflow, and agent {self._agent.name!r} has "
                    "one of that name. Rename one of them."
                )


def _refuse_unheard(agent: Any) -> None:
    """Refuse an agent with something that only a group chat would do.

    Raises:
        UsageError: it has handoffs, guardrails, or functions of the protocol before tools.
    """
    if not isinstance(agent, ConversableAgent):
        raise UsageError(f"An agent is to take the turn, and `make` gave {preview(agent)}.")
    handoffs = agent.handoffs
    if handoffs.llm_conditions or handoffs.context_conditions or handoffs.after_works:
        raise UsageError(
            f"Agent {agent.name!r} has handoffs of its own, and whose turn it is, is decided by "
            "the workflow. Declare them there."
        )
    if agent.input_guardrails or agent.output_guardrails:
        raise UsageError(
            f"Agent {agent.name!r} has guardrails, which only a group chat heeds. Use a hook."
        )
    if agent.llm_config and agent.llm_config.functions:
        raise UsageError(
            f'Agent {agent.name!r} has tools of `api_style="function"`. Register them as tools.'
        )
