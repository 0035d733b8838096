"""Contract suites for the ports by which stores are kept: migrators, copies, records of removals,
and lists of tenants."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from datetime import timedelta
from typing import cast

import anyio

from turnloom.board.events import ArtifactPublished
from turnloom.board.spec import FilterConfig, Reader
from turnloom.errors import (
    ArtifactExists,
    Conflict,
    StoreUnavailable,
    UnknownRun,
    UsageError,
)
from turnloom.log.events import RunFinished
from turnloom.log.ports import BranchingLog
from turnloom.runtime.ports import Copies, Migrator, Pruner, Removals, Store, TenantList
from turnloom.runtime.spec import Migration, Removal, RunCopy
from turnloom.testing.contracts.artifacts.samples import LATER, artifact
from turnloom.testing.contracts.facts import (
    BEGINNING,
    OTHER,
    TENANT,
    event,
    events,
    key,
    refused,
    started,
)

REQUEST = Removal(BEGINNING, "admin", "user 'ann'")
SECOND = timedelta(seconds=1)


class MigratorContract:
    """The suite for a store with a `Migrator`."""

    def fresh(self) -> AbstractAsyncContextManager[Callable[[], Store]]:
        """A function that opens the same store, empty at first; the suite closes each result."""
        raise NotImplementedError

    async def pretend(self, version: int) -> None:
        """Write another version of the schema into the store of this test, as the release of that
        version would have; it has been migrated before."""
        raise NotImplementedError

    async def test_a_migrated_store_has_nothing_pending(self) -> None:
        """After migration the store works, and there is nothing more to do."""
        async with self.fresh() as open, aclosing(open()) as store:
            migrator = _migrator(store)
            pending = list(await migrator.pending())
            assert pending == sorted(pending)
            assert await _taken(store) == pending
            assert not await migrator.pending() and not await _taken(store)
            await store.log.append(key("a"), events("a", 2), 0)
            assert not await _taken(store)
            assert len(await store.log.read(key("a"))) == 2

    async def test_two_at_once_do_not_collide(self) -> None:
        """Of several migrations at once, each step is taken by one."""
        found: list[Migration] = []

        async def migrate(store: Store) -> None:
            found.extend(await _taken(store))

        async with self.fresh() as open, aclosing(open()) as one, aclosing(open()) as two:
            pending = list(await _migrator(one).pending())
            async with anyio.create_task_group() as tasks:
                for store in (one, two):
                    tasks.start_soon(migrate, store)
            assert sorted(found) == pending

    async def test_a_later_schema_is_refused(self) -> None:
        """A store of a later release is neither used nor migrated."""
        async with self.fresh() as open:
            async with aclosing(open()) as store:
                await _taken(store)
                await store.log.append(key("a"), events("a", 1), 0)
            await self.pretend(9_999)
            async with aclosing(open()) as store:
                with refused(StoreUnavailable):
                    await store.log.append(key("a"), events("a", 1, 1), 1)
                with refused(StoreUnavailable):
                    await store.log.read(key("a"))
                with refused(StoreUnavailable):
                    await _migrator(store).pending()
                with refused(StoreUnavailable):
                    await _taken(store)


class CopiesContract:
    """The suite for a store with `Copies`, artifacts that follow its log, and a `BranchingLog`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Store, Store]]:
        """Two different stores, both empty."""
        raise NotImplementedError

    async def test_a_run_is_copied_as_it_is(self) -> None:
        """A copy has the events, batches, listing and artifacts of the run."""
        async with self.fresh() as (source, target):
            first = started("a", "shop", "ann", 0)
            made = event("a", 2, ArtifactPublished(artifact("x", run="a")))
            for batch in ([first], [made, event("a", 3)], [event("a", 4, RunFinished())]):
                await source.log.append(key("a"), batch, batch[0].seq - 1)
            copy = await _copied(source, target, "a")
            assert [len(each) for each in copy.batches] == [1, 2, 1]
            assert (copy.origin, copy.after, copy.position) == ("", 0, 4)
            assert await _copies(target).read(key("a")) == copy
            for store in (source, target):
                assert list(await store.log.read(key("a"))) == [*sum(copy.batches, ())]
                assert await _branching(store).batch_end(key("a"), 2) == 3
                assert await _artifacts(store) == ["x"]
                ((_, last),) = await store.log.runs(TENANT, 5)
                assert last.kind == RunFinished.kind
            assert await _copies(target).read(key("a", OTHER)) is None
            assert await _copies(source).read(key("b")) is None

    async def test_branches_are_copied_by_reference(self) -> None:
        """A branch has only the events that it recorded, and begins where it was cut."""
        async with self.fresh() as (source, target):
            await source.log.append(key("a"), events("a", 2), 0)
            await source.log.append(key("a"), events("a", 2, 2), 2)
            log = _branching(source)
            await log.branch(key("b"), "a", 2, events("b", 2, after=2))
            await source.log.append(key("b"), events("b", 1, after=4), 4)
            await log.branch(key("c"), "b", 4, events("c", 1, after=4))
            await log.branch(key("d"), "b", 2, events("d", 1, after=2))
            origins = {run: await _copies(source).read(key(run)) for run in "abcd"}
            assert [each and each.origin for each in origins.values()] == ["", "a", "b", "a"]
            with refused(UnknownRun):
                await _copied(source, target, "b")
            assert not await target.log.read(key("b"))
            for run, copy in origins.items():
                assert await _copied(source, target, run) == copy
                assert await _copies(target).read(key(run)) == copy
                assert await target.log.read(key(run)) == await source.log.read(key(run))

    async def test_a_copy_is_continued(self) -> None:
        """A copy of what a run recorded since continues it; any other position is a conflict."""
        async with self.fresh() as (source, target):
            for after in (0, 2):
                await source.log.append(key("a"), events("a", 2, after), after)
            whole = await _read(source, "a")
            rest = replace(whole, batches=whole.batches[1:])
            with refused(Conflict):
                await _copies(target).write(key("a"), rest)
            await _copies(target).write(key("a"), replace(whole, batches=whole.batches[:1]))
            with refused(Conflict):
                await _copies(target).write(key("a"), RunCopy((tuple(events("a", 1, after=3)),)))
            await _copies(target).write(key("a"), rest)
            assert await _read(target, "a") == whole

    async def test_all_or_nothing(self) -> None:
        """If one batch of a copy is refused, nothing of it is stored."""
        async with self.fresh() as (_, target):
            await target.artifacts.put(TENANT, [artifact("x", run="z", payload={"id": "another"})])
            clash = event("a", 3, ArtifactPublished(artifact("x", run="a")))
            with refused(ArtifactExists):
                await _copies(target).write(key("a"), RunCopy((tuple(events("a", 2)), (clash,))))
            for count in (2, 300):
                twice = (event("a", count + 1, id="a/1"),)
                batches = tuple((each,) for each in events("a", count))
                with refused(Conflict):
                    await _copies(target).write(key("a"), RunCopy((*batches, twice)))
            with refused(UsageError):
                await _copies(target).write(key("a"), RunCopy((tuple(events("b", 2)),)))
            assert not await target.log.read(key("a"))
            assert await _copies(target).read(key("a")) is None
            assert not await target.log.named(TENANT, "", 5)

    async def test_a_long_run(self) -> None:
        """Thousands of events in thousands of batches are copied completely."""
        async with self.fresh() as (source, target):
            batches = tuple((each,) for each in events("a", 3000))
            await _copies(source).write(key("a"), RunCopy(batches))
            copy = await _copied(source, target, "a")
            assert copy.batches == batches
            await target.log.append(key("a"), events("a", 1, 3000), 3000)
            with refused(Conflict):
                await target.log.append(key("a"), [event("a", 3002, id="a/7")], 3001)


