"""Record a group chat as the log of a run, with secrets masked."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.conversation.events import RouteDecided
from turnloom.hooks.events import LifecycleToolCall, LifecycleToolError, LifecycleToolResult
from turnloom.hooks.spec import Hook
from turnloom.kernel.contained import error_name
from turnloom.kernel.digests import digest
from turnloom.kernel.marks import mark
from turnloom.kernel.values import Json, error_text
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Fact
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextChanged, ContextLoaded, ContextRefused
from turnloom.variables.events import InitialValue as First
from turnloom.variables.logic.resolution import ResolvedContext
from turnloom.variables.logic.secrets import NO_SECRETS, Secrets, received_fact
from turnloom.variables.logic.types import is_json
from turnloom.variables.logic.writing import DraftValues, ephemeral
from turnloom.variables.spec import VariableDefinition, Variables


class ChatSecrets:
    """The secrets of a chat: all values that its secret variables have had.

    The chat's own code may set them at any time, so they are read before each fact.
    """

    def __init__(
        self, context: ContextVariables, definitions: Mapping[str, VariableDefinition]
    ) -> None:
        self._context = context
        self._seen: dict[str, list[Json]] = {
            name: [] for name, each in definitions.items() if each.secret
        }
        self._secrets = NO_SECRETS

    @property
    def secrets(self) -> Secrets:
        """The current secrets."""
        current = [(name, self._context.get(name)) for name in self._seen]
        unseen = [(name, value) for name, value in current if self._is_unseen(name, value)]
        for name, value in unseen:
            self._seen[name].append(value)
        if unseen:
            self._secrets = Secrets({name: seen for name, seen in self._seen.items() if seen})
        return self._secrets

    def _is_unseen(self, name: str, value: Any) -> bool:
        return value is not None and is_json(value) and value not in self._seen[name]

    def masked(self, text: str) -> str:
        """A text with secrets masked."""
        return self.secrets.masked(text)

    def shown(self, name: str, value: Json) -> Json:
        """The value of a variable, masked if it is secret."""
        return mark(name) if name in self._seen and value is not None else value

    def masked_fact(self, fact: Fact) -> Fact:
        """A fact with secrets masked."""
        secrets = self.secrets
        if isinstance(fact, ContextChanged) and fact.name in self._seen:
            value, previous = (self.shown(fact.name, each) for each in (fact.value, fact.previous))
            fact = msgspec.structs.replace(fact, value=value, previous=previous)
        received = received_fact(fact)
        return secrets.mask(received) if secrets else received


# The reason of a route that the chat chose.
CHAT_DECISION = "the chat decided"


class ChatRun(Protocol):
    """A recorded run."""

    def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Record a fact, and return its position."""
        ...

    def end(self) -> None:
        """Release the run."""
        ...


class ChatRunStore(Protocol):
    """Store for runs of chats."""

    def load(self, workflow: LoadedWorkflow, variables: Variables) -> ResolvedContext:
        """The initial values of variables, as in a run of the workflow."""
        ...

    def begin(self, workflow: LoadedWorkflow) -> ChatRun:
        """Begin a recorded run."""
        ...


class RecordedFact(NamedTuple):
    """The id and the position of a recorded fact."""

    id: str
    seq: int


