"""Calls that go on at the same time."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeVar

J = TypeVar("J")
T = TypeVar("T")


async def side_by_side(
    jobs: Sequence[J], call: Callable[[J], Awaitable[T]]
) -> AsyncGenerator[tuple[J, T]]:
    """Each job with what its call gave, as soon as it is there.

    What one of them raises comes as it is, and none is left behind. Those that are done at the
    same time come in their order.
    """
    going = {asyncio.ensure_future(call(job)): job for job in jobs}
    left = set(going)
    try:
        while left:
            await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in going if task in left and task.done()]:
                left.discard(task)
                yield going[task], task.result()
    finally:
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
