"""The engines and the component of the desk."""

from collections.abc import Awaitable, Callable

import msgspec

from turnloom import Answer, Task


def draft(task: Task) -> str:
    """A first answer, which only the next engine sees."""
    return "we lost it"


def polish(task: Task) -> str:
    """The answer that counts."""
    return f"Dear customer, {task.exchanges[-1].text}."


class Signing:
    """Signs the answers of an agent."""

    async def around_call(
        self, task: Task, call_next: Callable[[Task], Awaitable[Answer]]
    ) -> Answer:
        """Call the engine, and sign its answer, unless it is the first engine."""
        answer = await call_next(task)
        if not task.exchanges:
            return answer
        return msgspec.structs.replace(answer, text=f"{answer.text} Yours, {task.agent}.")


def signing() -> Signing:
    """The component of the clerk."""
    return Signing()
