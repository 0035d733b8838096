"""Runs that are copied from one store to another."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.tables import tables_of
from tests.support.world import Refitted
from tests.upkeep.scenes import Order, approving, fill, shop
from turnloom import Loom, StoreUnavailable, UnknownRun, UsageError
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.runtime.spec import Reply, RunCopy
from turnloom.testing.contracts.facts import key

OTHER = "it's; --"
PLACES = ("memory", "sqlite")


@asynccontextmanager
async def opened(kind: str, path: Path) -> AsyncGenerator[Any, None]:
    store: Any = MemoryStore(codec()) if kind == "memory" else SqliteStore(path, codec())
    try:
        yield store
    finally:
        await store.aclose()


async def copied(app: Loom, target: Loom, *runs: str, **which: Any) -> Counter[str]:
    found = [each async for each in app.upkeep.copy_to(target.upkeep, runs or None, **which)]
    return Counter(each.status for each in found)


async def lines_of(app: Loom, run: str) -> bytes:
    events: Any = await app.history.events(run)
    return codec().encode_lines(events)


@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("target", PLACES)
async def test_everything_of_a_store_is_copied(tmp_path: Path, source: str, target: str) -> None:
    async with (
        opened(source, tmp_path / "a.db") as ours,
        opened(target, tmp_path / "b.db") as theirs,
    ):
        async with Loom(store=ours) as app, Loom(store=theirs) as other:
            ids = await fill(app)
            await ours.inbox.offer(key(ids["done"], "local"), "late", Reply("q", 1, "ann"))
            before = await app.runs()
            assert await copied(app, other) == {"copied": 5}
            assert await other.runs() == before
            assert await other.upkeep.tenants() == sorted([OTHER, "local"])
            for run in (ids["parked"], ids["board"], ids["fork"]):
                assert await lines_of(other, run) == await lines_of(app, run)
            assert await theirs.inbox.pending(key(ids["done"], "local"))
            found, _ = await shop(other).query_artifacts()
            assert len(found) == 2
            assert await copied(app, other) == {"same": 5}
            assert not [each async for each in other.history.verify() if each.problems]
        async with Loom(store=theirs) as other:
            other.register_flow(approving())
            run = await other.resume(ids["parked"])
            await run.answer(None, "approve", user_id="boss")
            assert (await run.finished()).kind == "run.finished"
            async with Loom(store=ours) as app:
                assert await copied(app, other, ids["parked"]) == {"ahead": 1}
                assert await copied(other, app, ids["parked"]) == {"continued": 1}
                assert (await app.runs(user="ann"))[-1].status == "finished"


async def test_chosen_runs(tmp_path: Path) -> None:
    async with Loom(store=tmp_path / "a.db") as app, Loom(store=tmp_path / "b.db") as other:
        ids = await fill(app)
        begun = (await app.runs())[-1].started
        assert await copied(app, other, app_id=OTHER) == {"copied": 1}
        assert await copied(app, other, statuses=["waiting"]) == {"copied": 1}
        assert await copied(app, other, before=begun) == {"same": 1}
        assert await copied(app, other, ids["fork"]) == {"copied": 2}
        assert {each.run for each in await other.runs()} == {
            ids[each] for each in ("parked", "done", "fork")
        }
        for wrong in ("nothing", ids["done"][:5]):
            with pytest.raises(UnknownRun):
                await copied(app, other, wrong)
        with pytest.raises(UsageError):
            await copied(app, app)


async def test_another_run_of_the_same_id_is_refused(tmp_path: Path) -> None:
    async with (
        opened("sqlite", tmp_path / "a.db") as ours,
        opened("memory", tmp_path) as theirs,
        Loom(store=ours) as app,
        Loom(store=theirs) as other,
    ):
        ids = await fill(app)
        done, board = (key(ids[each], "local") for each in ("done", "board"))
        copy = await ours.copies.read(done)
        (first, *more), *_ = copy.batches
        changed = msgspec.structs.replace(first, actor="mallory")
        await theirs.copies.write(done, RunCopy(((changed, *more),)))
        before = await other.history.events(done.id)
        # its fork is held back, as it begins with events of this run
        assert await copied(app, other) == {"refused": 2, "copied": 3}
        assert await other.history.events(done.id) == before
        await theirs.pruner.remove(board)
        order, _ = (await app.board("look").query_artifacts())[0]
        await theirs.artifacts.put("local", [msgspec.structs.replace(order, produced_by="x")])
        assert await copied(app, other, board.id) == {"refused": 1}
        assert board.id not in {each.run for each in await other.runs()}


async def test_a_run_that_is_driven_is_refused(tmp_path: Path) -> None:
    async with (
        opened("sqlite", tmp_path / "a.db") as ours,
        Loom(store=ours) as app,
        Loom(store="memory") as other,
    ):
        ids = await fill(app)
        async with ours.claims.claim(key(ids["parked"], "local")):
            assert await copied(app, other) == {"refused": 1, "copied": 4}
        assert await copied(app, other) == {"copied": 1, "same": 4}


async def test_a_damaged_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with Loom(store=path) as app:
        ids = await fill(app)
    with tables_of(path) as tables:
        tables.rewrite(ids["done"], lambda data: data.replace(b"ann", b"eve"))
    async with Loom(store=path) as app, Loom(store="memory") as other:
        assert await copied(app, other) == {"refused": 2, "copied": 3}


class Failing:
    """Copies that fail at one of the runs: before it is stored, or after."""

    def __init__(self, copies: Any, run: str, *, after: bool) -> None:
        self._copies = copies
        self._run = run
        self._after = after
        self.read = copies.read

    async def write(self, run: Any, copy: Any) -> None:
        if self._after:
            await self._copies.write(run, copy)
        if run.id == self._run:
            raise StoreUnavailable("The disk is full.")
        if not self._after:
            await self._copies.write(run, copy)


@pytest.mark.parametrize("after", [False, True])
async def test_a_copy_that_fails_is_repeated(tmp_path: Path, after: bool) -> None:
    async with (
        opened("memory", tmp_path) as ours,
        opened("sqlite", tmp_path / "b.db") as theirs,
        Loom(store=ours) as app,
    ):
        ids = await fill(app)
        failing = Refitted(theirs, copies=Failing(theirs.copies, ids["board"], after=after))
        async with Loom(store=failing) as other:
            with pytest.raises(StoreUnavailable):
                await copied(app, other)
        async with Loom(store=theirs) as other:
            found = await copied(app, other)
            assert found["same"] + found["copied"] == 5
            assert await other.runs() == await app.runs()


class Forgetful:
    """Copies that lose the last append of a run, or the person in its first event."""

    def __init__(self, copies: Any, *, last: bool) -> None:
        self._copies = copies
        self._last = last
        self.read = copies.read

    async def write(self, run: Any, copy: Any) -> None:
        (first, *more), *rest = copy.batches
        changed = ((msgspec.structs.replace(first, actor=""), *more), *rest)
        kept = copy.batches[:-1] if self._last else changed
        await self._copies.write(run, RunCopy(kept, copy.origin))


@pytest.mark.parametrize("last", [True, False])
async def test_a_copy_is_read_back(tmp_path: Path, last: bool) -> None:
    async with (
        opened("memory", tmp_path) as ours,
        opened("sqlite", tmp_path / "b.db") as theirs,
        Loom(store=ours) as app,
        Loom(store=Refitted(theirs, copies=Forgetful(theirs.copies, last=last))) as other,
    ):
        await fill(app)
        with pytest.raises(StoreUnavailable):
            await copied(app, other)


async def test_removed_runs_of_a_correlation_stay_counted(tmp_path: Path) -> None:
    async def publish(app: Loom) -> str:
        board = app.board("desk")
        made = await board.publish(Order(what="x"), correlation_id="one")
        await board.run_until_idle()
        return made.run or ""

    a, b = tmp_path / "a.db", tmp_path / "b.db"
    runs: list[str] = []
    for _ in range(2):
        async with Loom(store=a) as app:
            runs.append(await publish(app))
    async with Loom(store=a) as app, Loom(store=b) as other:
        async for _ in app.history.prune("0s"):
            pass
    async with Loom(store=a) as app:
        runs.append(await publish(app))
    async with Loom(store=a) as app, Loom(store=b) as other:
        assert await copied(app, other) == {"copied": 1}
    async with Loom(store=b) as other:
        runs.append(await publish(other))
    assert len(set(runs)) == 4


async def test_a_store_that_is_written_to_meanwhile(tmp_path: Path) -> None:
    async with Loom(store=tmp_path / "a.db") as app, Loom(store=tmp_path / "b.db") as other:
        board = shop(app)

        async def publish() -> None:
            for _ in range(10):
                await board.publish_many([Order(what="x") for _ in range(4)], correlation_id="one")
                await board.publish(Order(what="y"))
            await board.run_until_idle()

        publishing = asyncio.ensure_future(publish())
        while not publishing.done():
            await copied(app, other)
            assert not [each async for each in other.history.verify() if each.problems]
        await publishing
        assert not (await copied(app, other))["refused"]
        there = {each.run: each for each in await other.runs()}
        here = {each.run: each for each in await app.runs()}
        assert await copied(app, other) == {"same": len(here)}
        assert there == here


COPYING = """
import asyncio, sys
from turnloom import Loom

