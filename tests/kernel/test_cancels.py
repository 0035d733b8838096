"""Cancels that the code inside a block loses."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from turnloom.kernel.cancels import heeding_cancels


async def lost() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return


async def replaced() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise OSError("the connection broke") from None


async def raised() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize("work", [lost, replaced, raised])
async def test_a_cancelled_task_ends(work: Callable[[], Awaitable[None]]) -> None:
    went_on: list[bool] = []

    async def going() -> None:
        with heeding_cancels():
            await work()
        went_on.append(True)

    task = asyncio.ensure_future(going())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not went_on


async def test_a_time_limit_inside_is_no_cancel() -> None:
    with pytest.raises(TimeoutError), heeding_cancels():
        async with asyncio.timeout(0):
            await asyncio.sleep(60)


async def test_what_was_cancelled_before_may_clean_up() -> None:
    cleaned: list[bool] = []

    async def going() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            with heeding_cancels():
                await asyncio.sleep(0)
            cleaned.append(True)

    task = asyncio.ensure_future(going())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert cleaned


async def test_errors_pass() -> None:
    with pytest.raises(ValueError, match="wrong"), heeding_cancels():
        raise ValueError("wrong")
