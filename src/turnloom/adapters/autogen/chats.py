"""A running group chat, followed by a workflow's variables and hooks."""

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

from turnloom.adapters.autogen.initial_values import InitialValues, declared_value
from turnloom.adapters.autogen.mirrors import alike
from turnloom.adapters.autogen.recorders import (
    Begin,
    ChatHookEnd,
    ChatRecorder,
    ChatSecrets,
    HookRecorder,
    NoRecord,
    RecordedFact,
    first_values,
)
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
from turnloom.hooks.logic import hooks_after, hooks_at, skip_reason
from turnloom.hooks.spec import Hook
from turnloom.kernel.contained import contained, error_name
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_data, as_object, error_text, writable
from turnloom.log.spec import Fact
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.logic.types import apart, is_json, same
from turnloom.variables.logic.writing import DraftValues, HeldValues
from turnloom.variables.spec import RUN_STATUS, Context, VariableDefinition, Variables

# The time of facts in a chat: no supported trigger uses it.
NO_TIME = datetime.fromtimestamp(0, UTC)

log = logging.getLogger("turnloom.context")


class AgentMessage(NamedTuple):
    """An agent's message: its text, and whether it calls tools, so that its turn continues."""

    text: str
    calls: bool


def parse_message(message: Any) -> AgentMessage:
    """A message of a chat, which is a text or an object."""
    content = as_object(message) or {"content": message}
    text = content.get("content")
    return AgentMessage(text if isinstance(text, str) else "", bool(content.get("tool_calls")))


class ChatProgress:
    """The progress of a chat: turns, the current speaker, and fired triggers.

    `open` is the agent in turn, if any. `recorder` records what happens.
    """

    def __init__(self, triggers: Triggers, values: dict[str, Json], secrets: ChatSecrets) -> None:
        self.state = RunState("", values=values)
        self.open = ""
        self.recorder = ChatRecorder(NoRecord(), secrets)
        self._triggers = triggers
        self._secrets = secrets

    def replay(self, messages: Iterable[tuple[str, Any]]) -> None:
        """Replay earlier messages of agents."""
        for agent, message in messages:
            if self.open not in ("", agent):
                self.finish()
            self.open, parsed = agent, parse_message(message)
            self.say(agent, parsed.text)
            if not parsed.calls:
                self.finish()

    def say(self, agent: str, text: str) -> list[ContextChanged]:
        """The changes that follow from an agent's text."""
        return self.follow(AgentText(self.state.turns + 1, agent, text)) if text else []

    def finish(self, status: str = "done", error: str = "") -> list[ContextChanged]:
        """The changes that follow from the end of the current turn."""
        state, agent, self.open = self.state, self.open, ""
        state.turns += 1
        state.turns_of[agent] = state.turns_of.get(agent, 0) + 1
        return self.follow(TurnFinished(state.turns, agent, status, error), f"t{state.turns}/end")

    def follow(self, first: Fact, id: str = "") -> list[ContextChanged]:
        """The changes that follow from a fact, directly and indirectly. All of them are
        recorded."""
        changes, state = list[ContextChanged](), self.state
        waiting = deque[tuple[Fact, RecordedFact]]([(first, self.recorder.record(first, id=id))])
        while waiting:
            fact, recorded = waiting.popleft()
            for change in self._triggers.derive(fact.kind, fact, state, state.fired, at=NO_TIME):
                match change:
                    case ContextChanged(name, value, writer=writer):
                        known = self.recorder.derive(change, recorded)
                        state.values[name] = value
                        state.fired.add(writer)
                        changes.append(change)
                        waiting.append((change, known))
                    case ContextRefused(name, writer, reason):
                        self.recorder.derive(change, recorded)
                        why = self._secrets.masked(reason)
                        log.warning("%s may not set %s: %s", writer, name, why)
                    case _:
                        raise AssertionError(f"{change!r} needs a clock")
        return changes


# Seconds before the first retry of a hook, doubled for each further one.
BACKOFF = 0.1

# The holder of a chat's values that are not JSON.
CHAT = "chat"

hook_log = logging.getLogger("turnloom.lifecycle")


