"""Engine in which an AG2 agent takes the turn."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Set
from dataclasses import asdict
from typing import Any, Self, cast

from ag2 import Agent, AgentReply
from ag2.config import ModelConfig
from ag2.context import RESERVED_VARIABLE_PREFIXES, ConversationContext
from ag2.events import BaseEvent, HumanInputRequest, ModelResponse, ToolCallEvent, ToolErrorEvent
from ag2.events.conditions import Condition
from ag2.exceptions import HumanInputFailedError
from ag2.middleware import BaseMiddleware, Middleware
from ag2.middleware.base import AgentTurn, ToolExecution, ToolResultType
from ag2.plugin import Plugin
from ag2.stream import MemoryStream
from ag2.tools.final import ClientTool

from turnloom.adapters.ag2.asking import Ag2Models, AskedModel
from turnloom.adapters.ag2.forms import answer_of, has_invalid_arguments, offer_of
from turnloom.adapters.ag2.messages import messages_of
from turnloom.agents.logic.dialogues import spelled
from turnloom.agents.spec import Answer, Patience, Task, use_ui_tool
from turnloom.errors import EngineError, TurnloomError, UsageError, WriteRefused
from turnloom.kernel.contained import called
from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.values import as_data, error_text, preview


class VariablesMirror(MutableMapping[str, Any]):
    """The run's variables, layered over those that the agent was created with. Writes go to the
    run.

    AG2's internal variables stay here. Repeated reads return the same object, so that code may
    change it in place; `settle` then writes it.
    """

    def __init__(self, variables: MutableMapping[str, Any], own: Mapping[str, Any]) -> None:
        self._variables = variables
        self._own = dict(own)
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            if name not in self._variables:
                return self._own[name]
            self._read[name] = self._variables[name]
        return self._read[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith(RESERVED_VARIABLE_PREFIXES):
            self._own[name] = value
            return
        self._variables[name] = value
        self._read[name] = value

    def __delitem__(self, name: str) -> None:
        found = self._own.pop(name, self) is not self
        if name in self._variables:
            del self._variables[name]
        elif not found:
            raise KeyError(name)
        self._read.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._own, *self._variables)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __ror__(self, own: Mapping[str, Any]) -> Self:
        # AG2 merges the given variables over the agent's own. Here they are layered already.
        return self

    def settle(self) -> None:
        """Write values that were changed in place.

        Raises:
            WriteRefused: a write is refused; the value is reset.
        """
        for name, value in list(self._read.items()):
            if name in self._variables and self._variables[name] == value:
                continue
            try:
                self[name] = value
            except WriteRefused:
                del self._read[name]
                raise


# The name of the UI tool by which agents ask people.
HUMAN_INPUT = "human_input"


class AG2AgentEngine:
    """Lets an AG2 agent take the turn; `make` creates one for each call.

    The agent uses the model of its own `config`, or else that of the task, or else `model`. Its own
    tools run inside the call, with the run's variables in their context. Its requests for human
    input become questions of the run.
    """

    takes_variables = True

    def __init__(
        self,
        make: Callable[[], Any],
        model: str | ModelConfig | None = None,
        *,
        patience: Patience | None = None,
    ) -> None:
        self._make = make
        self._default = model
        self._models = Ag2Models(model)
        self._patience = patience or Patience()

    async def __call__(self, task: Task) -> Answer:
        """The agent's answer to a task.

        Raises:
            ContextTooLarge: a request exceeds the context window of the model.
            EngineError: the model or the agent fails.
            UsageError: `make` returns no agent, it has no model, or two tools have the same name.
        """
        agent = await self._agent()
        names = spelled(tool.name for tool in task.tools)
        offer = offer_of(task, names)
        tools = [ClientTool({"function": asdict(each.function)}) for each in offer.tools]
        model = AskedModel(task, self._config(agent, task), tools, self._patience)
        form = {} if offer.form is None else {"response_schema": offer.form}
        try:
            reply = await _run(agent, model, messages_of(task, names), tools=tools, **form)
        except TurnloomError:
            raise
        except Exception as error:
            if isinstance(error, HumanInputFailedError) and isinstance(error.cause, Interrupted):
                raise error.cause from error
            who = f"The AG2 agent of {task.agent!r}"
            raise EngineError(
                f"{who} failed: {type(error).__name__}: {error_text(error)}"
            ) from error
        return model.completed(
            answer_of(task, names, reply.response, model.answered, ending=model.ending)
        )

    async def _agent(self) -> Agent[Any]:
        agent: Any = await called(self._make)
        if not isinstance(agent, Agent):
            raise UsageError(f"`make` returned {preview(agent)}. Return an `ag2.Agent`.")
        return cast("Agent[Any]", agent)

    def _config(self, agent: Agent[Any], task: Task) -> ModelConfig:
        if agent.config is None and task.model is None and self._default is None:
            raise UsageError(
                f"The AG2 agent of {task.agent!r} has no model. Give it a `config`, or set `model` "
                "for the agent or the orchestrator."
            )
        return agent.config or self._models.named(task.model)


async def _run(
    agent: Agent[Any], model: AskedModel, given: list[BaseEvent], **options: Any
) -> AgentReply[Any, Any]:
    """The agent's reply to the messages, in a new AG2 conversation."""
    task = model.task
    variables: Any = VariablesMirror(
        {} if task.variables is None else task.variables, agent.variables
    )
    model.given = given
    reply = await agent.resume(
        *given,
        stream=FirstListenerStream(model.on_event),
        variables=variables,
        config=model,
        plugins=[Plugin(prompt=task.system)] if task.system else (),
        middleware=[Middleware(StopOnInterrupt, variables=variables, offered=model.offered)],
        hitl_hook=ask_person,
        **options,
    )
    variables.settle()
    return reply


