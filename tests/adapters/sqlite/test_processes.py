"""Several processes on one file, and what is left when one is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteStore
from turnloom.errors import Conflict, RunBusy
from turnloom.testing.contracts import CODEC, event, events, until
from turnloom.testing.contracts.facts import PATIENCE, TENANT, key

CHILD = Path(__file__).with_name("child.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnloom.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore, None]:
    store = SqliteStore(path, CODEC)
    yield store
    await store.aclose()


@asynccontextmanager
async def child(deed: str, path: Path, *more: str) -> AsyncGenerator[Process, None]:
    command = [sys.executable, str(CHILD), deed, str(path), *more]
    process = await anyio.open_process(command, stderr=None, env=ENVIRONMENT)
    try:
        with anyio.fail_after(PATIENCE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.aclose()


async def said(process: Process, word: str) -> str:
    """What the child said, up to a word."""
    assert process.stdout
    text = ""
    async for part in TextReceiveStream(process.stdout):
        text += part
        if word in text:
            return text
    raise AssertionError(f"The child ended without saying {word!r}: {text}")


async def tell(process: Process) -> None:
    assert process.stdin
    await process.stdin.send(b"\n")


async def over(store: SqliteStore) -> None:
    """Wait until the lease of whoever holds the run is over."""
    holder = await store.claims.held(key("a"))
    if holder is not None:
        await anyio.sleep(holder.seconds or 0)
        await over(store)


async def test_appends_and_mail_of_another_process_arrive(path: Path, store: SqliteStore) -> None:
    live, arrivals = store.log.subscribe(key("a")), store.inbox.arrivals()
    async with child("append_and_offer", path):
        assert [(await anext(live)).seq for _ in range(3)] == [1, 2, 3]
        assert await anext(arrivals) == key("b")
    assert [id for id, _ in await store.inbox.pending(key("b"))] == ["m1"]
    await store.log.append(key("a"), events("a", 1, after=3), 3)
    assert (await anext(live)).seq == 4


async def test_a_claim_of_another_process(path: Path, store: SqliteStore) -> None:
    async with child("hold", path) as process:
        await said(process, "held")
        assert await store.claims.held(key("a"))
        with pytest.raises(RunBusy) as busy:
            async with store.claims.claim(key("a")):
                pass
        assert str(process.pid) in str(busy.value)
        await tell(process)
        await said(process, "free")
        assert not await store.claims.held(key("a"))
        async with store.claims.claim(key("a")):
            await tell(process)


async def test_a_process_killed_while_branching_leaves_whole_branches(path: Path) -> None:
    async with child("branch_forever", path) as process:
        await said(process, "\n60\n")
        process.kill()
        await process.wait()
    async with aclosing(SqliteStore(path, CODEC)) as store:
        origin = len(await store.log.read(key("a")))
        branches = await store.log.named(TENANT, "branch", 10_000)
        assert 60 <= len(branches) and origin // 7 - len(branches) in (0, 1)
        assert [each.problems async for each in store.verifier.verify(TENANT)] == [
            () for _ in range(len(branches) + 1)
        ]
        last, at = f"branch {origin // 7}", origin
        await store.log.branch(key(last), "a", at, events(last, 7, after=at))
        read = await store.log.read(key(last))
        assert [e.seq for e in read] == list(range(1, at + 8))


async def test_a_killed_process_leaves_a_whole_log_and_no_claim(path: Path) -> None:
    async with child("append_forever", path) as process:
        await said(process, "\n700\n")
        process.kill()
        await process.wait()
    store = SqliteStore(path, CODEC)
    assert not await store.claims.held(key("a"))
    async with store.claims.claim(key("a")):
        stored = await store.log.read(key("a"))
        assert len(stored) >= 700
        assert len(stored) % 7 == 0
        assert [e.seq for e in stored] == list(range(1, len(stored) + 1))
        await store.log.append(key("a"), events("a", 7, after=len(stored)), len(stored))
        (lock,) = os.listdir(f"{path}.drivers")
        assert lock.startswith(f"{os.getpid()}-")
    await store.aclose()
    assert not os.listdir(f"{path}.drivers")
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)


async def test_a_killed_holder_frees_its_run_at_once(path: Path, store: SqliteStore) -> None:
    async with child("hold", path) as process:
        await said(process, "held")
        process.kill()
        await process.wait()
        assert not await store.claims.held(key("a"))
        async with store.claims.claim(key("a")):
            assert await store.claims.held(key("a"))


async def test_a_process_that_is_stopped_loses_its_run(path: Path, store: SqliteStore) -> None:
    async with child("lose", path, "0.5") as process:
        await said(process, "held")
        holder = await store.claims.held(key("a"))
        assert holder is not None and holder.process == str(process.pid)
        process.send_signal(signal.SIGSTOP)
        await over(store)
        async with store.claims.claim(key("a")) as fence:
            await store.log.append(key("a"), events("a", 1, after=1), 1, fence)
            process.send_signal(signal.SIGCONT)
            assert (await said(process, "kept")).split() == ["lost", "refused", "kept"]
        assert len(await store.log.read(key("a"))) == 2
        assert len(await store.log.read(key("kept"))) == 1
        await tell(process)


async def test_a_claim_is_renewed_while_the_loop_turns(path: Path, store: SqliteStore) -> None:
    async with child("lose", path, "0.2") as process:
        await said(process, "held")
        query = "SELECT max(until) FROM claims"
        with closing(sqlite3.connect(path)) as database:
            (first,) = database.execute(query).fetchone()
            await until(lambda: database.execute(query).fetchone()[0] > first + 0.4)


async def test_processes_that_begin_at_once(path: Path, store: SqliteStore) -> None:
    command = [sys.executable, str(CHILD), "append_many", str(path)]
    names = [str(n) for n in range(3)]
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(lambda name=name: run_child([*command, name]))
    for name in names:
        assert len(await store.log.read(key(f"run of {name}"))) == 200
    assert len(await store.log.runs(TENANT, 10)) == 3


async def run_child(command: list[str]) -> None:
    await anyio.run_process(command, env=ENVIRONMENT, stderr=None)


def test_a_full_disk_is_stood(path: Path) -> None:
    command = [sys.executable, str(CHILD), "fill_the_disk", str(path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout
    assert "went on" in done.stdout


async def test_a_stale_memory_of_the_end_is_noticed(path: Path, store: SqliteStore) -> None:
    other = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 1), 0)
    await other.log.append(key("a"), events("a", 1, after=1), 1)
    with raising(Conflict, "2", "1"):
        await store.log.append(key("a"), [event("a", 2, id="mine")], 1)
    assert list(await store.log.append(key("a"), events("a", 1, after=1), 1)) == events(
        "a", 1, after=1
    )
    await store.log.append(key("a"), events("a", 1, after=2), 2)
    await other.log.append(key("a"), events("a", 1, after=3), 3)
    assert [e.seq for e in await store.log.read(key("a"))] == [1, 2, 3, 4]
    await other.aclose()
