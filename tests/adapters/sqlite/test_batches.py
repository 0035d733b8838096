"""How a batch is laid out, and what a writer remembers of the runs that it wrote."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from tests.adapters.sqlite.test_commits import meet_the_lock
from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteStore
from turnloom.adapters.sqlite.run_ends import RunEndCache
from turnloom.adapters.sqlite.writer import Writer
from turnloom.errors import Conflict, UnknownKind
from turnloom.log.logic import Codec
from turnloom.log.spec import Event
from turnloom.runtime.spec import Stop
from turnloom.testing.contracts import CODEC, Noted, event, events
from turnloom.testing.contracts.facts import key

STOP = Stop("ann")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnloom.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore, None]:
    store = SqliteStore(path, CODEC)
    yield store
    await store.aclose()


@pytest.fixture
async def other(path: Path) -> AsyncGenerator[SqliteStore, None]:
    """The store as another process has it."""
    other = SqliteStore(path, CODEC)
    yield other
    await other.aclose()


def writer_of(store: SqliteStore) -> Writer:
    writer = store._database._writer
    assert writer
    return writer


def statements(store: SqliteStore) -> list[str]:
    """Every statement that the store's writer runs from now on, with its values."""
    seen: list[str] = []
    writer_of(store).connection.set_trace_callback(lambda text: seen.append(" ".join(text.split())))
    return seen


async def refuse(store: SqliteStore, position: int, id: str) -> None:
    """Offer an id that the run has, in the middle of a batch."""
    batch = [event("a", position + 1), event("a", position + 2, id=id), event("a", position + 3)]
    with raising(Conflict, repr(id)):
        await store.log.append(key("a"), batch, position)


async def test_an_append_is_one_row(path: Path, store: SqliteStore) -> None:
    await store.log.append(key("a"), events("a", 3), 0)
    await store.log.append(key("b"), events("b", 1), 0)
    await store.log.append(key("a"), events("a", 2, after=3), 3)
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT pos >> 32, pos & 0xffffffff, last - pos + 1 FROM batches")
        assert rows.fetchall() == [(1, 1, 3), (1, 4, 2), (2, 1, 1)]


async def test_people_see_one_row_per_event(path: Path, store: SqliteStore) -> None:
    texts = ("line\nbreak, comma", '"quoted"', "žluťoučký 走る 🧶", "\r\n\u2028", "\\n")
    offered = [event("b", seq, Noted(text)) for seq, text in enumerate(texts, 1)]
    await store.log.append(key("b"), offered[:3], 0)
    await store.log.append(key("a"), events("a", 2), 0)
    await store.log.append(key("b"), offered[3:], 3)
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT run, seq, id, at, kind, actor FROM log").fetchall()
        said = database.execute("SELECT json_extract(data, '$.text') FROM log WHERE run = 'b'")
        assert [text for (text,) in said] == list(texts)
    assert [row[:3] for row in rows] == [
        *(("b", seq, f"b/{seq}") for seq in range(1, 6)),
        *(("a", seq, f"a/{seq}") for seq in range(1, 3)),
    ]
    assert rows[0][3:] == ("2026-01-02T03:04:06.678901Z", "test.noted", "tester")


async def test_ids_are_unique_after_reopening(path: Path) -> None:
    for position in range(0, 9, 3):
        store = SqliteStore(path, CODEC)
        for seq in range(1, position + 1):
            await refuse(store, position, f"a/{seq}")
        await store.log.append(key("a"), events("a", 3, after=position), position)
        await refuse(store, position + 3, "a/1")
        await store.aclose()


async def test_ids_are_unique_across_processes(store: SqliteStore, other: SqliteStore) -> None:
    for position in range(0, 24, 4):
        await store.log.append(key("a"), events("a", 2, after=position), position)
        await refuse(other, position + 2, f"a/{position + 1}")
        await other.log.append(key("a"), events("a", 2, after=position + 2), position + 2)
        await refuse(store, position + 4, f"a/{position + 3}")


