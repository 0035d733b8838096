"""Functions of users, called in bounded time: async ones in the loop, plain ones in a thread."""

from collections.abc import Callable
from typing import Any

import anyio
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from turnloom.kernel.contained import called, contained

# How many functions are asked at once; what takes long elsewhere does not hold them up.
AT_ONCE = 40

_limiter: RunVar[CapacityLimiter] = RunVar("turnloom-user-code")


async def ask_user_code(function: Callable[..., Any], *args: Any, deadline: float) -> Any:
    """What a function gives; waiting for its turn is not its own time.

    Raises:
        TimeoutError: it took too long.
        Quit: it left the program, or the like.
        Exception: whatever it raises.
    """
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(AT_ONCE)
        _limiter.set(limiter)
    with contained():
        async with limiter:
            with anyio.fail_after(deadline):
                return await called(function, *args, limiter=CapacityLimiter(1))
