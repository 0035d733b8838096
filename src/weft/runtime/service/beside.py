"""Calls that go on at the same time."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def side_by_side(
    calls: Iterable[Coroutine[Any, Any, T]],
) -> AsyncGenerator[list["asyncio.Task[T]"]]:
    """Calls as tasks; what one of them raises comes as it is, and none is left behind."""
    going = [asyncio.create_task(call) for call in calls]
    try:
        yield going
    finally:
        for each in going:
            each.cancel()
        await asyncio.gather(*going, return_exceptions=True)


def is_cancelled() -> bool:
    """Whether somebody wants this task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
