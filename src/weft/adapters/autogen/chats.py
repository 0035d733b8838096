"""A group chat that is going on, as far as a workflow's variables follow it."""

import logging
from collections import deque
from datetime import UTC, datetime
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables

from weft.agents.events import AgentText, TurnFinished
from weft.agents.logic.views import view_of
from weft.agents.spec import Agent, RunState
from weft.conversation.spec import Conversation
from weft.kernel.values import Json, as_object
from weft.log.spec import Fact
from weft.variables.events import ContextChanged, ContextRefused
from weft.variables.spec import Definition, Static, Variables

# When facts of a chat happen: no trigger that is heard here asks.
SOMETIME = datetime.fromtimestamp(0, UTC)

log = logging.getLogger("weft.context")


class Chat:
    """Derives variables from what agents say, in the values that the chat itself decides by.

    A value that the chat has already stays; what it lacks begins as the workflow declares it.
    """

    def __init__(self, context: ContextVariables, conversation: Conversation) -> None:
        self._context = context
        self._triggers = conversation.triggers
        self._state = RunState("")
        for name, definition in conversation.variables.definitions.items():
            if name not in context:
                context.set(name, _first(definition))

    @property
    def state(self) -> RunState:
        """What there is to know at this moment; values may have changed since it was asked."""
        self._state.values = self._context.to_dict()
        return self._state

    def say(self, sender: ConversableAgent, message: Any, recipient: Any, silent: bool) -> Any:
        """Derive what follows from a message that is about to be sent, and let it pass."""
        content, state = as_object(message) or {"content": message}, self._state
        text = content.get("content")
        if isinstance(text, str) and text:
            self._hear(AgentText(state.turns + 1, sender.name, text))
        if not content.get("tool_calls"):
            state.turns += 1
            state.turns_of[sender.name] = state.turns_of.get(sender.name, 0) + 1
            self._hear(TurnFinished(state.turns, sender.name))
        return message

    def _hear(self, first: Fact) -> None:
        """Apply what a fact changes, and what these changes change."""
        waiting, fired = deque([first]), self._state.fired
        while waiting:
            fact = waiting.popleft()
            for change in self._triggers.derive(fact.kind, fact, self.state, fired, SOMETIME):
                match change:
                    case ContextChanged(name, value, writer=writer):
                        self._context.set(name, value)
                        fired.add(writer)
                        waiting.append(change)
                    case ContextRefused(name, writer, reason):
                        log.warning("%s may not set %s: %s", writer, name, reason)
                    case _:
                        raise AssertionError(f"{change!r} needs a clock")


class Showing:
    """Shows an agent its variables, in place of what it was shown of them before."""

    def __init__(self, name: str, variables: Variables, chat: Chat) -> None:
        self._name = name
        self._variables = variables
        self._chat = chat
        self._told = ""
        self._shown: str | None = None

    def update(self, agent: ConversableAgent, messages: Any) -> None:
        """Let the agent be told the values of this moment beside its own instructions."""
        if agent.system_message != self._shown:  # it was told something else since
            self._told = agent.system_message
        teller = Agent(name=self._name, system_message=self._told)
        self._shown = view_of(teller, self._variables, self._chat.state).text
        agent.update_system_message(self._shown)


def _first(definition: Definition) -> Json:
    """The value that a declaration gives without looking at the world."""
    source = definition.source
    return source.value if isinstance(source, Static) else source.default
