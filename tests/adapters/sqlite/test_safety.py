"""A store keeps its files to its owner, trusts no name in them, and no claim outlives its task."""

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.folders import write_folder
from turnloom import Document, Loom, RagCollection
from turnloom.adapters.sqlite import SqliteStore
from turnloom.errors import RunBusy
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec

KEY = RunKey("local", "r")
SLOW = {
    "orchestrator.yaml": "{initial_agent: Sleeper}",
    "agents.yaml": "agents: {Sleeper: {system_message: Sleep.}}",
}


def open_files(folder: Path) -> list[str]:
    """What others than its owner may look into."""
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    return [name for name, mode in files.items() if mode & 0o077]


async def hang(task: object) -> str:
    await asyncio.sleep(3600)
    return ""


async def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteStore(path, codec())
    async with store.claims.claim(KEY):
        assert not open_files(tmp_path)
    await store.aclose()


async def test_the_files_of_collections_are_the_owners_alone(tmp_path: Path) -> None:
    class Handbook(RagCollection):
        pass

    async with Loom(store="memory", vectors=f"sqlite:{tmp_path / 'vectors.db'}") as app:
        await app.collection(Handbook).add([Document("a", "red fish")])
        assert not open_files(tmp_path)


@pytest.mark.parametrize("name", ["../precious", "/etc/hostname", "..", "1-a/../../precious"])
async def test_a_name_in_the_file_is_no_path(name: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    path = tmp_path / "runs.db"
    store = SqliteStore(path, codec())
    await store.log.read(KEY)
    await store.aclose()
    with closing(sqlite3.connect(path)) as connection, connection:
        claim = "INSERT INTO claims (tenant, run, owner, renewed, until) VALUES (?, ?, ?, 0, 1e12)"
        connection.execute(claim, (*KEY, name))
    store = SqliteStore(path, codec())
    assert not await store.claims.held(KEY)
    async with store.claims.claim(KEY):
        assert precious.read_text() == "kept"
    await store.aclose()


@pytest.mark.parametrize("steps", range(12))
async def test_a_claim_that_is_interrupted_is_given_back(steps: int, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", codec())
    await store.log.read(KEY)

    async def hold() -> None:
        async with store.claims.claim(KEY):
            await asyncio.sleep(3600)

    holding = asyncio.create_task(hold())
    for _ in range(steps):
        await asyncio.sleep(0)
    holding.cancel()
    await asyncio.wait({holding})
    async with asyncio.timeout(60):
        while True:
            try:
                async with store.claims.claim(KEY):
                    break
            except RunBusy:
                await asyncio.sleep(0.01)
    await store.aclose()


@pytest.mark.parametrize("waits", range(4))
async def test_a_run_is_cancelled_as_soon_as_it_is_started(waits: int, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, SLOW, "Slow")
    async with asyncio.timeout(60), Loom(store=str(tmp_path / "runs.db"), engine=hang) as app:
        run = await app.start(folder)
        for _ in range(waits):
            await asyncio.sleep(0)
        assert await run.cancel()
        assert (await run.finished()).kind == "run.cancelled"


PARENT = """
import asyncio, os, sys
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec

async def main():
    store = SqliteStore(sys.argv[1], codec())
    async with store.claims.claim(RunKey("local", "r")):
        child = os.fork()
        if child == 0:  # it says so itself, when it has let go of what it inherited
            import time
            print(os.getpid(), flush=True)
            time.sleep(600)
            os._exit(0)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def start(path: Path) -> tuple["subprocess.Popen[bytes]", int]:
    """A process that holds a run, and has a child."""
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(path)], stdin=pipe, stdout=pipe)
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


@contextmanager
def stranger(folder: Path) -> Iterator[None]:
    """Act as a user who may not look into a folder."""
    folder.chmod(0)
    if is_root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)


def kill(parent: "subprocess.Popen[bytes]") -> None:
    with parent:
        parent.kill()


async def test_a_child_does_not_keep_the_run_of_its_dead_parent(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    parent, child = start(path)
    store = SqliteStore(path, codec())
    assert await store.claims.held(KEY)
    kill(parent)
    try:
        os.kill(child, 0)  # it lives
        assert not await store.claims.held(KEY)
        async with store.claims.claim(KEY):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
    await store.aclose()


async def test_the_dead_owner_of_another_user_counts_as_dead(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    parent, child = start(path)
    os.kill(child, signal.SIGKILL)
    store = SqliteStore(path, codec())
    await store.log.read(KEY)
    with stranger(tmp_path / "runs.db.drivers"):
        assert await store.claims.held(KEY)
    kill(parent)
    with stranger(tmp_path / "runs.db.drivers"):
        assert not await store.claims.held(KEY)
    await store.aclose()


async def test_whoever_may_enter_the_folder_may_try_the_lock(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", codec())
    async with store.claims.claim(KEY):
        (lock,) = (tmp_path / "runs.db.drivers").iterdir()
        assert stat.S_IMODE(lock.stat().st_mode) == 0o644
    await store.aclose()
