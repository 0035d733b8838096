"""Functions of users, called in bounded time: async ones in the loop, plain ones in a thread."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio import to_thread


async def ask_user_code(function: Callable[..., Any], *args: Any, deadline: float) -> Any:
    """What a function gives.

    Raises:
        TimeoutError: it took too long.
        Exception: whatever it raises.
    """
    with anyio.fail_after(deadline):
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        given = await to_thread.run_sync(partial(function, *args), abandon_on_cancel=True)
        return await given if inspect.isawaitable(given) else given