async def ask_person(request: HumanInputRequest) -> str:
    """The answer of the run's user."""
    payload = {"prompt": request.content}
    answer = await use_ui_tool(HUMAN_INPUT, payload, timeout=request.timeout)
    return answer if isinstance(answer, str) else as_data(answer)


class FirstListenerStream(MemoryStream):
    """A stream that calls one listener before all others, in the order of events.

    Transient events, such as text chunks, go only to subscribers that match them: sending them
    takes threads, and a sender that is cancelled meanwhile does not release its connection.
    """

    __slots__ = ("_conditions", "_listener")

    def __init__(self, listener: Callable[[BaseEvent], None]) -> None:
        self._conditions: list[Condition | None] = []
        super().__init__()
        self._conditions.clear()  # the history's, which stores no transient events
        self._listener = listener

    def subscribe(
        self, func: Any = None, *, condition: Condition | None = None, **options: Any
    ) -> Any:
        """Add a subscriber for events that meet the condition."""
        self._conditions.append(condition)
        return cast("Any", super()).subscribe(func, condition=condition, **options)

    async def send(self, event: BaseEvent, context: ConversationContext) -> None:
        """Send an event to the listener, then to the subscribers."""
        self._listener(event)
        if getattr(event, "__transient__", False) and not self._has_subscriber(event):
            return
        await super().send(event, context)

    def _has_subscriber(self, event: BaseEvent) -> bool:
        return any(condition is None or condition(event) for condition in self._conditions)


class StopOnInterrupt(BaseMiddleware):
    """Ends all concurrent tool calls when one of them is interrupted.

    AG2 only stops them for a failed human input.
    """

    def __init__(
        self,
        event: BaseEvent,
        context: ConversationContext,
        variables: VariablesMirror,
        offered: Set[str],
    ) -> None:
        super().__init__(event, context)
        self._variables = variables
        self._offered = offered

    async def on_turn(
        self, call_next: AgentTurn, event: BaseEvent, context: ConversationContext
    ) -> ModelResponse:
        """The agent's response."""
        try:
            return await call_next(event, context)
        except Interrupted as interrupted:
            raise HumanInputFailedError(interrupted) from interrupted

    async def on_tool_execution(
        self, call_next: ToolExecution, event: ToolCallEvent, context: ConversationContext
    ) -> ToolResultType:
        """The tool's result, after writing variables changed in place. The agent's own tools are
        not called with invalid arguments."""
        if event.name not in self._offered and has_invalid_arguments(event):
            wrong = ValueError("The arguments are not a JSON object. Write them again.")
            return ToolErrorEvent.from_call(event, error=wrong)
        try:
            given = await call_next(event, context)
        except Interrupted as interrupted:
            raise HumanInputFailedError(interrupted) from interrupted
        self._variables.settle()
        return given
