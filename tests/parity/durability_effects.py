"""What the settings for durability do."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from tests.parity.observer_effects import configure
from turnloom import Answer, Loom, Task
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.wiring.opening import open_store
from turnloom.wiring.settings import settings


async def stored_when_asked(folder: str, **given: Any) -> list[str]:
    """What was on record of a run when its model was called."""
    seen: list[str] = []

    async with aclosing(SqliteStore("durable.db", codec())) as store:

        async def engine(task: Task) -> Answer:
            ((_, last),) = await store.log.runs("local", 1)
            seen.append(last.kind)
            return Answer("Fine.")

        async with Loom(store="durable.db", engine=engine, **given) as app:
            run = await app.start(folder)
            await run.finished()
    return seen


async def durability_of_the_app(folder: str) -> None:
    assert await stored_when_asked(folder, durability="effect") == ["model.called"]
    assert "model.called" not in await stored_when_asked(folder, durability="turn")


async def durability_of_a_file(folder: str) -> None:
    configure('durability = "turn"\n')
    assert "model.called" not in await stored_when_asked(folder)


async def level(**given: Any) -> int:
    """How thoroughly commits of an app are synced: 1 is normal, 2 is full."""
    store: Any = open_store(settings({"store": "synced.db", **given}))
    async with aclosing(store):
        await store.snapshots.save(("local", "a"), 1, b"")
        writer = store._database._background._writer or store._database._writer
        return writer.execute("PRAGMA synchronous").fetchone()[0]


async def synchronous_of_the_app(folder: str) -> None:
    assert [await level(), await level(synchronous="full")] == [1, 2]


async def synchronous_of_a_file(folder: str) -> None:
    configure('synchronous = "full"\n')
    assert await level() == 2


DURABILITY_SETTINGS: dict[str, Callable[[str], Any]] = {
    "Loom.durability": durability_of_the_app,
    "Settings.durability": durability_of_a_file,
    "Loom.synchronous": synchronous_of_the_app,
    "Settings.synchronous": synchronous_of_a_file,
}
