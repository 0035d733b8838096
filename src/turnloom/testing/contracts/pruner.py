"""Contract suite for pruners."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.spec import FilterConfig, Reader
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.jobs.ports import JobStore
from turnloom.jobs.spec import JobResult, StoredJob
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Event, Fact
from turnloom.runtime.ports import Pruner, Store
from turnloom.runtime.spec import Stop
from turnloom.testing.contracts.artifacts.samples import LATER, artifact
from turnloom.testing.contracts.facts import BEGINNING, OTHER, TENANT, event, key

ALL = ("finished", "failed", "cancelled")
# An instant after the end of every run of this suite.
THEN = BEGINNING + timedelta(hours=1)


class PrunerContract:
    """The suite for a `Pruner`."""

    def fresh(self) -> AbstractAsyncContextManager[Store]:
        """An empty store with a pruner and with artifacts that follow its log."""
        raise NotImplementedError

    async def test_ended_runs_come_latest_first(self) -> None:
        """`ended` returns the runs that ended before an instant and with a given status, latest
        first."""
        async with self.fresh() as store:
            pruner = _pruner(store)
            for run, end in (("a", RunFinished()), ("b", RunFailed("X", "no")), ("c", None)):
                await _run(store, run, end)
            await _run(store, "d", RunCancelled("ann"), noted=3)
            await _run(store, "e", RunFinished(), tenant=OTHER)
            found = [each async for each in pruner.ended(TENANT, THEN, ALL)]
            assert [(each.run, each.status) for each in found] == [
                ("d", "cancelled"),
                ("b", "failed"),
                ("a", "finished"),
            ]
            early = [each.run async for each in pruner.ended(TENANT, found[0].ended, ALL)]
            assert early == ["b", "a"]
            assert [each.run async for each in pruner.ended(TENANT, THEN, ["failed"])] == ["b"]

    async def test_a_run_is_removed_completely(self) -> None:
        """Removing a run removes all of its data, and nothing of other runs."""
        async with self.fresh() as store:
            pruner = _pruner(store)
            for tenant in (TENANT, OTHER):
                for run in ("a", "b"):
                    made = ArtifactPublished(artifact(f"of {run}", run=run))
                    await _run(store, run, RunFinished(), made, tenant=tenant)
                    await store.snapshots.save(key(run, tenant), 1, b"state")
                    await store.inbox.offer(key(run, tenant), "late", Stop("ann"))
            others = (("b", TENANT), ("a", OTHER))
            held = [await _holdings(store, *each) for each in others]
            assert all(all(each) for each in held)
            would = await pruner.remove(key("a"), dry_run=True)
            assert all(await _holdings(store, "a", TENANT))
            removed = await pruner.remove(key("a"))
            assert removed is not None and removed == would
            assert (removed.run, removed.events, removed.artifacts) == ("a", 2, 1)
            assert not any(await _holdings(store, "a", TENANT))
            assert held == [await _holdings(store, *each) for each in others]
            assert await pruner.remove(key("a")) is None
            await pruner.compact()
            await _run(store, "a", RunFinished())
            assert len(await store.log.read(key("a"))) == 1

    async def test_what_jobs_say_about_a_run_is_removed_with_it(self) -> None:
        """Removing a run removes the results of jobs about it, if the store has `jobs`."""
        async with self.fresh() as store:
            jobs: JobStore | None = getattr(store, "jobs", None)
            for tenant in (TENANT, OTHER) if jobs is not None else ():
                assert jobs is not None
                job = StoredJob("j", "retry", "ann", 2, begun=BEGINNING, alive=BEGINNING)
                await jobs.add(tenant, job)
                for number, run in enumerate(("a", "b"), 1):
                    await _run(store, run, RunFinished(), tenant=tenant)
                    found = JobResult(number, run, b"{}")
                    await jobs.advance(tenant, "j", BEGINNING, found)
            assert await _pruner(store).remove(key("a")) or jobs is None
            if jobs is not None:
                assert [each.run for each in await jobs.results(TENANT, "j")] == ["b"]
                assert [each.run for each in await jobs.results(OTHER, "j")] == ["a", "b"]

    async def test_beliefs_stay_without_the_events_that_they_are_based_on(self) -> None:
        """What agents are believed to be worth outlives a run; which events said so does not."""
        async with self.fresh() as store:
            pool = Pool(TENANT, "Desk", "billing")
            for run in ("a", "b"):
                await _run(store, run, RunFinished())
            seen = [Observation(run, "1", pool, "Ann", credit=1.0) for run in ("a", "b")]
            await store.beliefs.observe(seen)
            assert await _pruner(store).remove(key("a"))
            assert await store.beliefs.beliefs(pool, ["Ann"]) == {"Ann": Belief(2.0, 0.0)}
            await store.beliefs.observe(seen)
            assert await store.beliefs.beliefs(pool, ["Ann"]) == {"Ann": Belief(3.0, 0.0)}

    async def test_an_unfinished_run_stays(self) -> None:
        """A run that has not ended cannot be removed."""
        async with self.fresh() as store:
            await _run(store, "a", None, noted=2)
            assert await _pruner(store).remove(key("a")) is None
            assert len(await store.log.read(key("a"))) == 2

    async def test_a_run_with_taken_artifacts_stays(self) -> None:
        """A run can be removed only after, or with, the runs that took its artifacts."""
        async with self.fresh() as store:
            pruner = _pruner(store)
            await _run(store, "a", RunFinished(), ArtifactPublished(artifact("x", run="a")))
            taken = ArtifactConsumed("ann", "ann#1", ("x",), turn=1)
            await _run(store, "b", RunFinished(), taken)
            assert await pruner.remove(key("a")) is None
            assert await store.log.read(key("a"))
            assert await pruner.remove(key("a"), without={"b"}, dry_run=True)
            assert await pruner.remove(key("b"))
            assert not await store.artifacts.consumptions(TENANT, ["x"])
            assert await pruner.remove(key("a"))


def _pruner(store: Store) -> Pruner:
    return getattr(store, "pruner")  # noqa: B009 - a store may lack it


async def _run(
    store: Store, run: str, end: Fact | None, *facts: Fact, tenant: str = TENANT, noted: int = 0
) -> None:
    given = [*(None for _ in range(noted)), *facts, *([end] if end else [])]
    batch: Sequence[Event] = [event(run, seq, fact) for seq, fact in enumerate(given, 1)]
    await store.log.append(key(run, tenant), batch, 0)


async def _holdings(store: Store, run: str, tenant: str) -> list[object]:
    """The stored data of a run."""
    reader = Reader(tenant=tenant, role="developer")
    page = await store.artifacts.query(FilterConfig(runs={run}), reader, LATER)
    return [
        await store.log.read(key(run, tenant)),
        await store.log.named(tenant, run, 1),
        await store.snapshots.load(key(run, tenant)),
        await store.inbox.pending(key(run, tenant)),
        page.items,
    ]
