"""Contract suite for logs whose runs can branch."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import timedelta
from typing import cast

import anyio
import msgspec

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.spec import FilterConfig, Reader
from turnloom.errors import Conflict, UnknownKind, UnknownRun, UsageError
from turnloom.log.events import RunFailed, RunFinished
from turnloom.log.ports import BranchingLog, EventLog
from turnloom.log.spec import Event, RunFilter, RunKey
from turnloom.runtime.ports import Pruner, Store, Verifier
from turnloom.runtime.spec import Stop, VerifiedRun
from turnloom.testing.contracts.artifacts.samples import LATER, artifact
from turnloom.testing.contracts.facts import (
    OTHER,
    PATIENCE,
    TENANT,
    UnknownFact,
    event,
    events,
    key,
    refused,
    started,
)


class BranchingContract:
    """The suite for a store whose log is a `BranchingLog`. What its `verifier` and `pruner` do to
    branches is tested if it has them."""

    def fresh(self) -> AbstractAsyncContextManager[Store]:
        """An empty store with `CODEC`."""
        raise NotImplementedError

    async def test_a_branch_begins_with_the_events_of_its_origin(self) -> None:
        """Every read gives the origin's events up to the cut as they are, then those of the
        branch."""
        async with self.fresh() as store:
            log = store.log
            await _write(log, "a", 3, 2, 4)
            own = events("b", 2, after=5)
            assert list(await _branching(store).branch(key("b"), "a", 5, own)) == own
            more = events("b", 3, after=7)
            await log.append(key("b"), more, 7)
            whole = events("a", 5) + own + more
            for after in range(12):
                assert list(await log.read(key("b"), after)) == whole[after:]
            assert await log.ends(key("b")) == (whole[0], whole[-1])
            assert list(await log.named(TENANT, "b", 5)) == ["b"]
            assert await _heard(log, key("b"), 0, 10) == whole
            assert await _heard(log, key("b"), 4, 6) == whole[4:]
            assert list(await log.read(key("a"))) == events("a", 9)

    async def test_origin_and_branch_go_on_apart(self) -> None:
        """What one of them appends after the cut does not belong to the other, even under the same
        ids."""
        async with self.fresh() as store:
            log = store.log
            await _write(log, "a", 3)
            await _branching(store).branch(key("b"), "a", 3, [event("b", 4, id="fork")])
            await log.append(key("a"), [event("a", 4, id="next")], 3)
            await log.append(key("b"), [event("b", 5, id="next")], 4)
            await log.append(key("a"), [event("a", 5, id="fork")], 4)
            assert [e.id for e in await log.read(key("a"), 3)] == ["next", "fork"]
            assert [e.id for e in await log.read(key("b"), 3)] == ["fork", "next"]
            with refused(Conflict):
                await log.append(key("b"), [event("b", 5, id="late")], 4)

    async def test_ids_of_the_shared_events_are_taken(self) -> None:
        """An id of the origin is taken in the branch up to the cut, and free after it."""
        async with self.fresh() as store:
            await _write(store.log, "a", 2, 2)
            await _branching(store).branch(key("b"), "a", 2, [event("b", 3, id="a/3")])
            with refused(Conflict):
                await store.log.append(key("b"), [event("b", 4, id="a/2")], 3)
            await store.log.append(key("b"), [event("b", 4, id="a/4")], 3)
            assert not await store.inbox.offer(key("b"), "a/2", Stop("ann"))
            assert await store.inbox.offer(key("b"), "new", Stop("ann"))
            assert list(await store.inbox.pending(key("b"))) == [("new", Stop("ann"))]

    async def test_the_same_branch_again_is_given_back_as_stored(self) -> None:
        """A repeated branch returns the stored events; another one under its id is a conflict."""
        async with self.fresh() as store:
            log = _branching(store)
            await _write(store.log, "a", 2, 2)
            await _write(store.log, "c", 2)
            own = events("b", 2, after=2)
            stored = await log.branch(key("b"), "a", 2, own)
            await store.log.append(key("b"), events("b", 1, after=4), 4)
            assert list(await log.branch(key("b"), "a", 2, own)) == list(stored)
            assert list(await log.branch(key("b"), "a", 2, own[:1])) == list(stored[:1])
            with refused(Conflict):
                await log.branch(key("b"), "a", 2, [event("b", 3, id="other")])
            with refused(Conflict):
                await log.branch(key("b"), "a", 4, events("b", 1, after=4))
            with refused(Conflict):
                await log.branch(key("b"), "c", 2, own)
            for run in ("a", "c"):
                with refused(Conflict):
                    await log.branch(key(run), "a", 2, events(run, 1, after=2))
            assert len(await store.log.read(key("b"))) == 5

    async def test_what_cannot_be_cut_is_refused(self) -> None:
        """An unknown origin, a position that it does not have, or one inside a batch is refused,
        and nothing is stored."""
        async with self.fresh() as store:
            log = _branching(store)
            await _write(store.log, "a", 1, 3)
            with refused(UnknownRun):
                await log.branch(key("b"), "nothing", 1, events("b", 1, after=1))
            for at in (-1, 0, 2, 3, 5):
                with refused(UsageError):
                    await log.branch(key("b"), "a", at, events("b", 1, after=at))
            with refused(UsageError):
                await log.branch(key("b"), "a", 4, [])
            with refused(UsageError):
                await log.branch(key("b"), "a", 4, events("b", 1, after=1))
            with refused(UsageError):
                await log.branch(key("b"), "a", 4, events("a", 1, after=4))
            with refused(UnknownKind):
                await log.branch(key("b"), "a", 4, [event("b", 5, UnknownFact())])
            with refused(Conflict):
                await log.branch(key("b"), "a", 4, [event("b", n, id="x") for n in (5, 6)])
            assert not await store.log.read(key("b"))
            assert not await store.log.named(TENANT, "b", 5)

    async def test_where_a_batch_ends(self) -> None:
        """`batch_end` finds the end of every batch, also of those that a branch shares."""
        async with self.fresh() as store:
            log = _branching(store)
            await _write(store.log, "a", 3, 1, 4)
            await log.branch(key("b"), "a", 4, events("b", 2, after=4))
            ends = [3, 3, 3, 4, 8, 8, 8, 8]
            assert [await log.batch_end(key("a"), seq) for seq in range(1, 9)] == ends
            ends = [3, 3, 3, 4, 6, 6]
            assert [await log.batch_end(key("b"), seq) for seq in range(1, 7)] == ends
            for run, seq in (("a", 0), ("a", -1), ("a", 9), ("b", 7)):
                with refused(UsageError):
                    await log.batch_end(key(run), seq)
            with refused(UnknownRun):
                await log.batch_end(key("nothing"), 1)

    async def test_branches_of_branches(self) -> None:
        """A branch may be cut anywhere, also among the events that it shares."""
        async with self.fresh() as store:
            log = _branching(store)
            await _write(store.log, "a", 2, 2)
            await log.branch(key("b"), "a", 4, events("b", 2, after=4))
            await log.branch(key("c"), "b", 6, events("c", 1, after=6))
            await log.branch(key("d"), "b", 2, events("d", 1, after=2))
            await log.branch(key("e"), "c", 4, events("e", 1, after=4))
            await log.branch(key("f"), "c", 7, events("f", 1, after=7))
            wanted = {
                "c": "aaaabbc",
                "d": "aad",
                "e": "aaaae",
                "f": "aaaabbcf",
            }
            for run, recorders in wanted.items():
                read = await store.log.read(key(run))
                assert [e.run for e in read] == [*recorders]
                assert [e.seq for e in read] == list(range(1, len(read) + 1))
            assert await log.batch_end(key("f"), 1) == 2
            with refused(Conflict):
                await store.log.append(key("f"), [event("f", 9, id="b/5")], 8)

    async def test_branches_are_listed(self) -> None:
        """A branch is listed where and when it was begun, with its own last event, and found by the
        workflow and the user of its origin."""
        async with self.fresh() as store:
            log = store.log
            first = started("a", "shop", "ann", 0)
            await log.append(key("a"), [first], 0)
            await log.append(key("z"), [started("z", "desk", "bob", 9)], 0)
            await log.append(key("a"), [event("a", 2, RunFinished())], 1)
            own = msgspec.structs.replace(event("b", 2), at=first.at + timedelta(minutes=5))
            await _branching(store).branch(key("b"), "a", 1, [own])
            listed = await log.runs(TENANT, 9)
            assert [last.run for _, last in listed] == ["b", "z", "a"]
            assert listed[0] == (msgspec.structs.replace(first, at=own.at), own)
            assert [last.run for _, last in await log.runs(TENANT, 9, before="b")] == ["z", "a"]
            assert [last.run for _, last in await log.runs(TENANT, 9, unfinished=True)] == [
                "b",
                "z",
            ]
            assert await _chosen(log, RunFilter(workflow="shop", user="ann")) == ["b", "a"]
            assert await _chosen(log, RunFilter(frozenset({"unfinished"}))) == ["b", "z"]
            assert await _chosen(log, RunFilter(until=first.at)) == ["a"]
            assert await _chosen(log, RunFilter(since=own.at)) == ["b"]
            await log.append(key("b"), [event("b", 3, RunFailed("X", "no"))], 2)
            assert await _chosen(log, RunFilter(frozenset({"failed"}))) == ["b"]
            assert await _chosen(log, RunFilter(frozenset({"finished"}))) == ["a"]

    async def test_tenants_are_separate(self) -> None:
        """A run of another tenant is no origin, and its branches are found there only."""
        async with self.fresh() as store:
            log = _branching(store)
            await _write(store.log, "a", 2, tenant=OTHER)
            with refused(UnknownRun):
                await log.branch(key("b"), "a", 2, events("b", 1, after=2))
            with refused(UnknownRun):
                await log.batch_end(key("a"), 1)
            await log.branch(key("b", OTHER), "a", 2, events("b", 1, after=2))
            assert not await store.log.read(key("b"))
            assert len(await store.log.read(key("b", OTHER))) == 3

    async def test_artifacts_are_stored_once(self) -> None:
        """The artifacts of shared events stay those of the origin; own ones are added."""
        async with self.fresh() as store:
            made = ArtifactPublished(artifact("x", run="a"))
            taken = ArtifactConsumed("ann", "ann#1", ("x",), turn=1)
            await store.log.append(key("a"), [event("a", 1, made), event("a", 2, taken)], 0)
            own = ArtifactPublished(artifact("y", run="b"))
            await _branching(store).branch(key("b"), "a", 2, [event("b", 3, own)])
            reader = Reader(tenant=TENANT, role="developer")
            page = await store.artifacts.query(FilterConfig(), reader, LATER)
            assert sorted(each.id for each in page.items) == ["x", "y"]
            (once,) = await store.artifacts.consumptions(TENANT, ["x"])
            assert once.run == "a"

    async def test_one_of_many_racers_branches(self) -> None:
        """Of ten writers that begin a branch under one id exactly one succeeds."""
        won: list[int] = []

        async def race(number: int) -> None:
            try:
                own = [event("b", 2, id=f"by {number}")]
                await _branching(store).branch(key("b"), "a", 1, own)
                won.append(number)
            except Conflict:
                return

        async with self.fresh() as store:
            await _write(store.log, "a", 1)
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(race, number)
            assert len(won) == 1
            assert [e.id for e in await store.log.read(key("b"), 1)] == [f"by {won[0]}"]

    async def test_long_branches(self) -> None:
        """Thousands of shared events are read completely, and snapshots belong to one run."""
        async with self.fresh() as store:
            await _write(store.log, "a", *(500 for _ in range(5)))
            await store.snapshots.save(key("a"), 2000, b"state")
            await _branching(store).branch(key("b"), "a", 2000, events("b", 1, after=2000))
            assert await store.snapshots.load(key("b")) is None
            assert [e.seq for e in await store.log.read(key("b"))] == list(range(1, 2002))
            assert len(await _heard(store.log, key("b"), 10, 1991)) == 1991
            await store.snapshots.save(key("b"), 2001, b"state")
            with refused(Conflict):
                await store.log.append(key("b"), [event("b", 2002, id="a/7")], 2001)

    async def test_branches_are_verified(self) -> None:
        """A branch has all of its events, and no problems."""
        async with self.fresh() as store:
            verifier: Verifier | None = getattr(store, "verifier", None)
            if verifier is None:
                return
            await _write(store.log, "a", 2, 2)
            await _branching(store).branch(key("b"), "a", 2, events("b", 1, after=2))
            await store.log.append(key("b"), events("b", 2, after=3), 3)
            found = [each async for each in verifier.verify(TENANT)]
            assert found == [VerifiedRun("a", 4), VerifiedRun("b", 5)]

    async def test_an_origin_is_removed_after_its_branches(self) -> None:
        """A run stays while a branch of it remains; the branch is removed without the origin's
        events."""
        async with self.fresh() as store:
            pruner: Pruner | None = getattr(store, "pruner", None)
            if pruner is None:
                return
            await _write(store.log, "a", 3)
            await _branching(store).branch(key("b"), "a", 3, [event("b", 4, RunFinished())])
            await _branching(store).branch(key("c"), "b", 3, [event("c", 4, RunFinished())])
            await store.log.append(key("a"), [event("a", 4, RunFinished())], 3)
            assert await pruner.remove(key("a")) is None
            assert await pruner.remove(key("a"), without={"b"}, dry_run=True) is None
            assert await pruner.remove(key("a"), without={"b", "c"}, dry_run=True)
            assert await pruner.remove(key("a"), without={"b", "c"}) is None
            removed = await pruner.remove(key("b"))
            assert removed is not None and removed.events == 1
            assert len(await store.log.read(key("c"))) == 4
            assert await pruner.remove(key("a")) is None
            assert await pruner.remove(key("c"))
            assert await pruner.remove(key("a"))
            assert not await store.log.runs(TENANT, 9)


def _branching(store: Store) -> BranchingLog:
    return cast(BranchingLog, store.log)


async def _write(log: EventLog, run: str, *batches: int, tenant: str = TENANT) -> None:
    position = 0
    for count in batches:
        await log.append(key(run, tenant), events(run, count, position), position)
        position += count


async def _heard(log: EventLog, run: RunKey, after: int, count: int) -> Sequence[Event]:
    with anyio.fail_after(PATIENCE):
        async with aclosing(log.subscribe(run, after)) as heard:
            return [await anext(heard) for _ in range(count)]


async def _chosen(log: EventLog, which: RunFilter) -> list[str]:
    return [last.run for _, last in await log.runs(TENANT, 9, which=which)]