class NoRecord:
    """The record of a chat without a store."""

    def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Discard the fact."""
        return 0

    def end(self) -> None:
        """Do nothing."""


class ChatRecorder:
    """Records the facts of a chat, with ids that name their turn, and with causes."""

    def __init__(self, recorded: ChatRun, secrets: ChatSecrets) -> None:
        self._run = recorded
        self._secrets = secrets
        self._count = 0
        self._last: int | None = None

    def call(self, turn: int) -> str:
        """The id of the next tool call in a turn."""
        self._count += 1
        return f"t{turn}/model/tool.{self._count}"

    def place(self, turn: int | None) -> str:
        """The id of the next fact in a turn, or outside of turns."""
        self._count += 1
        return f"t{turn}/chat.{self._count}" if turn else f"chat/{self._count}"

    def record(self, fact: Fact, id: str = "") -> RecordedFact:
        """Record a fact that follows the previous one."""
        recorded = self._record(fact, id or self.place(getattr(fact, "turn", None)), self._last)
        self._last = recorded.seq
        return recorded

    def derive(self, change: ContextChanged | ContextRefused, cause: RecordedFact) -> RecordedFact:
        """Record a change that a trigger derived from a fact."""
        return self._record(change, f"{cause.id}>{change.name}", cause.seq)

    def _record(self, fact: Fact, id: str, cause: int | None) -> RecordedFact:
        actor = getattr(fact, "writer", "driver")
        recorded = self._secrets.masked_fact(_plain(fact))
        return RecordedFact(id, self._run.record(id, recorded, actor, cause))

    def decide(self, source: str, target: str) -> None:
        """Record that the chat chose the next speaker; its reason is unknown."""
        self.record(RouteDecided(source, target, CHAT_DECISION))

    def end(self, status: str, error: BaseException | None) -> None:
        """Record how the chat ended."""
        fact: Fact = RunFinished()
        if status == "failed":
            fact = RunFailed(type(error).__name__, error_text(error) if error else "")
        elif status == "cancelled":
            fact = RunCancelled("chat")
        self.record(fact, id="end")
        self._run.end()


# Begins the record of a chat.
Begin = Callable[[], ChatRun]


def recorded(records: ChatRunStore, workflow: LoadedWorkflow) -> Begin:
    """A function that begins a run of a workflow in a store."""
    return lambda: records.begin(workflow)


class ChatHookEnd(NamedTuple):
    """How a hook ended: its writes, its error, its duration in milliseconds, and its attempts."""

    draft: DraftValues
    problem: Exception | None
    took: float
    attempts: int


class HookRecorder:
    """Records the hooks of one trigger point, in an agent's turn or in the chat as a whole."""

    def __init__(self, recorder: ChatRecorder, scope: str, agent: str | None) -> None:
        self._recorder = recorder
        self._scope = scope
        self._agent = agent

    def begun(self, hook: Hook) -> None:
        """Record the start of a hook."""
        about, recorded = self._about(hook), hook.declared.description
        fact = LifecycleToolCall(digest(hook.name), *about, recorded)
        self._recorder.record(fact, id=f"{self.key(hook)}?")

    def key(self, hook: Hook) -> str:
        """The id of a hook's call."""
        return f"{self._scope}/{hook.declared.trigger}.{hook.number}"

    def skipped(self, hook: Hook, why: str) -> None:
        """Record that a hook is skipped."""
        fact = LifecycleToolResult(*self._about(hook), "skipped", 0.0, why, 0)
        self._recorder.record(fact, id=f"{self.key(hook)}.0")

    def ended(self, hook: Hook, ended: "ChatHookEnd", written: int) -> None:
        """Record the end of a hook, after the given number of writes."""
        about, fact = self._about(hook), None
        if ended.problem is None:
            fact = LifecycleToolResult(*about, "success", ended.took, None, ended.attempts)
        else:
            why = (error_name(ended.problem), error_text(ended.problem))
            fact = LifecycleToolError(*about, "error", ended.took, *why, ended.attempts)
        self._recorder.record(fact, id=f"{self.key(hook)}.{written}")

    def _about(self, hook: Hook) -> tuple[str, str | None, str, str, str]:
        declared = hook.declared
        return declared.trigger, self._agent, declared.function, declared.file, hook.name


def first_values(
    values: Mapping[str, Any], own: Mapping[str, First], secrets: ChatSecrets
) -> ContextLoaded:
    """The initial values of a chat: those that it was given, and `own` from the workflow's
    sources."""

    def first(name: str, value: Any) -> First:
        plain = secrets.shown(name, value if is_json(value) else ephemeral(value))
        if name not in own:
            return First(name, "chat", plain)
        return msgspec.structs.replace(own[name], value=plain)

    return ContextLoaded(tuple(first(name, value) for name, value in values.items()))


def _plain(fact: Fact) -> Fact:
    """A fact that can be stored: values that are not JSON are replaced by a description."""
    if not isinstance(fact, ContextChanged) or (is_json(fact.value) and is_json(fact.previous)):
        return fact
    value, previous = (
        each if is_json(each) else ephemeral(each) for each in (fact.value, fact.previous)
    )
    return msgspec.structs.replace(
        fact, value=value, previous=previous, ephemeral=not is_json(fact.value)
    )
