"""Functions of users, called in bounded time: async ones in the loop, plain ones in a thread."""

from collections.abc import Callable
from typing import Any

import anyio
from anyio import CapacityLimiter

from turnloom.kernel.contained import called, contained
from turnloom.kernel.threads import threads
from turnloom.kernel.values import preview

# Functions that only answer a question: what takes long elsewhere does not hold them up.
SHORT = "questions"

# What booleans are called: Python's own, and those of arrays.
_BOOLEANS = ("bool", "bool_")


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


async def ask_condition(function: Callable[..., Any], *args: Any, deadline: float) -> bool:
    """Whether a condition holds, by a function that says so.

    Raises:
        TypeError: it says neither yes nor no, as a function without `return` does.
        TimeoutError: it took too long.
        Exception: whatever it raises.
    """
    verdict = await ask_user_code(function, *args, deadline=deadline)
    if type(verdict).__name__ not in _BOOLEANS:
        raise TypeError(f"A condition gives True or False, and this one gave {preview(verdict)}.")
    return bool(verdict)
