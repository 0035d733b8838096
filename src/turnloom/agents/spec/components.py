"""What users put around turns and calls."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from turnloom.agents.spec.tasks import Answer, Task
from turnloom.assembly.spec.providers import TurnContext


@runtime_checkable
class TurnComponent(Protocol):
    """Wraps whole turns: it goes on by calling `call_next`, once."""

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Take the turn; what `ctx.state` holds by then, providers find there."""
        ...


@runtime_checkable
class CallComponent(Protocol):
    """Wraps single calls of engines."""

    async def around_call(
        self, task: Task, call_next: Callable[[Task], Awaitable[Answer]]
    ) -> Answer:
        """The answer to a task."""
        ...


Component = TurnComponent | CallComponent
