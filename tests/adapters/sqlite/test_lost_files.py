"""A file that is deleted or replaced while it is open is noticed before anything else is done."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from turnloom import Document, Flow, Loom, RagCollection, StoreUnavailable
from turnloom.adapters.sqlite import SqliteStore, queries
from turnloom.adapters.sqlite.connections import WAL_INTERVAL
from turnloom.errors import CollectionUnavailable
from turnloom.testing.contracts import CODEC, events
from turnloom.testing.contracts.facts import key


class State(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int = 0


def delete(path: Path) -> None:
    path.unlink()


def delete_the_end(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def delete_the_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    with closing(sqlite3.connect(other)) as made:
        made.execute("CREATE TABLE t (n)")
    os.replace(other, path)


LOSSES = [delete, delete_the_end, delete_the_folder, move, replace]


@pytest.mark.parametrize("lose", LOSSES)
async def test_no_effect_follows_a_loss(lose: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "store" / "runs.db"
    done: list[str] = []

    async def first(state: State) -> None:
        done.append("first")
        lose(path)
        await asyncio.sleep(2 * WAL_INTERVAL)

    def second(state: State) -> None:
        done.append("second")

    flow = Flow("loses", State).start_with(first).finally_(second)
    async with Loom(store=path) as app:
        with pytest.raises(StoreUnavailable) as raised:
            await app.run(flow)
        assert str(path) in str(raised.value)
        with pytest.raises(StoreUnavailable):
            await app.runs()
    assert done == ["first"]


@pytest.mark.parametrize("lose", LOSSES)
async def test_followers_are_told(lose: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "store" / "runs.db"
    async with aclosing(SqliteStore(path, CODEC)) as store:
        await store.log.append(key("a"), events("a", 1), 0)
        live = store.log.subscribe(key("a"))
        await anext(live)
        following = asyncio.ensure_future(anext(live))
        await asyncio.sleep(0)
        lose(path)
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(following, 60)


async def test_a_file_that_took_the_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with aclosing(SqliteStore(path, CODEC)) as lost:
        await lost.log.append(key("a"), events("a", 1), 0)
        for end in ("", "-wal", "-shm"):
            os.unlink(f"{path}{end}")
        async with aclosing(SqliteStore(path, CODEC)) as store:
            await store.log.append(key("b"), events("b", 1), 0)
            with pytest.raises(StoreUnavailable):
                await lost.log.append(key("a"), events("a", 1, 1), 1)
            await lost.aclose()
            await store.log.append(key("b"), events("b", 1, 1), 1)
    async with aclosing(SqliteStore(path, CODEC)) as again:
        assert len(await again.log.read(key("b"))) == 2
        assert not await again.log.read(key("a"))


async def test_a_schema_that_another_release_changed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with aclosing(SqliteStore(path, CODEC)) as store:
        async with store.claims.claim(key("a")) as fence:
            await store.log.append(key("a"), events("a", 1), 0, fence)
        with closing(sqlite3.connect(path)) as other:
            other.execute(f"PRAGMA user_version = {queries.VERSION + 1}")
        with pytest.raises(StoreUnavailable):
            async with store.claims.claim(key("a")):
                raise AssertionError("It is driven.")
        with pytest.raises(StoreUnavailable):
            await store.log.append(key("a"), events("a", 1, 1), 1)


class Handbook(RagCollection):
    pass


async def test_a_collection_whose_file_is_gone_is_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    async with Loom(store="memory", vectors=f"sqlite:{path}") as app:
        handbook: Any = app.collection(Handbook)
        await handbook.add([Document("a", "red fish")])
        path.unlink()
        with pytest.raises(CollectionUnavailable):
            await handbook.search("red fish")
