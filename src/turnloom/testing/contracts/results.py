"""What all stores of results do."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

from turnloom.flow.ports import Results
from turnloom.testing.contracts.facts import OTHER, TENANT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)


class ResultsContract:
    """The suite for `Results`."""

    def fresh(self) -> AbstractAsyncContextManager[Results]:
        """An empty store of results."""
        raise NotImplementedError

    async def test_nothing_is_there_at_first(self) -> None:
        """What nobody kept is not found."""
        async with self.fresh() as results:
            assert await results.find(TENANT, "a", NOW) is None

    async def test_a_result_is_found_by_its_key(self) -> None:
        """It is found as it was kept, and under no other key."""
        async with self.fresh() as results:
            value = {"update": {"total": 3, "names": ["ä", ""]}, "confidence": 0.5}
            await results.keep(TENANT, "a", value, now=NOW, until=None)
            assert await results.find(TENANT, "a", NOW + 1000 * SECOND) == value
            assert await results.find(TENANT, "b", NOW) is None

    async def test_a_result_takes_the_place_of_another(self) -> None:
        """The later one counts, and how long it is kept."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", 1, now=NOW, until=NOW + SECOND)
            await results.keep(TENANT, "a", 2, now=NOW, until=NOW + 3 * SECOND)
            assert await results.find(TENANT, "a", NOW + 2 * SECOND) == 2

    async def test_a_result_is_there_until_its_time_is_over(self) -> None:
        """At the very instant it still is, and right after not any more."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", 1, now=NOW, until=NOW + SECOND)
            assert await results.find(TENANT, "a", NOW + SECOND) == 1
            assert await results.find(TENANT, "a", NOW + SECOND + INSTANT) is None

    async def test_what_is_over_hides_nothing(self) -> None:
        """Keeping a result lets go of others only when their time is over."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", 1, now=NOW, until=NOW + SECOND)
            await results.keep(TENANT, "b", 2, now=NOW, until=None)
            await results.keep(TENANT, "c", 3, now=NOW + 2 * SECOND, until=NOW + 4 * SECOND)
            found = [await results.find(TENANT, key, NOW + 3 * SECOND) for key in "abc"]
            assert found == [None, 2, 3]

    async def test_tenants_do_not_meet(self) -> None:
        """Results of one key are kept for each tenant, and last as long as each of them says."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", "ours", now=NOW, until=NOW + SECOND)
            assert await results.find(OTHER, "a", NOW) is None
            late = NOW + 2 * SECOND
            await results.keep(OTHER, "a", "theirs", now=late, until=None)
            assert await results.find(TENANT, "a", NOW) == "ours"
            assert await results.find(OTHER, "a", NOW) == "theirs"
