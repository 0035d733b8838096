"""A running group chat, as far as a workflow's variables and hooks follow it."""

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import anyio
from anyio.from_thread import start_blocking_portal
from autogen import ConversableAgent
from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.adapters.autogen.beginnings import Beginning, declared_value
from turnloom.adapters.autogen.diaries import (
    Begin,
    ChatHookEnd,
    Confidence,
    Diary,
    HookDiary,
    Told,
    Unrecorded,
    first_values,
)
from turnloom.adapters.autogen.mirrors import alike
from turnloom.agents.events import (
    AgentText,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnFinished,
    TurnStarted,
    UserText,
)
from turnloom.agents.logic.views import view_of
from turnloom.agents.spec import USER, Agent, Callee, RunState
from turnloom.conversation.spec import Conversation
from turnloom.errors import UsageError
from turnloom.hooks.logic import hooks_after, hooks_at, skipped
from turnloom.hooks.spec import Hook
from turnloom.kernel.contained import contained, named
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_data, as_object, said, writable
from turnloom.log.spec import Fact
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.logic.types import apart, is_json, same
from turnloom.variables.logic.writing import DraftValues, Held
from turnloom.variables.spec import RUN_STATUS, Context, VariableDefinition, Variables

# When facts of a chat happen: no trigger that is heard here asks.
SOMETIME = datetime.fromtimestamp(0, UTC)

log = logging.getLogger("turnloom.context")


class AgentMessage(NamedTuple):
    """A message of an agent: its words, and whether tools are called, so that its go goes on."""

    text: str
    calls: bool


def read(message: Any) -> AgentMessage:
    """A message as chats have it: a text, or an object."""
    content = as_object(message) or {"content": message}
    text = content.get("content")
    return AgentMessage(text if isinstance(text, str) else "", bool(content.get("tool_calls")))


class Course:
    """Who said what, whose go it is, how many there were, and which triggers fired.

    `open` is the agent whose go is not over, if there is one; `diary` is told what happens.
    """

    def __init__(self, triggers: Triggers, values: dict[str, Json], confidence: Confidence) -> None:
        self.state = RunState("", values=values)
        self.open = ""
        self.diary = Diary(Unrecorded(), confidence)
        self._triggers = triggers
        self._confidence = confidence

    def recall(self, messages: Iterable[tuple[str, Any]]) -> None:
        """Follow what agents said earlier."""
        for agent, message in messages:
            if self.open not in ("", agent):
                self.finish()
            self.open, said = agent, read(message)
            self.say(agent, said.text)
            if not said.calls:
                self.finish()

    def say(self, agent: str, text: str) -> list[ContextChanged]:
        """What follows from an agent's words."""
        return self.follow(AgentText(self.state.turns + 1, agent, text)) if text else []

    def finish(self, status: str = "done", error: str = "") -> list[ContextChanged]:
        """What follows from the end of the open go."""
        state, agent, self.open = self.state, self.open, ""
        state.turns += 1
        state.turns_of[agent] = state.turns_of.get(agent, 0) + 1
        return self.follow(TurnFinished(state.turns, agent, status, error), f"t{state.turns}/end")

    def follow(self, first: Fact, id: str = "") -> list[ContextChanged]:
        """The changes that a fact brings, and those that these bring; all of it is told."""
        changes, state = list[ContextChanged](), self.state
        waiting = deque[tuple[Fact, Told]]([(first, self.diary.tell(first, id=id))])
        while waiting:
            fact, told = waiting.popleft()
            for change in self._triggers.derive(fact.kind, fact, state, state.fired, at=SOMETIME):
                match change:
                    case ContextChanged(name, value, writer=writer):
                        known = self.diary.derive(change, told)
                        state.values[name] = value
                        state.fired.add(writer)
                        changes.append(change)
                        waiting.append((change, known))
                    case ContextRefused(name, writer, reason):
                        self.diary.derive(change, told)
                        why = self._confidence.masked(reason)
                        log.warning("%s may not set %s: %s", writer, name, why)
                    case _:
                        raise AssertionError(f"{change!r} needs a clock")
        return changes


