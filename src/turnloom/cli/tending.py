"""What long-lived processes do beside driving runs: start what is scheduled, and keep retention."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from turnloom.app import Loom

_log = logging.getLogger("turnloom.runs")


@asynccontextmanager
async def tended(app: Loom) -> AsyncGenerator[None]:
    """Fire the schedules of an app, and remove runs whose time is over, while the context is open.
    What fails is logged at once, and stops nothing else."""
    tasks = [
        asyncio.ensure_future(app.schedules.serve()),
        asyncio.ensure_future(app.upkeep.keep_retention()),
    ]
    for task in tasks:
        task.add_done_callback(_report)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _report(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s", error)