async def test_only_what_is_not_known_is_looked_up(store: SqliteStore, other: SqliteStore) -> None:
    await store.log.append(key("a"), events("a", 50), 0)
    await other.log.append(key("a"), events("a", 50, after=50), 50)
    seen = statements(store)
    await store.log.append(key("a"), events("a", 1, after=100), 100)
    base = 1 << 32
    looked = [
        text
        for text in seen
        if "FROM batches WHERE pos >" in text and "ORDER BY pos" in text and "CAST" in text
    ]
    assert len(looked) == 1
    assert f"pos > {base + 50} AND pos <= {base + 100}" in looked[0]


async def test_a_snapshot_keeps_ids_too(path: Path) -> None:
    store = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 30), 0)
    await store.snapshots.save(key("a"), 30, b"state")
    await store.log.append(key("a"), events("a", 5, after=30), 30)
    await store.aclose()
    store = SqliteStore(path, CODEC)
    await store.snapshots.load(key("a"))
    seen = statements(store)
    for id in ("a/1", "a/30", "a/31", "a/35"):
        await refuse(store, 35, id)
    await store.snapshots.save(key("unknown"), 1, b"state")
    await store.log.append(key("a"), events("a", 1, after=35), 35)
    base = 1 << 32
    looked = [
        text
        for text in seen
        if "FROM batches WHERE pos >" in text and "ORDER BY pos" in text and "CAST" in text
    ]
    assert len(looked) == 1
    assert f"pos > {base + 30} AND pos <= {base + 35}" in looked[0]
    await store.aclose()


async def test_memory_is_bounded(store: SqliteStore) -> None:
    await store.log.append(key("first"), events("first", 1), 0)
    writer_of(store).run_ends = RunEndCache(ids=20)
    runs = [f"run {n}" for n in range(10)]
    for position in range(0, 12, 3):
        for run in runs:
            await store.log.append(key(run), events(run, 3, after=position), position)
            assert writer_of(store).run_ends.id_count <= 20
    for run in runs:
        with raising(Conflict, f"{run}/1"):
            await store.log.append(key(run), [event(run, 13, id=f"{run}/1")], 12)
        assert len(await store.log.read(key(run))) == 12


async def test_a_run_longer_than_the_memory_is_not_looked_up_over_and_over(
    store: SqliteStore,
) -> None:
    await store.log.append(key("short"), events("short", 1), 0)
    writer_of(store).run_ends = RunEndCache(ids=20)
    await store.log.append(key("long"), events("long", 100), 0)
    seen = statements(store)
    for position in range(1, 51):
        await store.log.append(key("long"), events("long", 1, after=99 + position), 99 + position)
        await store.log.append(key("short"), events("short", 1, after=position), position)
    assert sum(text.startswith("SELECT data FROM batches") for text in seen) <= 2
    assert writer_of(store).run_ends.id_count <= 200


async def test_few_runs_are_remembered(store: SqliteStore) -> None:
    await store.log.append(key("first"), events("first", 1), 0)
    writer_of(store).run_ends = RunEndCache(runs=3)
    for position in range(2):
        for run in "abcdefg":
            await store.log.append(key(run), [event(run, position + 1)], position)
    remembered = [run for run in "abcdefg" if writer_of(store).run_ends.get(key(run))]
    assert len(remembered) <= 3
    assert "g" in remembered


