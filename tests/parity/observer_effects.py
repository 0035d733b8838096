"""What settings of schedulers and observers do."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.doors.forms import answer
from turnloom import Event, Loom, UsageError
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec


def configure(text: str) -> None:
    Path("turnloom.toml").write_text(text, "utf-8")


async def scheduler_of_a_file(folder: str) -> None:
    configure('scheduler = "sundial"\n')
    with pytest.raises(UsageError, match="'sundial'"):
        Loom(store="memory")


class Seeing:
    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.may_go = asyncio.Event()

    async def observe(self, event: Event) -> None:
        await self.may_go.wait()
        self.kinds.append(event.kind)


async def observe(folder: str, *, in_time: bool = True, **settings: Any) -> tuple[list[str], int]:
    """What an observer sees of a run that may only go when the run is over, or never; and how much
    it does not."""
    seeing = Seeing()
    async with Loom(store="memory", engine=answer, observers=[seeing], **settings) as app:
        await (await app.start(folder)).finished()
        if in_time:
            seeing.may_go.set()
    return seeing.kinds, app.observers[0].dropped


async def observers_of_the_app(folder: str) -> None:
    kinds, dropped = await observe(folder)
    assert (kinds[0], kinds[-1], dropped) == ("run.started", "run.finished", 0)


async def room_of_the_app(folder: str) -> None:
    kinds, dropped = await observe(folder, observer_queue=1)
    assert len(kinds) == 2 and dropped > 0


async def room_of_a_file(folder: str) -> None:
    configure("observer_queue = 2\n")
    kinds, dropped = await observe(folder)
    assert len(kinds) == 3 and dropped > 0


async def drain_of_the_app(folder: str) -> None:
    kinds, dropped = await observe(folder, in_time=False, observer_drain=0.01)
    assert not kinds and dropped > 0


async def drain_of_a_file(folder: str) -> None:
    configure("observer_drain = 0.01\n")
    kinds, dropped = await observe(folder, in_time=False)
    assert not kinds and dropped > 0


class Counts:
    """Counts the calls that it stands around."""

    calls = 0

    async def around_call(self, task: Any, call_next: Any) -> Any:
        self.calls += 1
        return await call_next(task)


async def components_of_the_app(folder: str) -> None:
    counts = Counts()
    async with Loom(store="memory", engine=answer, components=[counts]) as app:
        await (await app.start(folder)).finished()
    assert counts.calls == 1


async def lease_of(folder: str, **settings: Any) -> float:
    """How long a run is left to an app that does not renew its claim."""
    asked = asyncio.Event()

    async def hang(task: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    async with Loom(store="runs.db", engine=hang, **settings) as app:
        run = await app.start(folder)
        await asked.wait()
        async with aclosing(SqliteStore("runs.db", codec())) as store:
            holder = await store.claims.held(RunKey("local", run.id))
    assert holder is not None and holder.seconds is not None
    return holder.seconds


async def lease_of_the_app(folder: str) -> None:
    assert await lease_of(folder) < 31 < 500 < await lease_of(folder, lease=1000)


async def lease_of_a_file(folder: str) -> None:
    configure("lease = 1000\n")
    assert await lease_of(folder) > 500


OBSERVER_SETTINGS: dict[str, Callable[[str], Any]] = {
    "Settings.scheduler": scheduler_of_a_file,
    "Loom.observers": observers_of_the_app,
    "Loom.components": components_of_the_app,
    "Loom.observer_queue": room_of_the_app,
    "Settings.observer_queue": room_of_a_file,
    "Loom.observer_drain": drain_of_the_app,
    "Settings.observer_drain": drain_of_a_file,
    "Loom.lease": lease_of_the_app,
    "Settings.lease": lease_of_a_file,
}
