"""An engine that answers with a Python function."""

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
    """Asks a function of a task: an async one in the event loop, a plain one in a thread.

    What it passes to `task.say` is heard while it goes on. One that has a second parameter for the
    run's variables, as tools have, is given them.
    """

    def __init__(self, function: Function) -> None:
        self._is_async = inspect.iscoroutinefunction(function)
        self._injected = takes_context(function)
        self._function = function
        self.takes_variables = bool(self._injected)

    async def __call__(self, task: Task) -> Answer:
        """What the function says to the task."""
        given = dict.fromkeys(self._injected, task.variables)
        if self._is_async:
            said = self._function(task, **given)
        else:
            # Who listens is in the loop, and must not be called from a thread.
            heard = msgspec.structs.replace(task, say=partial(from_thread.run_sync, task.say))
            said = await to_thread.run_sync(
                partial(self._function, heard, **given), limiter=threads()
            )
        if inspect.isawaitable(said):
            said = await said
        return Answer(said) if isinstance(said, str) else said