async def test_a_lock_of_another_process_costs_no_memory(path: Path, store: SqliteStore) -> None:
    await store.log.append(key("a"), events("a", 10), 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        appends = [
            asyncio.create_task(store.log.append(key("a"), events("a", 2, after=10), 10)),
            asyncio.create_task(store.log.append(key("b"), events("b", 2), 0)),
        ]
        await meet_the_lock()
    await asyncio.wait(appends)
    seen = statements(store)
    for run, position in (("a", 12), ("b", 2)):
        await store.log.append(key(run), events(run, 1, after=position), position)
    assert [text.split()[0] for text in seen] == ["INSERT", "INSERT"]
    await refuse(store, 13, "a/11")


async def test_what_was_undone_is_not_remembered(store: SqliteStore) -> None:
    await store.log.append(key("a"), events("a", 1), 0)
    writer = writer_of(store)
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    large = [event("b", seq, Noted("x" * 50_000)) for seq in range(1, 3)]
    outcomes = await asyncio.gather(
        store.log.append(key("a"), events("a", 1, after=1), 1),
        store.log.append(key("b"), large, 0),
        return_exceptions=True,
    )
    assert all(isinstance(outcome, Exception) for outcome in outcomes)
    writer.execute("PRAGMA max_page_count = 100000")
    await store.log.append(key("b"), large[:1], 0)
    await store.log.append(key("a"), [event("a", 2, id="b/1"), event("a", 3, id="a/2")], 1)
    assert [e.id for e in await store.log.read(key("a"))] == ["a/1", "b/1", "a/2"]


async def test_consumed_mail_stays_consumed_for_everybody(
    path: Path, store: SqliteStore, other: SqliteStore
) -> None:
    await store.log.append(key("a"), events("a", 3), 0)
    await other.inbox.offer(key("a"), "m", STOP)
    await store.log.append(key("a"), [event("a", 4, id="m"), *events("a", 300, after=4)], 3)
    await other.inbox.offer(key("a"), "next", STOP)
    late = SqliteStore(path, CODEC)
    for each in (store, other, late):
        await each.inbox.offer(key("a"), "m", STOP)
        assert [id for id, _ in await each.inbox.pending(key("a"))] == ["next"]
    await late.aclose()
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT id, position FROM inbox").fetchall()
    assert rows == [("next", 304)]


class WatchedCodec(Codec):
    """Notes which threads decode events, and does not know one of them."""

    def __init__(self) -> None:
        super().__init__([Noted])
        self.threads: list[int] = []
        self.unreadable = 0

    def decode(self, line: bytes, run: str = "", seq: int = 0) -> Event:
        self.threads.append(threading.get_ident())
        if seq == self.unreadable:
            raise UnknownKind("This release does not know it.")
        return super().decode(line, run, seq)


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncGenerator[tuple[SqliteStore, WatchedCodec], None]:
    """A store of one run with 2,000 events."""
    codec = WatchedCodec()
    store = SqliteStore(tmp_path / "turnloom.db", codec)
    for position in range(0, 2000, 500):
        await store.log.append(key("a"), events("a", 500, after=position), position)
    codec.threads.clear()
    yield store, codec
    await store.aclose()


async def test_only_the_first_page_of_a_long_run_is_decoded_on_the_loop(
    watched: tuple[SqliteStore, WatchedCodec],
) -> None:
    store, codec = watched
    assert [each.seq for each in await store.log.read(key("a"), 7)] == list(range(8, 2001))
    assert codec.threads.count(threading.get_ident()) <= 500


async def test_only_the_first_page_of_a_subscription_is_decoded_on_the_loop(
    watched: tuple[SqliteStore, WatchedCodec],
) -> None:
    store, codec = watched
    async with aclosing(store.log.subscribe(key("a"), 7)) as found:
        assert [(await anext(found)).seq for _ in range(1993)] == list(range(8, 2001))
        assert codec.threads.count(threading.get_ident()) <= 500
        later = asyncio.ensure_future(anext(found))
        await store.log.append(key("a"), events("a", 1, after=2000), 2000)
        assert (await later).seq == 2001


@pytest.mark.parametrize("unreadable", [1, 3, 502, 1003])
async def test_a_subscription_gives_what_comes_before_an_unreadable_event(
    watched: tuple[SqliteStore, WatchedCodec], unreadable: int
) -> None:
    store, codec = watched
    codec.unreadable = unreadable
    seen: list[int] = []
    with pytest.raises(UnknownKind):
        async for event in store.log.subscribe(key("a")):
            seen.append(event.seq)
    assert seen == list(range(1, unreadable))
