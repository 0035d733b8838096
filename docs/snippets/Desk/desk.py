"""Who answers at the desk, and what stands around it."""

from collections.abc import Awaitable, Callable

import msgspec

from turnloom import Answer, Task


def draft(task: Task) -> str:
    """A first answer, which nobody but the next engine is told."""
    return "we lost it"


def polish(task: Task) -> str:
    """The answer that counts."""
    return f"Dear customer, {task.exchanges[-1].text}."


class Signing:
    """Signs the answers of an agent."""

    async def around_call(
        self, task: Task, call_next: Callable[[Task], Awaitable[Answer]]
    ) -> Answer:
        """Ask the engine, and sign what it says, unless it is the first that is asked."""
        answer = await call_next(task)
        if not task.exchanges:
            return answer
        return msgspec.structs.replace(answer, text=f"{answer.text} Yours, {task.agent}.")


def signing() -> Signing:
    """The component of the clerk."""
    return Signing()
