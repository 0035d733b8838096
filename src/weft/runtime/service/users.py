"""Functions of users, called in bounded time: async ones in the loop, plain ones in a thread."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from weft.kernel.contained import contained

# How many plain functions are asked at once; what takes long elsewhere does not hold them up.
AT_ONCE = 40

_limiter: RunVar[CapacityLimiter] = RunVar("weft-user-code")


async def ask_user_code(function: Callable[..., Any], *args: Any, deadline: float) -> Any:
    """What a function gives; waiting for its turn is not its own time.

    Raises:
        TimeoutError: it took too long.
        Quit: it left the program, or the like.
        Exception: whatever it raises.
    """
    with contained():
        if inspect.iscoroutinefunction(function):
            with anyio.fail_after(deadline):
                return await function(*args)
        limiter = _limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(AT_ONCE)
            _limiter.set(limiter)
        async with limiter:
            given = await _in_thread(function, args, deadline)
    return given


async def _in_thread(function: Callable[..., Any], args: tuple[Any, ...], deadline: float) -> Any:
    with anyio.fail_after(deadline):
        unlimited = CapacityLimiter(1)
        called = partial(function, *args)
        given = await to_thread.run_sync(called, abandon_on_cancel=True, limiter=unlimited)
        return await given if inspect.isawaitable(given) else given
