"""Functions of users, called in bounded time: async ones in the loop, plain ones in a thread."""

from collections.abc import Callable
from typing import Any

import anyio
from anyio import CapacityLimiter

from turnloom.kernel.contained import called, contained
from turnloom.kernel.threads import threads

# Functions that only answer a question: what takes long elsewhere does not hold them up.
SHORT = "questions"


async def ask_user_code(function: Callable[..., Any], *args: Any, deadline: float) -> Any:
    """What a function gives; waiting for its turn is not its own time.

    Raises:
        TimeoutError: it took too long.
        Quit: it left the program, or the like.
        Exception: whatever it raises.
    """
    with contained():
        async with threads(SHORT):
            with anyio.fail_after(deadline):
                return await called(function, *args, limiter=CapacityLimiter(1))