async def main():
    async with Loom(store=sys.argv[1]) as app, Loom(store=sys.argv[2]) as other:
        async for each in app.upkeep.copy_to(other.upkeep):
            print(each.run, flush=True)

asyncio.run(main())
"""


@pytest.mark.doors
async def test_a_killed_copy_is_repeated(tmp_path: Path) -> None:
    a, b = tmp_path / "a.db", tmp_path / "b.db"
    async with Loom(store=a) as app:
        board = shop(app)
        await board.publish_many([Order(what=str(n)) for n in range(80)])
        await board.run_until_idle()
    for lines in (1, 10):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", COPYING, str(a), str(b), stdout=PIPE
        )
        assert child.stdout is not None
        for _ in range(lines):
            assert await child.stdout.readline()
        child.kill()
        await child.wait()
        async with Loom(store=a) as app, Loom(store=b) as other:
            assert not [each async for each in other.history.verify() if each.problems]
            whole = {each.run: each for each in await app.runs()}
            assert all(whole[each.run] == each for each in await other.runs())
    async with Loom(store=a) as app, Loom(store=b) as other:
        found = await copied(app, other)
        assert found["same"] and found["same"] + found["copied"] == 80
        assert [each.run for each in await other.runs()] == [each.run for each in await app.runs()]
