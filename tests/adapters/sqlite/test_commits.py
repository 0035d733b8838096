"""How writes become transactions, and what happens when they cannot."""

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteStore
from turnloom.adapters.sqlite.database import Background
from turnloom.errors import Conflict, StoreUnavailable, UsageError
from turnloom.runtime.spec import Stop
from turnloom.testing.contracts import CODEC, Noted, event, events, until
from turnloom.testing.contracts.artifacts.samples import artifact
from turnloom.testing.contracts.facts import TENANT, key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnloom.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore, None]:
    store = SqliteStore(path, CODEC)
    await store.log.append(key("first"), events("first", 1), 0)
    yield store
    await store.aclose()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the write lock, as another process would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


async def meet_the_lock() -> None:
    """Let the loop do everything that it can before the lock is given back."""
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


def statements(store: SqliteStore) -> list[str]:
    """Every statement that the store's writer runs from now on."""
    seen: list[str] = []
    writer = store._database._writer
    assert writer
    writer.connection.set_trace_callback(lambda text: seen.append(text.split()[0]))
    return seen


async def test_writes_of_one_tick_are_one_transaction(store: SqliteStore) -> None:
    seen = statements(store)
    async with anyio.create_task_group() as tasks:
        for n in range(50):
            tasks.start_soon(store.log.append, key(f"run {n}"), events(f"run {n}", 3), 0)
        tasks.start_soon(store.inbox.offer, key("run 0"), "m", Stop("ann"))
        tasks.start_soon(store.snapshots.save, key("run 0"), 3, b"state")
    assert seen.count("BEGIN") == 1
    assert seen.count("COMMIT") == 1
    assert len(await store.log.runs(TENANT, 100)) == 51


async def test_an_append_to_a_known_run_is_one_statement(store: SqliteStore) -> None:
    seen = statements(store)
    for position in range(1, 6):
        await store.log.append(key("first"), events("first", 1, after=position), position)
    assert seen == ["INSERT"] * 5


async def test_commits_of_a_synced_file_wait_for_the_disk_and_not_on_the_loop(path: Path) -> None:
    store = SqliteStore(path, CODEC, is_synced=True)
    await store.log.append(key("a"), events("a", 1), 0)
    seen = statements(store)
    for position in range(1, 4):
        await store.log.append(key("a"), events("a", 1, after=position), position)
    with pytest.raises(Conflict):
        await store.log.append(key("a"), [event("a", 3, id="other")], 2)
    assert seen == []
    writer = store._database._background._writer
    assert writer and writer.execute("PRAGMA synchronous").fetchone() == (2,)
    pending = asyncio.create_task(store.log.append(key("a"), events("a", 1, after=4), 4))
    await anyio.lowlevel.checkpoint()
    await store.aclose()
    assert len(await pending) == 1
    again = SqliteStore(path, CODEC)
    assert len(await again.log.read(key("a"))) == 5
    await again.aclose()


async def test_a_write_that_cannot_be_bound_fails_alone(store: SqliteStore) -> None:
    outcomes: dict[str, str] = {}

    async def append(run: str) -> None:
        try:
            await store.log.append(key(run), [event(run, 1, id="1")], 0)
            outcomes[run] = "stored"
        except UnicodeEncodeError:
            outcomes[run] = "refused"

    async with anyio.create_task_group() as tasks:
        for run in ("good", "bad \ud800", "fine"):
            tasks.start_soon(append, run)
    assert outcomes == {"good": "stored", "bad \ud800": "refused", "fine": "stored"}


async def test_an_append_that_is_cancelled_in_time_is_not_stored(store: SqliteStore) -> None:
    doomed = asyncio.create_task(store.log.append(key("doomed"), events("doomed", 1), 0))
    other = asyncio.create_task(store.log.append(key("other"), events("other", 1), 0))
    await anyio.lowlevel.checkpoint()
    doomed.cancel()
    await asyncio.wait([doomed, other])
    assert doomed.cancelled()
    assert len(await store.log.read(key("other"))) == 1
    assert not await store.log.read(key("doomed"))


async def test_a_locked_file_holds_up_the_append_and_not_the_loop(
    path: Path, store: SqliteStore
) -> None:
    with locked(path):
        appends = [
            asyncio.create_task(store.log.append(key(run), events(run, 2), 0)) for run in ("a", "b")
        ]
        await meet_the_lock()
        assert not any(append.done() for append in appends)
        assert not await store.log.read(key("a"))
    assert [len(await append) for append in appends] == [2, 2]
    assert len(await store.log.read(key("a"))) == 2
    await store.log.append(key("a"), events("a", 1, after=2), 2)


