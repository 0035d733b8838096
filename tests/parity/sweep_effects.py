"""Settings of workers, each with its effect."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from turnloom import Answer, Loom, Task
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.system import SystemClock
from turnloom.errors import UsageError
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import FakeClock


class Elsewhere(InlineScheduler):
    """A scheduler that says that others drive too."""

    drives_elsewhere = True

    async def stranded(self, tenant: str) -> dict[str, str]:
        return {}


async def sweep_of_the_app(folder: str, **settings: Any) -> None:
    asked = asyncio.get_running_loop().create_future()

    class Missed:
        async def overdue(self, seconds: float, limit: int) -> list[RunKey]:
            if not asked.done():
                asked.set_result(seconds)
            return []

    store: Any = MemoryStore(codec())
    store.backlog = Missed()
    given = settings if settings else {"sweep": 0.01}
    async with Loom(store=store, scheduler=Elsewhere(SystemClock()), **given) as app:
        working = asyncio.ensure_future(app.serving.work())
        assert await asked == 0.01
        working.cancel()
        await asyncio.wait({working})


async def sweep_of_a_file(folder: str) -> None:
    Path("turnloom.toml").write_text("sweep = 0.01\n", "utf-8")  # noqa: ASYNC240 - a test
    await sweep_of_the_app(folder, slots=1)


async def scheduler_of_the_app(folder: str) -> None:
    woken: list[str] = []

    class Waking(InlineScheduler):
        async def wake(self, run: RunKey, at: datetime | None = None) -> None:
            woken.append(run.id)
            await super().wake(run, at)

    async def quiet(task: Task) -> Answer:
        return Answer("")

    async with Loom(store="memory", engine=quiet, scheduler=Waking(FakeClock())) as app:
        run = await app.start(folder)
        await run.finished()
        assert woken == [run.id]


async def listening_of_the_app(folder: str, **settings: Any) -> None:
    """A direct URL is for PostgreSQL only; the tests of that store show that it is used."""
    direct = settings or {"listen_url": "postgresql://127.0.0.1:1/x"}
    await Loom(store="postgresql://127.0.0.1:2/x", **direct).aclose()
    with pytest.raises(UsageError):
        Loom(store="memory", **direct)


async def listening_of_a_file(folder: str) -> None:
    Path("turnloom.toml").write_text('listen_url = "postgresql://h/x"\n', "utf-8")  # noqa: ASYNC240
    await listening_of_the_app(folder, slots=1)


SWEEP_SETTINGS: dict[str, Callable[[str], Any]] = {
    "Loom.scheduler": scheduler_of_the_app,
    "Loom.listen_url": listening_of_the_app,
    "Settings.listen_url": listening_of_a_file,
    "Loom.sweep": sweep_of_the_app,
    "Settings.sweep": sweep_of_a_file,
}