# Seconds before the first retry of a hook; each further one waits twice as long.
BACKOFF = 0.1

# Who holds the values of a chat that are not JSON.
CHAT = "chat"

hook_log = logging.getLogger("turnloom.lifecycle")


class HookCalls:
    """Calls hooks one after another, none of which stops the chat.

    A chat awaits nothing at the moments that hooks are for, so it waits for them: they run in a
    thread and an event loop of their own.
    """

    def __init__(
        self,
        callees: Mapping[int, Callee],
        definitions: Mapping[str, VariableDefinition],
        confidence: Confidence,
    ) -> None:
        self._callees = callees
        self._definitions = definitions
        self._confidence = confidence

    def run(
        self,
        hooks: Sequence[Hook],
        values: Callable[[], dict[str, Any]],
        write: Callable[[DraftValues, str], int],
        shown: Mapping[str, Json],
        diary: HookDiary,
    ) -> None:
        """Call hooks on the values of their moment; what one writes is there for the next."""
        if not hooks:
            return
        succeeded: set[str] = set()
        with start_blocking_portal() as portal:
            for hook in hooks:
                held = _held(values(), shown, self._definitions)
                if why := skipped(hook, held.values, {}, succeeded):
                    hook_log.info("hook %s is skipped: %s", hook.name, why)
                    diary.skipped(hook, why)
                    continue
                diary.begun(hook)
                ended = portal.call(self._attempt, hook, held)
                diary.ended(hook, ended, write(ended.draft, diary.key(hook)))
                if ended.problem is None:
                    succeeded.add(hook.name)

    async def _attempt(self, hook: Hook, held: Held) -> ChatHookEnd:
        """Call a hook, and again if it fails and may be; what it wrote stays."""
        began, attempts = anyio.current_time(), 1
        draft = DraftValues(held, f"hook:{hook.name}")
        problem = await self._call(hook, draft)
        while problem is not None and attempts <= hook.declared.retries:
            await anyio.sleep(BACKOFF * 2 ** (attempts - 1))
            attempts, draft = attempts + 1, DraftValues(held, f"hook:{hook.name}", draft)
            problem = await self._call(hook, draft)
        return ChatHookEnd(draft, problem, (anyio.current_time() - began) * 1000, attempts)

    async def _call(self, hook: Hook, draft: DraftValues) -> Exception | None:
        """How a hook failed, if it did."""
        try:
            await self._enter(hook, draft)
        except Exception as error:  # noqa: BLE001 - told in the program's log, and recorded
            lines = "".join(traceback.format_exception(error)).rstrip()
            hook_log.error(
                "hook %s failed\n%s", hook.name, self._confidence.masked(writable(lines))
            )
            return error
        return None

    async def _enter(self, hook: Hook, draft: DraftValues) -> None:
        try:
            with anyio.fail_after(hook.declared.timeout_s), contained():
                await self._callees[hook.number]({}, Context(draft, DESK))
        finally:
            refused = draft.close()
        if refused is not None:
            raise refused


class _Desk:
    """What a hook has in runs only, which go on after a crash; a chat does not."""

    @property
    def idempotency_key(self) -> NoReturn:
        raise UsageError(
            "A chat is not gone on with: it has no `idempotency_key`. Use one of your own."
        )

    async def once(self, name: str, effect: Callable[[], Any]) -> NoReturn:
        raise UsageError("A chat is not gone on with after a crash, so `once` cannot be kept.")


DESK: Any = _Desk()


def _held(
    values: dict[str, Any], shown: Mapping[str, Json], definitions: Mapping[str, VariableDefinition]
) -> Held:
    """The values of a chat as hooks see them; what is not JSON is an object in memory."""
    objects = {(name, CHAT): value for name, value in values.items() if not is_json(value)}
    return Held(values, dict(objects.keys()), objects, shown, definitions=definitions)


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
        called = ToolCalled(request, outcome.turn, outcome.agent, tool, arguments=arguments)
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
        self._calls.run(hooks, self._context.to_dict, self._write, shown, diary=diary)

    def _write(self, draft: DraftValues, key: str) -> int:
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