async def test_a_subscriber_is_told_of_an_append_that_had_to_wait(
    path: Path, store: SqliteStore
) -> None:
    live = store.log.subscribe(key("a"))
    with locked(path):
        append = asyncio.create_task(store.log.append(key("a"), events("a", 1), 0))
        await meet_the_lock()
    assert (await anext(live)).seq == 1
    await append


async def test_a_file_that_stays_locked_is_unavailable(path: Path) -> None:
    store = SqliteStore(path, CODEC, patience=0.05)
    await store.log.append(key("first"), events("first", 1), 0)
    with locked(path):
        with raising(StoreUnavailable, repr(str(path))):
            await store.log.append(key("a"), events("a", 1), 0)
        fresh = SqliteStore(path, CODEC, patience=0.05)
        with raising(StoreUnavailable, repr(str(path))):
            await fresh.inbox.offer(key("a"), "1", Stop("ann"))
    await store.log.append(key("a"), events("a", 1), 0)
    await fresh.inbox.offer(key("a"), "1", Stop("ann"))
    await fresh.aclose()
    await store.aclose()


async def test_a_file_that_is_locked_while_it_is_made(path: Path) -> None:
    store = SqliteStore(path, CODEC)
    with locked(path):
        append = asyncio.create_task(store.log.append(key("a"), events("a", 1), 0))
        read = asyncio.create_task(store.log.read(key("b")))
        await meet_the_lock()
        with raising(StoreUnavailable, repr(str(path))):
            store.inbox.arrivals()
    await append
    assert not await read
    await store.aclose()


async def test_a_full_store_stores_nothing_half_and_works_again(store: SqliteStore) -> None:
    writer = store._database._writer
    assert writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages + 20}")
    large = [event("a", seq, Noted("x" * 50_000)) for seq in range(1, 11)]
    small = events("b", 1)
    outcomes = await asyncio.gather(
        store.log.append(key("b"), small, 0),
        store.log.append(key("a"), large, 0),
        return_exceptions=True,
    )
    for outcome in outcomes:
        assert isinstance(outcome, StoreUnavailable)
        assert "turnloom.db" in str(outcome)
    assert not await store.log.read(key("a"))
    assert not await store.log.read(key("b"))
    await store.log.append(key("b"), small, 0)
    writer.execute("PRAGMA max_page_count = 100000")
    await store.log.append(key("a"), large, 0)
    assert list(await store.log.read(key("a"))) == large


async def test_a_claim_that_cannot_be_given_back_is_given_back_later(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, other = SqliteStore(path, CODEC, patience=0.01), SqliteStore(path, CODEC)
    claim = store.claims.claim(key("a"))
    await claim.__aenter__()
    with locked(path), caplog.at_level(logging.WARNING, "turnloom.sqlite"):
        await claim.__aexit__(None, None, None)
    assert [record.name for record in caplog.records] == ["turnloom.sqlite"]
    assert not await store.claims.held(key("a"))
    assert await other.claims.held(key("a"))
    async with store.claims.claim(key("b")):
        assert not await other.claims.held(key("a"))
    await other.aclose()
    await store.aclose()


async def test_the_wal_is_copied_and_used_again(path: Path) -> None:
    store = SqliteStore(path, CODEC, checkpoint_after=100_000)
    largest, wal = 0, path.with_name("turnloom.db-wal")
    for position in range(0, 3000, 10):
        await store.log.append(key("a"), events("a", 10, after=position), position)
        largest = max(largest, os.stat(wal).st_size)
        if position % 200 == 0:
            await anyio.sleep(0.002)
    assert len(await store.log.read(key("a"))) == 3000
    await store.aclose()
    assert os.listdir(path.parent) == ["turnloom.db"]
    assert largest < 2 * os.stat(path).st_size + 2_000_000


async def test_the_wal_stays_small_whatever_is_written(path: Path) -> None:
    """Entries of artifacts change many pages by a few bytes each: what grows the WAL is pages."""
    most = 200_000
    store, wal = SqliteStore(path, CODEC, checkpoint_after=most), path.with_name("turnloom.db-wal")
    await store.log.append(key("a"), events("a", 1), 0)
    seen: list[int] = []

    async def follow() -> None:
        async for each in store.log.subscribe(key("a")):
            seen.append(each.seq)

    following = asyncio.create_task(follow())
    for round in range(1, 3):
        for n in range(round * 1000, round * 1000 + 100):
            each = artifact(str(n), run=str(n), partition=str(n), tags={str(n)})
            await store.artifacts.put(TENANT, [each])
        await until(lambda: os.stat(wal).st_size < most)
        await store.log.append(key("a"), events("a", 1, after=round), round)
        await until(lambda expected=round + 1: len(seen) == expected)
    following.cancel()
    await store.aclose()


async def test_a_failed_checkpoint_is_logged(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = Background(path / "below a file", 0.0)
    with caplog.at_level(logging.WARNING, "turnloom.sqlite"):
        nowhere.checkpoint()
        await nowhere.close(lambda: None)
    assert str(path) in caplog.text


async def test_closing_finishes_what_is_pending(path: Path) -> None:
    store = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 1), 0)
    pending = asyncio.create_task(store.log.append(key("a"), events("a", 3, after=1), 1))
    await anyio.lowlevel.checkpoint()
    await store.aclose()
    await store.aclose()
    assert len(await pending) == 3
    again = SqliteStore(path, CODEC)
    assert len(await again.log.read(key("a"))) == 4
    await again.aclose()


