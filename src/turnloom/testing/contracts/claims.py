"""What all claims do."""

from contextlib import AbstractAsyncContextManager

import anyio

from turnloom.errors import RunBusy
from turnloom.runtime.ports import Claims
from turnloom.testing.contracts.facts import refused, until


class ClaimsContract:
    """The suite for `Claims`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Claims, Claims]]:
        """The claims of two owners on one empty store; the same object twice if need be."""
        raise NotImplementedError

    async def test_a_held_run_is_busy_for_everybody(self) -> None:
        """While a claim is open nobody gets another; afterwards anybody does."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim("a"):
                assert await ours.held("a")
                assert await theirs.held("a")
                for claims in (ours, theirs):
                    with refused(RunBusy):
                        async with claims.claim("a"):
                            raise AssertionError("Two hold the run.")
                assert await ours.held("a")
            assert not await theirs.held("a")
            async with theirs.claim("a"):
                assert await ours.held("a")

    async def test_runs_are_held_one_by_one(self) -> None:
        """A claim on one run says nothing of another."""
        async with self.fresh() as (ours, theirs):
            async with ours.claim("a"), theirs.claim("b"):
                assert not await ours.held("c")
            assert not await ours.held("a")
            assert not await ours.held("b")

    async def test_an_error_frees_the_run(self) -> None:
        """A claim ends with its context, however that ends."""
        async with self.fresh() as (ours, theirs):
            with refused(ValueError):
                async with ours.claim("a"):
                    raise ValueError
            assert not await theirs.held("a")

    async def test_a_cancelled_holder_frees_the_run(self) -> None:
        """Cancellation ends a claim too."""
        async with self.fresh() as (ours, theirs):
            with anyio.move_on_after(0.01):
                async with ours.claim("a"):
                    await anyio.sleep_forever()
            assert not await theirs.held("a")

    async def test_one_of_many_wins(self) -> None:
        """Of many that claim at once exactly one holds the run."""
        outcomes: list[str] = []
        release = anyio.Event()

        async def hold(claims: Claims) -> None:
            try:
                async with claims.claim("a"):
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
