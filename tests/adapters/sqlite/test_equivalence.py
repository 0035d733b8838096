"""Whatever several processes do to a file, it says what a store in memory would have said."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.adapters.sqlite.run_ends import RunEndCache
from turnloom.errors import Conflict
from turnloom.runtime.spec import Stop
from turnloom.testing.contracts import CODEC, event
from turnloom.testing.contracts.facts import TENANT, key

RUNS = st.sampled_from("ab")
IDS = st.integers(0, 25).map(str)
APPEND = st.tuples(st.just("append"), RUNS, st.lists(IDS, min_size=1, max_size=4))
AGAIN = st.tuples(st.just("again"), RUNS, st.integers(0, 6))
OFFER = st.tuples(st.just("offer"), RUNS, IDS)
READ = st.tuples(st.just("read"), RUNS, st.integers(0, 12))
SAVE = st.tuples(st.just("save"), RUNS, st.just(0))
DEEDS = APPEND | AGAIN | OFFER | READ | SAVE

Store = SqliteStore | MemoryStore


async def do(store: Store, deed: tuple[str, str, object]) -> object:
    """What the store says to a deed."""
    match deed:
        case ("append", run, list(ids)):
            position = len(await store.log.read(key(run)))
            return await append(store, run, position, ids)
        case ("again", run, int(after)):
            ids = [each.id for each in (await store.log.read(key(run), after))[:3]]
            return await append(store, run, after, ids)
        case ("offer", run, str(id)):
            await store.inbox.offer(key(run), id, Stop("ann"))
            return list(await store.inbox.pending(key(run)))
        case ("read", run, int(after)):
            runs = await store.log.runs(TENANT, 100)
            return [list(await store.log.read(key(run), after)), list(runs)]
        case (_, run, _):
            await store.snapshots.save(key(run), len(await store.log.read(key(run))), b"state")
            return await store.snapshots.load(key(run))


async def append(store: Store, run: str, position: int, ids: list[str]) -> object:
    batch = [event(run, seq, id=id) for seq, id in enumerate(ids, position + 1)]
    try:
        return list(await store.log.append(key(run), batch, position))
    except Conflict:
        return "refused"


async def compare(folder: str, deeds: list[tuple[int, tuple[str, str, object]]]) -> None:
    memory = MemoryStore(CODEC)
    stores = [SqliteStore(Path(folder, "turnloom.db"), CODEC) for _ in range(2)]
    try:
        for who, deed in deeds:
            assert await do(stores[who], deed) == await do(memory, deed)
            writer = stores[who]._database._writer
            if writer and who == 1:  # one of the two has a short memory
                writer.run_ends = RunEndCache(ids=3, runs=1)
    finally:
        for store in stores:
            await store.aclose()


@settings(max_examples=40, deadline=None)
@given(deeds=st.lists(st.tuples(st.integers(0, 1), DEEDS), max_size=25))
def test_a_file_says_what_memory_says(deeds: list[tuple[int, tuple[str, str, object]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(folder, deeds))