async def test_closing_waits_for_an_append_that_meets_a_lock(path: Path) -> None:
    store = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 1), 0)
    with locked(path):
        pending = asyncio.create_task(store.log.append(key("a"), events("a", 1, after=1), 1))
        await meet_the_lock()
        closed = asyncio.create_task(store.aclose())
        await meet_the_lock()
        assert not closed.done()
    await closed
    assert len(await pending) == 1


async def test_closing_while_the_file_is_being_opened(path: Path) -> None:
    store = SqliteStore(path, CODEC)
    with locked(path):
        append = asyncio.create_task(store.log.append(key("a"), events("a", 1), 0))
        await meet_the_lock()
        closed = asyncio.create_task(store.aclose())
        await meet_the_lock()
    await closed
    with pytest.raises(UsageError):
        await append


async def test_a_claim_may_outlive_its_store(path: Path) -> None:
    store, other = SqliteStore(path, CODEC), SqliteStore(path, CODEC)
    async with store.claims.claim(key("a")):
        await store.aclose()
        assert not await other.claims.held(key("a"))
    await other.aclose()


async def test_a_closed_store_refuses_and_tells_who_waits(path: Path) -> None:
    threads = threading.active_count()
    store = SqliteStore(path, CODEC)

    async def wait_for(source: object) -> None:
        with pytest.raises(UsageError):
            await anext(source)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for, store.log.subscribe(key("a")))
        tasks.start_soon(wait_for, store.inbox.arrivals())
        await meet_the_lock()
        await store.aclose()
    await until(lambda: threading.active_count() <= threads)
    for call in (
        store.log.append(key("a"), events("a", 1), 0),
        store.log.append(key("a"), [], 0),
        store.log.read(key("a")),
        store.log.runs(TENANT, 1),
        store.log.named(TENANT, "a", 1),
        store.log.ends(key("a")),
        store.inbox.offer(key("a"), "1", Stop("ann")),
        store.inbox.pending(key("a")),
        store.claims.held(key("a")),
        store.snapshots.load(key("a")),
        store.snapshots.save(key("a"), 1, b""),
    ):
        with pytest.raises(UsageError):
            await call


async def test_an_event_for_another_place_is_refused(store: SqliteStore) -> None:
    with raising(UsageError, "'b'", "1"):
        await store.log.append(key("b"), [event("a", 1)], 0)
    with raising(UsageError, "seq 5"):
        await store.log.append(key("a"), [event("a", 5)], 0)


async def test_a_subscriber_that_leaves_is_forgotten(store: SqliteStore) -> None:
    with anyio.move_on_after(0.01):
        await anext(store.log.subscribe(key("nobody")))
    assert not store._database.signals


async def test_a_batch_of_any_size(store: SqliteStore) -> None:
    position = 0
    for size in (1, 15, 16, 17, 32, 33, 1000):
        await store.log.append(key("a"), events("a", size, after=position), position)
        position += size
    assert [e.seq for e in await store.log.read(key("a"))] == list(range(1, position + 1))
    with raising(Conflict, "a/3"):
        await store.log.append(key("a"), [event("a", position + 1, id="a/3")], position)


def test_loops_in_many_threads_use_many_stores(path: Path) -> None:
    async def work(run: str) -> int:
        store = SqliteStore(path, CODEC)
        for position in range(100):
            await store.log.append(key(run), [event(run, position + 1)], position)
        stored = await store.log.read(key(run))
        await store.aclose()
        return len(stored)

    with ThreadPoolExecutor(3) as threads:
        stored = threads.map(lambda run: asyncio.run(work(run)), ("a", "b", "c"))
        assert list(stored) == [100, 100, 100]
