"""What all stores of results do."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

from turnloom.flow.ports import Results

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
            assert await results.find("a", NOW) is None

    async def test_a_result_is_found_by_its_key(self) -> None:
        """It is found as it was kept, and under no other key."""
        async with self.fresh() as results:
            value = {"update": {"total": 3, "names": ["ä", ""]}, "confidence": 0.5}
            await results.keep("a", value, NOW, None)
            assert await results.find("a", NOW + 1000 * SECOND) == value
            assert await results.find("b", NOW) is None

    async def test_a_result_takes_the_place_of_another(self) -> None:
        """The later one counts, and how long it is kept."""
        async with self.fresh() as results:
            await results.keep("a", 1, NOW, NOW + SECOND)
            await results.keep("a", 2, NOW, NOW + 3 * SECOND)
            assert await results.find("a", NOW + 2 * SECOND) == 2

    async def test_a_result_is_there_until_its_time_is_over(self) -> None:
        """At the very instant it still is, and right after not any more."""
        async with self.fresh() as results:
            await results.keep("a", 1, NOW, NOW + SECOND)
            assert await results.find("a", NOW + SECOND) == 1
            assert await results.find("a", NOW + SECOND + INSTANT) is None

    async def test_what_is_over_hides_nothing(self) -> None:
        """Keeping a result lets go of others only when their time is over."""
        async with self.fresh() as results:
            await results.keep("a", 1, NOW, NOW + SECOND)
            await results.keep("b", 2, NOW, None)
            await results.keep("c", 3, NOW + 2 * SECOND, NOW + 4 * SECOND)
            found = [await results.find(key, NOW + 3 * SECOND) for key in "abc"]
            assert found == [None, 2, 3]
