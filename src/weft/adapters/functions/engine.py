"""An engine that answers with a Python function."""

import inspect
from collections.abc import Awaitable, Callable

from anyio import to_thread

from weft.agents.spec import Answer, Task

Reply = str | Answer
Function = Callable[[Task], Reply | Awaitable[Reply]]


class FunctionEngine:
    """Asks a function: an async one in the event loop, a plain one in a thread."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)

    async def __call__(self, task: Task) -> Answer:
        """What the function says to the task."""
        said = (
            self._function(task)
            if self._is_async
            else await to_thread.run_sync(self._function, task)
        )
        if inspect.isawaitable(said):
            said = await said
        return Answer(said) if isinstance(said, str) else said
