"""A group chat that is going on, as far as a workflow's variables and hooks follow it."""

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.adapters.autogen.beginnings import Beginning, declared_value
from turnloom.adapters.autogen.confidence import Confidence
from turnloom.adapters.autogen.courses import Course, log, read
from turnloom.adapters.autogen.diaries import Begin, Diary, HookDiary, Unrecorded, first_values
from turnloom.adapters.autogen.hooks import CHAT, HookCalls
from turnloom.adapters.autogen.mirrors import alike
from turnloom.agents.events import ToolCalled, ToolFailed, ToolReturned, TurnStarted, UserText
from turnloom.agents.logic.views import view_of
from turnloom.agents.spec import USER, Agent, Callee, RunState
from turnloom.conversation.spec import Conversation
from turnloom.kernel.contained import named
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_data, said
from turnloom.lifecycle.logic import hooks_after, hooks_at
from turnloom.lifecycle.spec import Hook
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.types import apart, is_json, same
from turnloom.variables.logic.writing import Draft
from turnloom.variables.spec import RUN_STATUS, Variables

# What was said: by whom, the message, and whether that is an agent of the workflow.
Message = tuple[str, Any, bool]

NOTHING: Mapping[str, Json] = MappingProxyType({})


class Chat:
    """Derives variables from what happens, in the values that the chat itself decides by.

    A value that the chat has already stays; what it lacks begins as `beginning` says.
    """

    def __init__(
        self,
        context: ContextVariables,
        conversation: Conversation,
        callees: Mapping[int, Callee],
        beginning: Beginning,
        begin: Begin = Unrecorded,
    ) -> None:
        self._begin = begin
        self._beginning = beginning
        self._speaker = ""  # who spoke last
        self._context = context
        self._triggers = conversation.triggers
        self._definitions = conversation.variables.definitions
        self._hooks = conversation.hooks
        self._confidence = Confidence(context, self._definitions)
        self._calls = HookCalls(callees, self._definitions, self._confidence)
        self._course = Course(self._triggers, {}, self._confidence)
        self._manager: object = None  # to whom agents speak while the chat goes on
        self._fresh = dict(beginning.values)
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
    def going_on(self, manager: object, said: Sequence[Message]) -> Generator[None]:
        """The time from the first turn to the last, after what was said earlier."""
        own = {name: each for name, each in self._beginning.told.items() if name in self._fresh}
        self._recall((name, message) for name, message, is_agent in said if is_agent)
        diary = self._course.diary = Diary(self._begin(), self._confidence)
        diary.tell(first_values(self._context.to_dict(), own, self._confidence), id="context")
        for number, each in enumerate(self._beginning.suppressed):
            diary.tell(each, id=f"context/suppressed.{number}")
        for name, message, is_agent in said[-1:]:
            self._listen(name, message, is_agent)
        self._manager = manager
        self._run(hooks_at(self._hooks, "before_chat", None))
        status, trouble = "finished", None
        try:
            yield
        except BaseException as error:
            status = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
            trouble = error
            raise
        finally:
            self._finish(trouble and status, trouble)
            self._manager = None
            self._run(hooks_after(self._hooks, status), {RUN_STATUS: status})
            diary.end(status, trouble)

    def hear(self, sender: Any, message: Any, recipient: Any, silent: bool) -> Any:
        """Know of a message of somebody who is no agent, and let it pass."""
        if self._manager is not None and recipient is self._manager:
            self._listen(sender.name, message, False)
        return message

    def _listen(self, name: str, message: Any, is_agent: bool) -> None:
        self._speaker = name if is_agent else USER
        if not is_agent and (text := read(message).text):
            self._course.diary.tell(UserText(USER, text))

    def _recall(self, earlier: Iterable[tuple[str, Any]]) -> None:
        """Know what was said before, so that nothing of it counts twice.

        Values that the chat was given may be later than that; only the others follow from it.
        """
        begun = self._beginning.values
        first = {
            name: begun[name] if name in begun else declared_value(definition)
            for name, definition in self._definitions.items()
            if name in self._context
        }
        self._course = Course(self._triggers, first, self._confidence)
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
            turn, before, self._speaker = self._turn, self._speaker, agent.name
            self._course.diary.decide(before, agent.name)
            self._course.diary.tell(TurnStarted(turn, agent.name), id=f"t{turn}")
            self._course.open = agent.name
            self._run(hooks_at(self._hooks, "before_agent", agent.name), agent=agent.name)

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

    def _finish(self, status: str | None = None, error: BaseException | None = None) -> None:
        """The go of whoever has it is over."""
        if agent := self._course.open:
            self._run(hooks_at(self._hooks, "after_agent", agent), agent=agent)
            self._put(self._now.finish(status or "done", said(error) if error else ""))

    @property
    def _turn(self) -> int:
        """The number of the go that is open, or the next."""
        return self._course.state.turns + 1

    def returned(self, tool: str, arguments: Json, result: Json) -> None:
        """A tool gave something."""
        self._follow(tool, arguments, ToolReturned(self._turn, self._course.open, tool, result))

    def failed(self, tool: str, arguments: Json, error: Exception) -> None:
        """A tool failed."""
        why = (named(error), said(error))
        self._follow(tool, arguments, ToolFailed(self._turn, self._course.open, tool, *why))

    def _follow(self, tool: str, arguments: Json, outcome: ToolReturned | ToolFailed) -> None:
        """Derive what follows from what a tool wrote and gave."""
        request = digest(as_data(arguments))
        called = ToolCalled(request, outcome.turn, outcome.agent, tool, arguments)
        key = self._course.diary.call(outcome.turn)
        self._course.diary.tell(called, f"{key}?")
        self.look()
        self._put(self._now.follow(outcome, f"{key}.0"))

    def look(self) -> None:
        """Derive what follows from values that somebody else set."""
        before, self._known = self._known, self._seen()
        for name, value in [*self._known.items()]:
            if not alike(value, before.get(name)):
                change = ContextChanged(name, value, before.get(name), CHAT)
                id = self._course.diary.place(self._turn if self._course.open else None)
                self._put(self._now.follow(change, id))

    def pass_on(self, sender: Any, message: Any, recipient: Any, silent: bool) -> Any:
        """Look at what the chat did with what tools gave, and let a message pass."""
        self.look()
        return message

    def _run(
        self, hooks: Sequence[Hook], shown: Mapping[str, Json] = NOTHING, agent: str | None = None
    ) -> None:
        scope = f"t{self._turn}" if agent else CHAT
        diary = HookDiary(self._course.diary, scope, agent)
        self._calls.run(hooks, self._context.to_dict, self._write, shown, diary)

    def _write(self, draft: Draft, key: str) -> int:
        """Let the chat have what a hook wrote, and what follows from it; how many facts that is."""
        facts = [*draft.facts()]
        for number, fact in enumerate(facts):
            id = f"{key}.{number}"
            match fact:
                case ContextChanged(name, removed=True):
                    self._context.remove(name)
                    self._course.diary.tell(fact, id)
                case ContextChanged(name, value):
                    self._context.set(name, draft.made.get(name, value))
                    self._put(self._now.follow(fact, id))
                case ContextRefused(name, writer, reason):
                    self._course.diary.tell(fact, id)
                    why = self._confidence.masked(reason)
                    log.warning("%s may not set %s: %s", writer, name, why)
        self._known = self._seen()
        return len(facts)

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
