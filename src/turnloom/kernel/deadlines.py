"""Time limits for calls of user code; a call that ignores cancellation is abandoned."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from turnloom.kernel.contained import Quit

T = TypeVar("T")

# Seconds that a cancelled call has to end.
GRACE = 1.0


class TimeLimit(TimeoutError):
    """A call exceeded its time limit, as opposed to raising a TimeoutError itself."""


async def in_time(call: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """Await a call in a separate task, which separates its own cancellation from that of the
    caller, and return its result.

    A call that takes too long is cancelled, and abandoned if it ignores that. A call that blocks
    the event loop cannot be stopped; its late result is dropped.

    Raises:
        TimeLimit: the call took too long.
        Quit: the call cancelled itself.
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
        raise Quit("CancelledError", "It cancelled itself.")
    return going.result()


async def uninterrupted(call: Coroutine[Any, Any, T]) -> T:
    """Await a call to its end, also if the caller is cancelled meanwhile; the cancellation is
    raised after it."""
    going = asyncio.create_task(call)
    cancelled: asyncio.CancelledError | None = None
    while not going.done():
        try:
            await asyncio.wait((going,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        _retrieve(going)
        raise cancelled
    return going.result()


async def _ended(going: "asyncio.Task[Any]", seconds: float | None) -> bool:
    """Wait for a task to end, for `seconds` at most; whether it did."""
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
    """Cancel a task, and abandon it if it does not end within the grace period."""
    going.add_done_callback(_retrieve)
    going.cancel()
    await _ended(going, GRACE)


def _retrieve(ended: "asyncio.Task[Any]") -> None:
    """Retrieve a task's exception, so that the loop does not log it as unretrieved."""
    if not ended.cancelled():
        ended.exception()
