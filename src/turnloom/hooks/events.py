"""Events of lifecycle hooks and message hooks."""

from typing import ClassVar

from turnloom.kernel.values import Json
from turnloom.log.spec import Fact, Intent


class MessageHookCalled(Intent, frozen=True):
    """A message hook is about to run."""

    kind: ClassVar[str] = "message_hook.called"
    turn: int
    agent: str
    hook_type: str
    function: str
    file: str


class MessageHooked(Fact, frozen=True):
    """A message hook changed an agent's instructions, input or message to `result`."""

    kind: ClassVar[str] = "message_hook.returned"
    turn: int
    agent: str
    hook_type: str
    function: str
    file: str
    result: Json


class MessageHookFailed(Fact, frozen=True):
    """A message hook failed; the message is withheld."""

    kind: ClassVar[str] = "message_hook.failed"
    turn: int
    agent: str
    hook_type: str
    function: str
    file: str
    error: str
    message: str
    stack: str = ""


class LifecycleToolCall(Intent, frozen=True):
    """A hook is about to run; `agent` has the turn."""

    kind: ClassVar[str] = "lifecycle.tool_call"
    trigger: str
    agent: str | None
    function: str
    file: str
    hook: str
    description: str = ""
    restored: bool = False


class LifecycleToolResult(Fact, frozen=True):
    """A hook succeeded, or was skipped with the reason as `result`."""

    kind: ClassVar[str] = "lifecycle.tool_result"
    recorded: ClassVar[frozenset[str]] = frozenset({"result"})
    trigger: str
    agent: str | None
    function: str
    file: str
    hook: str
    status: str
    elapsed_ms: float
    result: Json
    attempts: int = 1
    restored: bool = False


class LifecycleToolError(Fact, frozen=True):
    """A hook failed; the run continues."""

    kind: ClassVar[str] = "lifecycle.tool_error"
    recorded: ClassVar[frozenset[str]] = frozenset({"message", "stack"})
    trigger: str
    agent: str | None
    function: str
    file: str
    hook: str
    status: str
    elapsed_ms: float
    error: str
    message: str
    attempts: int = 1
    restored: bool = False
    stack: str = ""
