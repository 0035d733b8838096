"""Contract suite for places of limits."""

from contextlib import AbstractAsyncContextManager

from turnloom.runtime.ports import Permits
from turnloom.runtime.spec import Limit

ONE, TWO = Limit("model a", at_once=1), Limit("model a", at_once=2)
SELDOM = Limit("model b", per_minute=2)


class PermitsContract:
    """The suite for `Permits`."""

    def fresh(self) -> AbstractAsyncContextManager[Permits]:
        """Permits of which none is taken."""
        raise NotImplementedError

    async def test_as_many_places_as_a_limit_has(self) -> None:
        """Beyond its number, a limit says when to ask again; a place that is given back is free."""
        async with self.fresh() as permits:
            assert [await permits.acquire(TWO, place) for place in "ab"] == [0, 0]
            assert 0 < await permits.acquire(TWO, "c") < 60
            await permits.release(TWO, "a")
            assert await permits.acquire(TWO, "c") == 0
            assert await permits.acquire(TWO, "d") > 0

    async def test_limits_do_not_know_each_other(self) -> None:
        """A place of one limit takes none of another; giving back what was not taken is nothing."""
        async with self.fresh() as permits:
            assert await permits.acquire(ONE, "a") == 0
            assert await permits.acquire(ONE._replace(name="model c"), "a") == 0
            await permits.release(ONE, "unknown")
            assert await permits.acquire(ONE, "b") > 0

    async def test_places_per_minute_stay_taken(self) -> None:
        """What was taken within a minute counts, also after it was given back."""
        async with self.fresh() as permits:
            for place in "ab":
                assert await permits.acquire(SELDOM, place) == 0
                await permits.release(SELDOM, place)
            assert 1 < await permits.acquire(SELDOM, "c") <= 60

    async def test_both_at_once(self) -> None:
        """A limit of both kinds takes no place per minute for a call that must wait."""
        limit = Limit("model d", at_once=1, per_minute=2)
        async with self.fresh() as permits:
            assert await permits.acquire(limit, "a") == 0
            for _ in range(3):
                assert 0 < await permits.acquire(limit, "b") < 1
            await permits.release(limit, "a")
            assert await permits.acquire(limit, "b") == 0