class TenantListContract:
    """The suite for a store with `TenantList`."""

    def fresh(self) -> AbstractAsyncContextManager[Store]:
        """An empty store."""
        raise NotImplementedError

    async def test_tenants_with_runs_are_listed(self) -> None:
        """Each tenant with a run is listed once, in the order of names."""
        async with self.fresh() as store:
            tenants: TenantList = getattr(store, "tenants")  # noqa: B009 - a store may lack it
            assert list(await tenants.names()) == []
            hostile = "'; DROP TABLE runs; --"
            for tenant, run in ((TENANT, "a"), (OTHER, "a"), (TENANT, "b"), (hostile, "ü%_")):
                await store.log.append(key(run, tenant), events(run, 1), 0)
            assert list(await tenants.names()) == [hostile, TENANT, OTHER]


class RemovalsContract:
    """The suite for a store with `Removals` and a `Pruner`."""

    def fresh(self) -> AbstractAsyncContextManager[Store]:
        """An empty store."""
        raise NotImplementedError

    async def test_counts_are_added_to_one_record(self) -> None:
        """A record of the same instant, person and purpose is continued; others are apart."""
        async with self.fresh() as store:
            removals = _removals(store)
            assert list(await removals.recent(TENANT, 5)) == []
            await removals.add(TENANT, REQUEST)
            await removals.add(TENANT, replace(REQUEST, runs=1, others={"results": 2}))
            await removals.add(TENANT, replace(REQUEST, events=3, others={"results": 1, "x": 1}))
            later = replace(REQUEST, at=REQUEST.at + SECOND, artifacts=7)
            await removals.add(TENANT, later)
            await removals.add(OTHER, replace(REQUEST, by="bob", runs=9))
            both = replace(REQUEST, runs=1, events=3, others={"results": 3, "x": 1})
            assert list(await removals.recent(TENANT, 5)) == [later, both]
            assert list(await removals.recent(TENANT, 1)) == [later]
            assert [each.by for each in await removals.recent(OTHER, 5)] == ["bob"]

    async def test_ids_are_remembered(self) -> None:
        """The id of a removed run is kept for its tenant, also when it is said again."""
        async with self.fresh() as store:
            removals = _removals(store)
            for _ in range(2):
                await removals.remember(key("a"))
            assert await removals.is_removed(key("a"))
            assert not await removals.is_removed(key("a", OTHER))
            assert not await removals.is_removed(key("b"))

    async def test_removed_runs_are_on_record(self) -> None:
        """What a pruner removes is added to the record; what it leaves, or would remove, is not."""
        async with self.fresh() as store:
            pruner: Pruner = getattr(store, "pruner")  # noqa: B009 - a store may lack it
            for run in ("a", "b"):
                batch = [*events(run, 2), event(run, 3, RunFinished())]
                await store.log.append(key(run), batch, 0)
            await store.log.append(key("c"), events("c", 1), 0)
            assert await pruner.remove(key("a"), dry_run=True, record=REQUEST)
            assert await pruner.remove(key("c"), record=REQUEST) is None
            assert list(await _removals(store).recent(TENANT, 5)) == []
            for run in ("a", "b"):
                assert await pruner.remove(key(run), record=REQUEST)
            assert await pruner.remove(key("a"), record=REQUEST) is None
            done = replace(REQUEST, runs=2, events=6)
            assert list(await _removals(store).recent(TENANT, 5)) == [done]


def _migrator(store: Store) -> Migrator:
    return getattr(store, "migrator")  # noqa: B009 - a store may lack it


def _removals(store: Store) -> Removals:
    return getattr(store, "removals")  # noqa: B009 - a store may lack it


def _copies(store: Store) -> Copies:
    return getattr(store, "copies")  # noqa: B009 - a store may lack it


def _branching(store: Store) -> BranchingLog:
    return cast(BranchingLog, store.log)


async def _taken(store: Store) -> Sequence[Migration]:
    return [each async for each in _migrator(store).migrate()]


async def _read(store: Store, run: str) -> RunCopy:
    copy = await _copies(store).read(key(run))
    assert copy is not None
    return copy


async def _copied(source: Store, target: Store, run: str) -> RunCopy:
    copy = await _read(source, run)
    await _copies(target).write(key(run), copy)
    return copy


async def _artifacts(store: Store) -> list[str]:
    reader = Reader(tenant=TENANT, role="developer")
    page = await store.artifacts.query(FilterConfig(), reader, LATER)
    return [each.id for each in page.items]
