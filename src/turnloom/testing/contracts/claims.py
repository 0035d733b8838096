"""Contract suites for claims."""

from contextlib import AbstractAsyncContextManager

import anyio

from turnloom.errors import LeaseLost, RunBusy
from turnloom.runtime.ports import Claims, Store
from turnloom.testing.contracts.facts import OTHER, events, key, refused, until


class ClaimsContract:
    """The suite for `Claims`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Claims, Claims]]:
        """The claims of two owners on one empty store; may be the same object twice."""
        raise NotImplementedError

    async def test_a_claimed_run_is_busy_for_all_owners(self) -> None:
        """A run with an open claim cannot be claimed; afterwards every owner can claim it."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim(key("a")):
                assert await ours.held(key("a"))
                assert await theirs.held(key("a"))
                for claims in (ours, theirs):
                    with refused(RunBusy):
                        async with claims.claim(key("a")):
                            raise AssertionError("Two claims hold the run at once.")
                assert await ours.held(key("a"))
            assert not await theirs.held(key("a"))
            async with theirs.claim(key("a")):
                assert await ours.held(key("a"))

    async def test_runs_are_held_one_by_one(self) -> None:
        """A claim holds one run only."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim(key("a")), theirs.claim(key("b")):
                assert not await ours.held(key("c"))
            assert not await ours.held(key("a"))
            assert not await ours.held(key("b"))

    async def test_tenants_are_separate(self) -> None:
        """A claim holds the run of one tenant; the same id of another tenant stays free."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim(key("a")):
                assert not await theirs.held(key("a", OTHER))
                async with theirs.claim(key("a", OTHER)):
                    assert await ours.held(key("a", OTHER))
                assert await ours.held(key("a"))

    async def test_a_fence_only_grows(self) -> None:
        """Each claim on a run has a higher fence than all earlier ones."""
        fences: list[int] = []
        async with self.fresh() as (ours, theirs):
            for claims in (ours, theirs, theirs, ours):
                async with claims.claim(key("a")) as fence:
                    fences.append(fence)
        assert fences == sorted(set(fences))

    async def test_the_holder_is_known(self) -> None:
        """`held` returns the process that holds the run, and the rest of its lease."""
        async with self.fresh() as (ours, theirs), ours.claim(key("a")):
            holder = await theirs.held(key("a"))
            assert holder is not None
            assert holder.process
            assert holder.process in str(holder)
            assert holder.seconds is None or holder.seconds > 0

    async def test_an_error_frees_the_run(self) -> None:
        """An error in the context releases the run."""
        async with self.fresh() as (ours, theirs):
            with refused(ValueError):
                async with ours.claim(key("a")):
                    raise ValueError
            assert not await theirs.held(key("a"))

    async def test_a_cancelled_holder_frees_the_run(self) -> None:
        """A cancelled claim releases the run."""
        async with self.fresh() as (ours, theirs):
            with anyio.move_on_after(0.01):
                async with ours.claim(key("a")):
                    await anyio.sleep_forever()
            assert not await theirs.held(key("a"))

    async def test_one_of_many_wins(self) -> None:
        """Of many concurrent claims exactly one succeeds."""
        outcomes: list[str] = []
        release = anyio.Event()

        async def hold(claims: Claims) -> None:
            try:
                async with claims.claim(key("a")):
                    outcomes.append("held")
                    await release.wait()
            except RunBusy:
                outcomes.append("busy")

        async with self.fresh() as pair, anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(hold, pair[n % 2])
            await until(lambda: len(outcomes) == 20)
            release.set()
        assert sorted(outcomes) == ["busy"] * 19 + ["held"]


class FenceContract:
    """The suite for a `Store` that checks fences when it appends."""

    def fresh(self) -> AbstractAsyncContextManager[Store]:
        """An empty store."""
        raise NotImplementedError

    async def test_a_claim_lets_its_holder_append(self) -> None:
        """An append with the fence of a claim in force is stored; so is one without a fence."""
        async with self.fresh() as store:
            await store.log.append(key("a"), events("a", 1), 0)
            async with store.claims.claim(key("a")) as fence:
                await store.log.append(key("a"), events("a", 2, 1), 1, fence)
                await store.log.append(key("a"), events("a", 1, 3), 3, fence)
            async with store.claims.claim(key("b")) as fence:
                await store.log.append(key("b"), events("b", 1), 0, fence)
            assert len(await store.log.read(key("a"))) == 4
            assert len(await store.log.read(key("b"))) == 1

    async def test_a_claim_that_is_over_stores_nothing(self) -> None:
        """An append with the fence of an ended claim is rejected, even if it repeats a stored
        batch."""
        async with self.fresh() as store:
            async with store.claims.claim(key("a")) as stale:
                await store.log.append(key("a"), events("a", 1), 0, stale)
            for fence in (stale, stale + 1000):
                with refused(LeaseLost):
                    await store.log.append(key("a"), events("a", 1, 1), 1, fence)
                with refused(LeaseLost):
                    await store.log.append(key("a"), events("a", 1), 0, fence)
                with refused(LeaseLost):
                    await store.log.append(key("new"), events("new", 1), 0, fence)
            assert len(await store.log.read(key("a"))) == 1
            assert not await store.log.read(key("new"))

    async def test_the_next_holder_is_not_disturbed(self) -> None:
        """While a claim is in force, a fence of an earlier claim cannot append."""
        refusals = 0

        async def append(run: str, fence: int) -> None:
            nonlocal refusals
            try:
                await store.log.append(key(run), events(run, 1, 1), 1, fence)
            except LeaseLost:
                refusals += 1

        async with self.fresh() as store:
            for run in ("a", "b"):
                await store.log.append(key(run), events(run, 1), 0)
            async with store.claims.claim(key("a")) as stale:
                pass
            async with (
                store.claims.claim(key("a")) as ours,
                store.claims.claim(key("b")) as other,
            ):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(append, "a", stale)
                    tasks.start_soon(append, "b", other)
                assert refusals == 1
                assert len(await store.log.read(key("a"))) == 1
                assert len(await store.log.read(key("b"))) == 2
                await append("a", ours)
                assert len(await store.log.read(key("a"))) == 2
