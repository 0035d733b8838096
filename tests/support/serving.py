"""Runs that are driven while a test goes on, and what is waited for meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weft.log.spec import Event
from weft.runtime.service.runs import Runs, World


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[Runs]:
    """The runs of a world, driven until the block ends."""
    runs = Runs(world)
    task = asyncio.create_task(runs.serve(10))
    try:
        yield runs
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(runs: Runs, run: str, kind: str, after: int = 0) -> Event:
    """The next event of a kind."""
    async for event in runs.events(run, after):
        if event.kind == kind:
            return event
    raise AssertionError(f"{kind} never came")