class HookCalls:
    """Calls hooks one after another; a failing hook does not stop the chat.

    AutoGen does not await at these points, so the chat blocks while hooks run in a separate thread
    and event loop.
    """

    def __init__(
        self,
        callees: Mapping[int, Callee],
        definitions: Mapping[str, VariableDefinition],
        secrets: ChatSecrets,
    ) -> None:
        self._callees = callees
        self._definitions = definitions
        self._secrets = secrets

    def run(
        self,
        hooks: Sequence[Hook],
        values: Callable[[], dict[str, Any]],
        write: Callable[[DraftValues, str], int],
        shown: Mapping[str, Json],
        recorder: HookRecorder,
    ) -> None:
        """Call hooks with the current values; each sees the writes of those before."""
        if not hooks:
            return
        succeeded: set[str] = set()
        with start_blocking_portal() as portal:
            for hook in hooks:
                held = _held(values(), shown, self._definitions)
                if why := skip_reason(hook, held.values, {}, succeeded):
                    hook_log.info("hook %s is skipped: %s", hook.name, why)
                    recorder.skipped(hook, why)
                    continue
                recorder.begun(hook)
                ended = portal.call(self._attempt, hook, held)
                recorder.ended(hook, ended, write(ended.draft, recorder.key(hook)))
                if ended.problem is None:
                    succeeded.add(hook.name)

    async def _attempt(self, hook: Hook, held: HeldValues) -> ChatHookEnd:
        """Call a hook, with its declared retries; its writes are kept between attempts."""
        began, attempts = anyio.current_time(), 1
        draft = DraftValues(held, f"hook:{hook.name}")
        problem = await self._call(hook, draft)
        while problem is not None and attempts <= hook.declared.retries:
            await anyio.sleep(BACKOFF * 2 ** (attempts - 1))
            attempts, draft = attempts + 1, DraftValues(held, f"hook:{hook.name}", draft)
            problem = await self._call(hook, draft)
        return ChatHookEnd(draft, problem, (anyio.current_time() - began) * 1000, attempts)

    async def _call(self, hook: Hook, draft: DraftValues) -> Exception | None:
        """Call a hook; returns its exception if it fails."""
        try:
            await self._enter(hook, draft)
        except Exception as error:  # noqa: BLE001 - logged, and recorded
            lines = "".join(traceback.format_exception(error)).rstrip()
            hook_log.error("hook %s failed\n%s", hook.name, self._secrets.masked(writable(lines)))
            return error
        return None

    async def _enter(self, hook: Hook, draft: DraftValues) -> None:
        try:
            with anyio.fail_after(hook.declared.timeout_s), contained():
                await self._callees[hook.number]({}, Context(draft, NO_RUN))
        finally:
            refused = draft.close()
        if refused is not None:
            raise refused


class _NoRun:
    """Refuses features of hooks that only work in runs, which resume after a crash."""

    @property
    def idempotency_key(self) -> NoReturn:
        raise UsageError(
            "A chat cannot be resumed, so hooks have no `idempotency_key`. Create your own."
        )

    async def once(self, name: str, effect: Callable[[], Any]) -> NoReturn:
        raise UsageError("A chat cannot be resumed after a crash, so `once` is not supported.")


NO_RUN: Any = _NoRun()


def _held(
    values: dict[str, Any], shown: Mapping[str, Json], definitions: Mapping[str, VariableDefinition]
) -> HeldValues:
    """The values of a chat as hooks see them; values that are not JSON are kept in memory."""
    objects = {(name, CHAT): value for name, value in values.items() if not is_json(value)}
    return HeldValues(values, dict(objects.keys()), objects, shown, definitions=definitions)


# A message with its sender, and whether that is an agent of the workflow.
Message = tuple[str, Any, bool]

NOTHING: Mapping[str, Json] = MappingProxyType({})


