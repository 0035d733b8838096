"""An engine in which an agent of AG2 takes the turn."""

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
from turnloom.adapters.ag2.forms import answer_of, is_unread, offer_of
from turnloom.adapters.ag2.messages import messages_of
from turnloom.agents.logic.dialogues import spelled
from turnloom.agents.spec import Answer, Patience, Task, use_ui_tool
from turnloom.errors import EngineError, TurnloomError, UsageError, WriteRefused
from turnloom.kernel.contained import Interrupted, called
from turnloom.kernel.values import as_data, preview, said


class VariablesMirror(MutableMapping[str, Any]):
    """The variables of a run over those that an agent was made with; writes go to the run's.

    What AG2 keeps there for itself stays here. A value that was read is the same object when it is
    read again, so that code may change it in place, and `settle` writes it.
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
        # AG2 copies what it is given over the agent's own: here those lie below already.
        return self

    def settle(self) -> None:
        """Write what was changed in place.

        Raises:
            WriteRefused: it may not be; the value is again what it was.
        """
        for name, value in list(self._read.items()):
            if name in self._variables and self._variables[name] == value:
                continue
            try:
                self[name] = value
            except WriteRefused:
                del self._read[name]
                raise


# The tool by whose name agents ask people.
HUMAN_INPUT = "human_input"


class AG2AgentEngine:
    """Has an agent of AG2 take the turn: one that `make` gives, anew for each call.

    It asks the model of its own `config`, or if it has none, the one that the task names, or else
    `model`. Its own tools run inside the call, with the run's variables as its context's; it asks
    people by questions of the run.
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
        """What the agent says to the task.

        Raises:
            ContextTooLarge: what it asks does not fit into the window of its model.
            EngineError: its model does not answer, or something else fails that it does.
            UsageError: there is no agent, it has no model, or a tool has the name of another.
        """
        agent = await self._agent()
        names = spelled(tool.name for tool in task.tools)
        offer = offer_of(task, names)
        tools = [ClientTool({"function": asdict(each.function)}) for each in offer.tools]
        model = AskedModel(task, self._config(agent, task), tools, self._patience)
        form = {} if offer.form is None else {"response_schema": offer.form}
        try:
            reply = await _take(agent, model, messages_of(task, names), tools=tools, **form)
        except TurnloomError:
            raise
        except Exception as error:
            if isinstance(error, HumanInputFailedError) and isinstance(error.cause, Interrupted):
                raise error.cause from error
            who = f"The agent of AG2 that answers for {task.agent!r}"
            raise EngineError(f"{who} failed: {type(error).__name__}: {said(error)}") from error
        return model.completed(
            answer_of(task, names, reply.response, model.answered, ending=model.ending)
        )

    async def _agent(self) -> Agent[Any]:
        made: Any = await called(self._make)
        if not isinstance(made, Agent):
            raise UsageError(f"The function gives {preview(made)}. Let it give an `ag2.Agent`.")
        return cast("Agent[Any]", made)

    def _config(self, agent: Agent[Any], task: Task) -> ModelConfig:
        if agent.config is None and task.model is None and self._default is None:
            raise UsageError(
                f"The agent of AG2 that answers for {task.agent!r} has no model. Give it a "
                "`config`, or say `model` for the agent or the orchestrator."
            )
        return agent.config or self._models.named(task.model)


async def _take(
    agent: Agent[Any], model: AskedModel, given: list[BaseEvent], **how: Any
) -> AgentReply[Any, Any]:
    """What an agent replies to what was said, in a conversation of its own."""
    task = model.task
    variables: Any = VariablesMirror(
        {} if task.variables is None else task.variables, agent.variables
    )
    model.given = given
    reply = await agent.resume(
        *given,
        stream=FirstListenerStream(model.hear),
        variables=variables,
        config=model,
        plugins=[Plugin(prompt=task.system)] if task.system else (),
        middleware=[Middleware(Contained, variables=variables, offered=model.offered)],
        hitl_hook=ask_person,
        **how,
    )
    variables.settle()
    return reply


async def ask_person(request: HumanInputRequest) -> str:
    """What the person says to whom the run belongs."""
    payload = {"prompt": request.content}
    answer = await use_ui_tool(HUMAN_INPUT, payload, timeout=request.timeout)
    return answer if isinstance(answer, str) else as_data(answer)


class FirstListenerStream(MemoryStream):
    """A stream that one function hears before anybody else, in the order of what happens.

    What AG2 does not keep, such as pieces of answers, goes to those only who want it: to offer it
    takes threads, and whoever is cancelled meanwhile does not let go of its connection.
    """

    __slots__ = ("_hear", "_wanted")

    def __init__(self, hear: Callable[[BaseEvent], None]) -> None:
        self._wanted: list[Condition | None] = []
        super().__init__()
        self._wanted.clear()  # of the history, which keeps none of this
        self._hear = hear

    def subscribe(self, func: Any = None, *, condition: Condition | None = None, **how: Any) -> Any:
        """Let somebody else hear what the condition is met by."""
        self._wanted.append(condition)
        return cast("Any", super()).subscribe(func, condition=condition, **how)

    async def send(self, event: BaseEvent, context: ConversationContext) -> None:
        """Let the function hear an event, then all others."""
        self._hear(event)
        if getattr(event, "__transient__", False) and not self._is_wanted(event):
            return
        await super().send(event, context)

    def _is_wanted(self, event: BaseEvent) -> bool:
        return any(condition is None or condition(event) for condition in self._wanted)


class Contained(BaseMiddleware):
    """Sees to it that what ends a call of the engine ends all that goes on in it.

    To AG2, only people who cannot be asked are a reason to stop the tools beside the one that asks.
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
        """What the agent says."""
        try:
            return await call_next(event, context)
        except Interrupted as interrupted:
            raise HumanInputFailedError(interrupted) from interrupted

    async def on_tool_execution(
        self, call_next: ToolExecution, event: ToolCallEvent, context: ConversationContext
    ) -> ToolResultType:
        """What a tool gives, with what it changed in place written; one of the agent's own is not
        called with arguments that are no data."""
        if event.name not in self._offered and is_unread(event):
            wrong = ValueError("The arguments are no JSON object. Write them again.")
            return ToolErrorEvent.from_call(event, error=wrong)
        try:
            given = await call_next(event, context)
        except Interrupted as interrupted:
            raise HumanInputFailedError(interrupted) from interrupted
        self._variables.settle()
        return given
