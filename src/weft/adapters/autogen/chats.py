"""A group chat that is going on, as far as a workflow's variables and hooks follow it."""

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables

from weft.adapters.autogen.courses import Course, log, read
from weft.adapters.autogen.hooks import CHAT, HookCalls
from weft.adapters.autogen.mirrors import alike
from weft.agents.events import ToolFailed, ToolReturned
from weft.agents.logic.views import view_of
from weft.agents.spec import Agent, Callee, RunState
from weft.conversation.spec import Conversation
from weft.kernel.contained import named
from weft.kernel.values import Json, said
from weft.lifecycle.logic import hooks_after, hooks_at
from weft.lifecycle.spec import Hook
from weft.variables.events import ContextChanged, ContextRefused
from weft.variables.logic.types import apart, is_json, same
from weft.variables.logic.writing import Draft
from weft.variables.spec import RUN_STATUS, Definition, Static, Variables

NOTHING: Mapping[str, Json] = MappingProxyType({})


class Chat:
    """Derives variables from what happens, in the values that the chat itself decides by.

    A value that the chat has already stays; what it lacks begins as the workflow declares it.
    """

    def __init__(
        self, context: ContextVariables, conversation: Conversation, callees: Mapping[int, Callee]
    ) -> None:
        self._context = context
        self._triggers = conversation.triggers
        self._definitions = conversation.variables.definitions
        self._hooks = conversation.hooks
        self._calls = HookCalls(callees, self._definitions)
        self._course = Course(self._triggers, {})
        self._manager: object = None  # to whom agents speak while the chat goes on
        self._fresh = {
            name: _first(definition)
            for name, definition in self._definitions.items()
            if name not in context
        }
        context.update(self._fresh)
        self._known = self._seen()

    @property
    def state(self) -> RunState:
        """What there is to know at this moment; values may have changed since it was asked."""
        return self._now.state

    @property
    def _now(self) -> Course:
        """The course of the chat, with the values that the chat has now."""
        self._course.state.values = self._context.to_dict()
        return self._course

    @contextmanager
    def going_on(self, manager: object, earlier: Iterable[tuple[str, Any]]) -> Generator[None]:
        """The time from the first turn to the last, after what agents said earlier."""
        self._recall(earlier)
        self._manager = manager
        self._run(hooks_at(self._hooks, "before_chat", None))
        status = "failed"
        try:
            yield
            status = "finished"
        except asyncio.CancelledError:
            status = "cancelled"
            raise
        finally:
            self._finish()
            self._manager = None
            self._run(hooks_after(self._hooks, status), {RUN_STATUS: status})

    def _recall(self, earlier: Iterable[tuple[str, Any]]) -> None:
        """Know what was said before, so that nothing of it counts twice.

        Values that the chat was given may be later than that; only the others follow from it.
        """
        first = {name: _first(definition) for name, definition in self._definitions.items()}
        self._course = Course(self._triggers, first)
        self._course.recall(earlier)
        values = self._course.state.values
        for name, value in self._fresh.items():
            if same(self._context.get(name), value):
                self._context.set(name, values[name])
        self._fresh = {}
        self._known = self._seen()

    def take(self, agent: ConversableAgent, messages: Any = None) -> None:
        """An agent is about to reply: its go begins, unless it is back from its tools."""
        if self._manager is None:
            return
        self.look()
        if self._course.open != agent.name:
            self._finish()
            self._course.open = agent.name
            self._run(hooks_at(self._hooks, "before_agent", agent.name))

    def leave(self, other: Any, messages: Any) -> None:
        """Somebody who is no agent is about to reply: whoever had a go has it no more."""
        if self._manager is not None:
            self._finish()

    def say(self, sender: ConversableAgent, message: Any, recipient: Any, silent: bool) -> Any:
        """Derive what follows from a message that is about to be sent, and let it pass."""
        if self._manager is not None and recipient is self._manager:
            self.take(sender)
            heard = read(message)
            self._put(self._now.say(sender.name, heard.text))
            if not heard.calls:
                self._finish()
        return message

    def _finish(self) -> None:
        """The go of whoever has it is over."""
        if agent := self._course.open:
            self._run(hooks_at(self._hooks, "after_agent", agent))
            self._put(self._now.finish())

    def returned(self, tool: str, result: Json) -> None:
        """A tool gave something."""
        self.look()
        turn, agent = self._course.state.turns + 1, self._course.open
        self._put(self._now.follow(ToolReturned(turn, agent, tool, result)))

    def failed(self, tool: str, error: Exception) -> None:
        """A tool failed."""
        self.look()
        turn, agent = self._course.state.turns + 1, self._course.open
        self._put(self._now.follow(ToolFailed(turn, agent, tool, named(error), said(error))))

    def look(self) -> None:
        """Derive what follows from values that somebody else set."""
        before, self._known = self._known, self._seen()
        for name, value in [*self._known.items()]:
            if not alike(value, before.get(name)):
                change = ContextChanged(name, value, before.get(name), CHAT)
                self._put(self._now.follow(change))

    def pass_on(self, sender: Any, message: Any, recipient: Any, silent: bool) -> Any:
        """Look at what the chat did with what tools gave, and let a message pass."""
        self.look()
        return message

    def _run(self, hooks: Sequence[Hook], shown: Mapping[str, Json] = NOTHING) -> None:
        self._calls.run(hooks, self._context.to_dict, self._write, shown)

    def _write(self, draft: Draft) -> None:
        """Let the chat have what a hook wrote, and what follows from it."""
        for fact in draft.facts():
            match fact:
                case ContextChanged(name, removed=True):
                    self._context.remove(name)
                case ContextChanged(name, value):
                    self._context.set(name, draft.made.get(name, value))
                    self._put(self._now.follow(fact))
                case ContextRefused(name, writer, reason):
                    log.warning("%s may not set %s: %s", writer, name, reason)
        self._known = self._seen()

    def _put(self, changes: Iterable[ContextChanged]) -> None:
        for change in changes:
            self._context.set(change.name, change.value)
            self._known[change.name] = change.value

    def _seen(self) -> dict[str, Any]:
        """The declared variables as they are now, apart from what becomes of them."""
        values = self._context.to_dict()
        return {
            name: apart(values[name]) if is_json(values[name]) else values[name]
            for name in self._definitions
            if name in values
        }


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
