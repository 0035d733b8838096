"""What all claims do."""

from contextlib import AbstractAsyncContextManager

import anyio

from turnloom.errors import RunBusy
from turnloom.runtime.ports import Claims
from turnloom.testing.contracts.facts import OTHER, key, refused, until


class ClaimsContract:
    """The suite for `Claims`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Claims, Claims]]:
        """The claims of two owners on one empty store; the same object twice if need be."""
        raise NotImplementedError

    async def test_a_held_run_is_busy_for_everybody(self) -> None:
        """While a claim is open nobody gets another; afterwards anybody does."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim(key("a")):
                assert await ours.held(key("a"))
                assert await theirs.held(key("a"))
                for claims in (ours, theirs):
                    with refused(RunBusy):
                        async with claims.claim(key("a")):
                            raise AssertionError("Two hold the run.")
                assert await ours.held(key("a"))
            assert not await theirs.held(key("a"))
            async with theirs.claim(key("a")):
                assert await ours.held(key("a"))

    async def test_runs_are_held_one_by_one(self) -> None:
        """A claim on one run says nothing of another."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim(key("a")), theirs.claim(key("b")):
                assert not await ours.held(key("c"))
            assert not await ours.held(key("a"))
            assert not await ours.held(key("b"))

    async def test_tenants_do_not_meet(self) -> None:
        """A run is held for its tenant, and one of the same id stays free."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim(key("a")):
                assert not await theirs.held(key("a", OTHER))
                async with theirs.claim(key("a", OTHER)):
                    assert await ours.held(key("a", OTHER))
                assert await ours.held(key("a"))

    async def test_an_error_frees_the_run(self) -> None:
        """A claim ends with its context, however that ends."""
        async with self.fresh() as (ours, theirs):
            with refused(ValueError):
                async with ours.claim(key("a")):
                    raise ValueError
            assert not await theirs.held(key("a"))

    async def test_a_cancelled_holder_frees_the_run(self) -> None:
        """Cancellation ends a claim too."""
        async with self.fresh() as (ours, theirs):
            with anyio.move_on_after(0.01):
                async with ours.claim(key("a")):
                    await anyio.sleep_forever()
            assert not await theirs.held(key("a"))

    async def test_one_of_many_wins(self) -> None:
        """Of many that claim at once exactly one holds the run."""
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
