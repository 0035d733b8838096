"""Engine that answers with a Python function."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from anyio import from_thread, to_thread

from turnloom.adapters.functions.calls import takes_context
from turnloom.agents.spec import Answer, Task
from turnloom.kernel.threads import threads

Reply = str | Answer
Function = Callable[..., Reply | Awaitable[Reply]]


class FunctionEngine:
    """Calls a function with the task: an async one in the event loop, another in a thread.

    Text passed to `task.say` is streamed. If the function has a second parameter for the run's
    variables, as tools have, it receives them.
    """

    def __init__(self, function: Function) -> None:
        self._is_async = inspect.iscoroutinefunction(function)
        self._injected = takes_context(function)
        self._function = function
        self.takes_variables = bool(self._injected)

    async def __call__(self, task: Task) -> Answer:
        """The function's answer to a task."""
        given = dict.fromkeys(self._injected, task.variables)
        if self._is_async:
            answer = self._function(task, **given)
        else:
            # Listeners run in the event loop, and must not be called from a thread.
            relayed = msgspec.structs.replace(task, say=partial(from_thread.run_sync, task.say))
            answer = await to_thread.run_sync(
                partial(self._function, relayed, **given), limiter=threads()
            )
        if inspect.isawaitable(answer):
            answer = await answer
        return Answer(answer) if isinstance(answer, str) else answer
