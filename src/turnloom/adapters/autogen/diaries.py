"""Record a group chat as the log of a run, without its secrets."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.conversation.events import RouteDecided
from turnloom.hooks.events import LifecycleToolCall, LifecycleToolError, LifecycleToolResult
from turnloom.hooks.spec import Hook
from turnloom.kernel.contained import named
from turnloom.kernel.digests import digest
from turnloom.kernel.marks import mark
from turnloom.kernel.values import Json, said
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Fact
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextChanged, ContextLoaded, ContextRefused
from turnloom.variables.events import InitialValue as First
from turnloom.variables.logic.resolution import Resolved
from turnloom.variables.logic.secrets import NO_SECRETS, Secrets, received_fact
from turnloom.variables.logic.types import is_json
from turnloom.variables.logic.writing import DraftValues, ephemeral
from turnloom.variables.spec import VariableDefinition, Variables


class Confidence:
    """The secrets of a chat: every value that its secret variables had so far.

    The chat's own code may set them at any time, so they are read whenever something is told.
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
        """The secrets by now."""
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
        """A text without the secrets."""
        return self.secrets.masked(text)

    def shown(self, name: str, value: Json) -> Json:
        """The value of a variable as it may be told."""
        return mark(name) if name in self._seen and value is not None else value

    def masked_fact(self, fact: Fact) -> Fact:
        """A fact without the secrets."""
        secrets = self.secrets
        if isinstance(fact, ContextChanged) and fact.name in self._seen:
            value, previous = (self.shown(fact.name, each) for each in (fact.value, fact.previous))
            fact = msgspec.structs.replace(fact, value=value, previous=previous)
        received = received_fact(fact)
        return secrets.mask(received) if secrets else received


# Why somebody has a turn, as far as it is known.
DECIDED = "the chat decided"


class ChatRun(Protocol):
    """A run on record."""

    def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Put a fact on record; its place."""
        ...

    def end(self) -> None:
        """Let go of the run."""
        ...


class ChatRunStore(Protocol):
    """Where chats are put on record."""

    def load(self, workflow: LoadedWorkflow, variables: Variables) -> Resolved:
        """The first values of variables, as a run of the workflow would have them."""
        ...

    def begin(self, workflow: LoadedWorkflow) -> ChatRun:
        """A run whose beginning is on record."""
        ...


class Told(NamedTuple):
    """Where a fact is on record: under which id, at which place."""

    id: str
    seq: int


class Unrecorded:
    """The record of a chat that nobody keeps."""

    def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Forget it."""
        return 0

    def end(self) -> None:
        """Let go of nothing."""


class Diary:
    """Gives what happens in a chat its ids, which say to which turn it belongs, and its causes."""

    def __init__(self, recorded: ChatRun, confidence: Confidence) -> None:
        self._recorded = recorded
        self._confidence = confidence
        self._count = 0
        self._last: int | None = None

    def call(self, turn: int) -> str:
        """What the next call of a tool in a turn is known by: some model wanted it."""
        self._count += 1
        return f"t{turn}/model/tool.{self._count}"

    def place(self, turn: int | None) -> str:
        """What the next fact is known by that belongs to a turn, or to none."""
        self._count += 1
        return f"t{turn}/chat.{self._count}" if turn else f"chat/{self._count}"

    def tell(self, fact: Fact, id: str = "") -> Told:
        """Put a fact on record that follows from what came before."""
        told = self._tell(fact, id or self.place(getattr(fact, "turn", None)), self._last)
        self._last = told.seq
        return told

    def derive(self, change: ContextChanged | ContextRefused, cause: Told) -> Told:
        """Put on record what a trigger made of a fact."""
        return self._tell(change, f"{cause.id}>{change.name}", cause.seq)

    def _tell(self, fact: Fact, id: str, cause: int | None) -> Told:
        actor = getattr(fact, "writer", "driver")
        told = self._confidence.masked_fact(_plain(fact))
        return Told(id, self._recorded.record(id, told, actor, cause))

    def decide(self, source: str, target: str) -> None:
        """Tell that the chat gave somebody a turn; why, it alone knows."""
        self.tell(RouteDecided(source, target, DECIDED))

    def end(self, status: str, error: BaseException | None) -> None:
        """Tell how the chat ended; nothing follows."""
        fact: Fact = RunFinished()
        if status == "failed":
            fact = RunFailed(type(error).__name__, said(error) if error else "")
        elif status == "cancelled":
            fact = RunCancelled("chat")
        self.tell(fact, id="end")
        self._recorded.end()


# Begins to put a chat on record.
Begin = Callable[[], ChatRun]


def recorded(records: ChatRunStore, workflow: LoadedWorkflow) -> Begin:
    """Put a chat on record as a run of a workflow."""
    return lambda: records.begin(workflow)


class ChatHookEnd(NamedTuple):
    """How a hook ended: what it wrote, what went wrong; after how long and how many attempts."""

    draft: DraftValues
    problem: Exception | None
    took: float
    attempts: int


class HookDiary:
    """Tells of the hooks of one moment: in a turn of somebody, or of the chat as a whole."""

    def __init__(self, diary: Diary, scope: str, agent: str | None) -> None:
        self._diary = diary
        self._scope = scope
        self._agent = agent

    def begun(self, hook: Hook) -> None:
        """A hook is about to run."""
        about, told = self._about(hook), hook.declared.description
        fact = LifecycleToolCall(digest(hook.name), *about, told)
        self._diary.tell(fact, id=f"{self.key(hook)}?")

    def key(self, hook: Hook) -> str:
        """What the call of a hook is known by."""
        return f"{self._scope}/{hook.declared.trigger}.{hook.number}"

    def skipped(self, hook: Hook, why: str) -> None:
        """A hook does not run, for a reason."""
        fact = LifecycleToolResult(*self._about(hook), "skipped", 0.0, why, 0)
        self._diary.tell(fact, id=f"{self.key(hook)}.0")

    def ended(self, hook: Hook, ended: "ChatHookEnd", written: int) -> None:
        """A hook ended, well or not, after so many writes were told."""
        about, fact = self._about(hook), None
        if ended.problem is None:
            fact = LifecycleToolResult(*about, "success", ended.took, None, ended.attempts)
        else:
            why = (named(ended.problem), said(ended.problem))
            fact = LifecycleToolError(*about, "error", ended.took, *why, ended.attempts)
        self._diary.tell(fact, id=f"{self.key(hook)}.{written}")

    def _about(self, hook: Hook) -> tuple[str, str | None, str, str, str]:
        declared = hook.declared
        return declared.trigger, self._agent, declared.function, declared.file, hook.name


def first_values(
    values: Mapping[str, Any], own: Mapping[str, First], confidence: Confidence
) -> ContextLoaded:
    """What a chat begins with: what it was given, and `own` as the workflow's sources gave it."""

    def first(name: str, value: Any) -> First:
        plain = confidence.shown(name, value if is_json(value) else ephemeral(value))
        if name not in own:
            return First(name, "chat", plain)
        return msgspec.structs.replace(own[name], value=plain)

    return ContextLoaded(tuple(first(name, value) for name, value in values.items()))


def _plain(fact: Fact) -> Fact:
    """A fact as it can be written down: what is not JSON is only pictured."""
    if not isinstance(fact, ContextChanged) or (is_json(fact.value) and is_json(fact.previous)):
        return fact
    value, previous = (
        each if is_json(each) else ephemeral(each) for each in (fact.value, fact.previous)
    )
    return msgspec.structs.replace(
        fact, value=value, previous=previous, ephemeral=not is_json(fact.value)
    )
