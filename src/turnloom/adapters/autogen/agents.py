"""An engine whose turns are taken by agents of the classic line."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from anyio import to_thread
from autogen import ConversableAgent
from autogen.io.base import IOStream

from turnloom.adapters.autogen.asking import Asking
from turnloom.adapters.autogen.forms import ended, messages_of, read_message
from turnloom.adapters.autogen.people import InLoop
from turnloom.adapters.autogen.relays import Relay
from turnloom.adapters.autogen.turns import Instructions, Tools, free_loop
from turnloom.agents.logic.dialogues import added_to, dialogue_of, exchanged
from turnloom.agents.logic.outputs.forms import given_output
from turnloom.agents.logic.spelling import spelled
from turnloom.agents.spec import Answer, Exchange, Patience, Task, ToolCall
from turnloom.errors import EngineError, TurnloomError, UsageError
from turnloom.kernel.threads import threads
from turnloom.kernel.values import as_data, preview, said

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
        self._asking = Asking(patience or Patience(), keep_open)

    async def __call__(self, task: Task) -> Answer:
        """What the agent says to the task, or which of the task's tools it wants called.

        Raises:
            EngineError: it does not answer; the message says why, in the library's words.
        """
        try:
            turn = await to_thread.run_sync(Turn, self._make, task, self._asking, limiter=threads())
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


class Turn:
    """A call of an agent, which goes on until it says something or calls tools of the task."""

    def __init__(self, make: Callable[[], ConversableAgent], task: Task, asking: Asking) -> None:
        agent: Any = make()
        _refuse_unheard(agent)
        self._agent = agent
        self._task = task
        self._tools = Tools(agent, task.variables)
        self._names = spelled(tool.name for tool in task.tools)
        self._refuse_doubles()
        self._instructions = Instructions(task.system)
        agent.register_hook("update_agent_state", self._instructions.update)
        self._relay = Relay(agent, task, self._names, self._tools.schemas, asking)
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
