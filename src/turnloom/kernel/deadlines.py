"""Calls of users' code that have so much time, and are left alone if they do not end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from turnloom.kernel.contained import Quit

T = TypeVar("T")

# Seconds that a call has to end when it is to.
GRACE = 1.0


class TimeLimit(TimeoutError):
    """A call took longer than it may, which is not an error of its own."""


async def in_time(call: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """What a call gives, made in a task of its own: what it does to its task is its own affair, and
    an interruption of the caller is told from one that it made itself.

    One that takes too long is cancelled, and left alone if it does not heed that. One that blocked
    the event loop cannot be stopped: what it gives too late does not count.

    Raises:
        TimeLimit: it took too long.
        Quit: it gave up.
    """
    going = asyncio.create_task(call)
    try:
        ended = await _ended(going, seconds)
    finally:
        if going.done():
            _retrieve(going)
        else:
            await _stop(going)
    if not ended:
        raise TimeLimit(f"It took over {seconds:g} s.")
    if going.cancelled():
        raise Quit("CancelledError", "It gave up.")
    return going.result()


async def _ended(going: "asyncio.Task[Any]", seconds: float | None) -> bool:
    """Wait until a task ends, for so many seconds at most; whether it did."""
    loop = asyncio.get_running_loop()
    due = None if seconds is None else loop.time() + seconds
    waiter: asyncio.Future[bool] = loop.create_future()

    def wake(*_: object) -> None:
        if not waiter.done():
            waiter.set_result(going.done() and (due is None or loop.time() <= due))

    going.add_done_callback(wake)
    timer = loop.call_at(due, wake) if due is not None else None
    try:
        return await waiter
    finally:
        going.remove_done_callback(wake)
        if timer is not None:
            timer.cancel()


async def _stop(going: "asyncio.Task[Any]") -> None:
    """Have a task end; one that does not heed it is left alone, and how it ends is not missed."""
    going.add_done_callback(_retrieve)
    going.cancel()
    await _ended(going, GRACE)


def _retrieve(ended: "asyncio.Task[Any]") -> None:
    """Look at how a task ended, which the loop would otherwise complain about."""
    if not ended.cancelled():
        ended.exception()