class Chat:
    """Derives variables from a chat's events, in the context variables that the chat itself uses.

    Existing values are kept. Missing ones start with their initial values.
    """

    def __init__(
        self,
        context: ContextVariables,
        conversation: Conversation,
        callees: Mapping[int, Callee],
        initial: InitialValues,
        begin: Begin = NoRecord,
    ) -> None:
        self._begin = begin
        self._initial = initial
        self._speaker = ""  # the last speaker
        self._context = context
        self._triggers = conversation.triggers
        self._definitions = conversation.variables.definitions
        self._hooks = conversation.hooks
        self._secrets = ChatSecrets(context, self._definitions)
        self._calls = HookCalls(callees, self._definitions, self._secrets)
        self._progress = ChatProgress(self._triggers, {}, self._secrets)
        self._manager: object = None  # the recipient of messages while the chat runs
        self._fresh = dict(initial.values)
        context.update(self._fresh)
        self._known = self._seen()

    @property
    def state(self) -> RunState:
        """The current state, whose values are a copy."""
        return self._now.state

    @property
    def _now(self) -> ChatProgress:
        """The chat's progress, with its current values."""
        self._progress.state.values = self._context.to_dict()
        return self._progress

    @contextmanager
    def running(self, manager: object, earlier: Sequence[Message]) -> Generator[None]:
        """The time from the first to the last turn, after replaying earlier messages."""
        own = {name: each for name, each in self._initial.facts.items() if name in self._fresh}
        self._replay((name, message) for name, message, is_agent in earlier if is_agent)
        recorder = self._progress.recorder = ChatRecorder(self._begin(), self._secrets)
        recorder.record(first_values(self._context.to_dict(), own, self._secrets), id="context")
        for number, each in enumerate(self._initial.suppressed):
            recorder.record(each, id=f"context/suppressed.{number}")
        for name, message, is_agent in earlier[-1:]:
            self._note_speaker(name, message, is_agent)
        self._manager = manager
        self._run(hooks_at(self._hooks, "before_chat", None))
        status, failure = "finished", None
        try:
            yield
        except BaseException as error:
            status = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
            failure = error
            raise
        finally:
            self._finish(failure and status, failure)
            self._manager = None
            self._run(hooks_after(self._hooks, status), {RUN_STATUS: status})
            recorder.end(status, failure)

    def note_message(self, sender: Any, message: Any, recipient: Any, silent: bool) -> Any:
        """Note a message from a sender that is not an agent, and return it."""
        if self._manager is not None and recipient is self._manager:
            self._note_speaker(sender.name, message, False)
        return message

    def _note_speaker(self, name: str, message: Any, is_agent: bool) -> None:
        self._speaker = name if is_agent else USER
        if not is_agent and (text := parse_message(message).text):
            self._progress.recorder.record(UserText(USER, text))

    def _replay(self, earlier: Iterable[tuple[str, Any]]) -> None:
        """Replay earlier messages, so that they are not counted twice.

        Values that the chat was given may be newer than the messages. Only the others follow from
        them.
        """
        begun = self._initial.values
        first = {
            name: begun[name] if name in begun else declared_value(definition)
            for name, definition in self._definitions.items()
            if name in self._context
        }
        self._progress = ChatProgress(self._triggers, first, self._secrets)
        self._progress.replay(earlier)
        values = self._progress.state.values
        for name, value in self._fresh.items():
            if same(self._context.get(name), value):
                self._context.set(name, values[name])
        self._fresh = {}
        self._known = self._seen()

    def begin_turn(self, agent: ConversableAgent, messages: Any = None) -> None:
        """Begin a turn when an agent is about to reply, unless it continues after tool calls."""
        if self._manager is None:
            return
        self.check_writes()
        if self._progress.open != agent.name:
            self._finish()
            turn, before, self._speaker = self._turn, self._speaker, agent.name
            self._progress.recorder.decide(before, agent.name)
            self._progress.recorder.record(TurnStarted(turn, agent.name), id=f"t{turn}")
            self._progress.open = agent.name
            self._run(hooks_at(self._hooks, "before_agent", agent.name), agent=agent.name)

    def end_turn(self, other: Any, messages: Any) -> None:
        """End the current turn when a participant that is not an agent is about to reply."""
        if self._manager is not None:
            self._finish()

    def say(self, sender: ConversableAgent, message: Any, recipient: Any, silent: bool) -> Any:
        """Derive changes from a message before it is sent, and return it."""
        if self._manager is not None and recipient is self._manager:
            self.begin_turn(sender)
            parsed = parse_message(message)
            self._put(self._now.say(sender.name, parsed.text))
            if not parsed.calls:
                self._finish()
        return message

    def _finish(self, status: str | None = None, error: BaseException | None = None) -> None:
        """End the current turn."""
        if agent := self._progress.open:
            self._run(hooks_at(self._hooks, "after_agent", agent), agent=agent)
            self._put(self._now.finish(status or "done", error_text(error) if error else ""))

    @property
    def _turn(self) -> int:
        """The number of the current turn, or of the next one."""
        return self._progress.state.turns + 1

    def returned(self, tool: str, arguments: Json, result: Json) -> None:
        """Record the result of a tool."""
        self._follow(tool, arguments, ToolReturned(self._turn, self._progress.open, tool, result))

    def failed(self, tool: str, arguments: Json, error: Exception) -> None:
        """Record the failure of a tool."""
        why = (error_name(error), error_text(error))
        self._follow(tool, arguments, ToolFailed(self._turn, self._progress.open, tool, *why))

    def _follow(self, tool: str, arguments: Json, outcome: ToolReturned | ToolFailed) -> None:
        """Derive changes from a tool's writes and its result."""
        request = digest(as_data(arguments))
        called = ToolCalled(request, outcome.turn, outcome.agent, tool, arguments=arguments)
        key = self._progress.recorder.call(outcome.turn)
        self._progress.recorder.record(called, f"{key}?")
        self.check_writes()
        self._put(self._now.follow(outcome, f"{key}.0"))

    def check_writes(self) -> None:
        """Derive changes from values that other code has set."""
        before, self._known = self._known, self._seen()
        for name, value in [*self._known.items()]:
            if not alike(value, before.get(name)):
                change = ContextChanged(name, value, before.get(name), CHAT)
                id = self._progress.recorder.place(self._turn if self._progress.open else None)
                self._put(self._now.follow(change, id))

    def check_writes_hook(self, sender: Any, message: Any, recipient: Any, silent: bool) -> Any:
        """Check for writes of the executor, and return the message."""
        self.check_writes()
        return message

    def _run(
        self, hooks: Sequence[Hook], shown: Mapping[str, Json] = NOTHING, agent: str | None = None
    ) -> None:
        scope = f"t{self._turn}" if agent else CHAT
        recorder = HookRecorder(self._progress.recorder, scope, agent)
        self._calls.run(hooks, self._context.to_dict, self._write, shown, recorder=recorder)

    def _write(self, draft: DraftValues, key: str) -> int:
        """Apply a hook's writes and what follows from them; returns the number of facts."""
        facts = [*draft.facts()]
        for number, fact in enumerate(facts):
            id = f"{key}.{number}"
            match fact:
                case ContextChanged(name, removed=True):
                    self._context.remove(name)
                    self._progress.recorder.record(fact, id)
                case ContextChanged(name, value):
                    self._context.set(name, draft.made.get(name, value))
                    self._put(self._now.follow(fact, id))
                case ContextRefused(name, writer, reason):
                    self._progress.recorder.record(fact, id)
                    why = self._secrets.masked(reason)
                    log.warning("%s may not set %s: %s", writer, name, why)
        self._known = self._seen()
        return len(facts)

    def _put(self, changes: Iterable[ContextChanged]) -> None:
        for change in changes:
            self._context.set(change.name, change.value)
            self._known[change.name] = change.value

    def _seen(self) -> dict[str, Any]:
        """Copies of the current values of declared variables."""
        values = self._context.to_dict()
        return {
            name: apart(values[name]) if is_json(values[name]) else values[name]
            for name in self._definitions
            if name in values
        }


class ExposureHook:
    """Shows an agent its exposed variables, updated before each reply."""

    def __init__(self, name: str, variables: Variables, chat: Chat) -> None:
        self._name = name
        self._variables = variables
        self._chat = chat
        self._own_message = ""
        self._shown: str | None = None

    def update(self, agent: ConversableAgent, messages: Any) -> None:
        """Append the current values to the agent's own instructions."""
        if agent.system_message != self._shown:  # changed by other code
            self._own_message = agent.system_message
        agent_spec = Agent(name=self._name, system_message=self._own_message)
        self._shown = view_of(agent_spec, self._variables, self._chat.state).text
        agent.update_system_message(self._shown)
