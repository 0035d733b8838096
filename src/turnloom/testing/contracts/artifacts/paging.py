"""Artifacts come in order, and in pages."""

from contextlib import AbstractAsyncContextManager
from itertools import chain, count

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import FilterConfig, Private
from turnloom.errors import UsageError
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    LATER,
    NOON,
    SECOND,
    artifact,
    ids,
    pages,
    series,
)
from turnloom.testing.contracts.facts import TENANT, refused


class PagingContract:
    """In which order artifacts come."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty store of artifacts."""
        raise NotImplementedError

    async def test_time_orders_and_then_coming(self) -> None:
        """Artifacts of one moment stay in the order in which they came, in both directions."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("late", created_at=LATER)])
            await store.put(TENANT, [artifact(id) for id in ("z", "a", "m")])
            await store.put(TENANT, [artifact("early", created_at=NOON - SECOND)])
            await store.put(TENANT, [artifact("b")])
            order = ["early", "z", "a", "m", "b", "late"]
            assert await ids(store) == order
            assert await ids(store, order="-created_at") == order[::-1]
            assert await ids(store, limit=2) == order[:2]
            assert await ids(store, limit=3, order="-created_at") == order[:2:-1]

    async def test_pages_have_no_gap_and_no_repeat(self) -> None:
        """Pages of any size make up the whole, whatever the order."""
        async with self.fresh() as store:
            await store.put(
                TENANT, [artifact(str(n), created_at=NOON + n // 4 * SECOND) for n in range(23)]
            )
            for order in ("created_at", "-created_at"):
                whole = await ids(store, order=order)
                for limit in (1, 4, 22, 23, 24):
                    found = await pages(store, FilterConfig(limit=limit, order=order))
                    assert list(chain.from_iterable(found)) == whole
                    assert all(len(page) == limit for page in found[:-1]) and found[-1]

    async def test_pages_while_writes_go_on(self) -> None:
        """Whatever was there when reading began comes once, whatever comes meanwhile."""
        async with self.fresh() as store:
            for order in ("created_at", "-created_at"):
                before = await ids(store, order=order)
                await store.put(TENANT, [artifact(f"{order} {n}") for n in range(10)])
                there = set(await ids(store)) - set(before)
                found: list[str] = []
                filter, cursor = FilterConfig(limit=3, order=order), ""
                for n in count():
                    page = await store.query(filter, ANN, LATER, cursor=cursor or None)
                    found += [item.id for item in page.items]
                    if page.cursor is None:
                        break
                    cursor = page.cursor
                    at = NOON + (n % 3 - 1) * SECOND
                    await store.put(TENANT, [artifact(f"{order} meanwhile {n}", created_at=at)])
                assert len(found) == len(set(found)) and there | set(before) <= set(found)

    async def test_a_cursor_belongs_to_its_filter_and_reader(self) -> None:
        """A cursor that means nothing, or something else, is refused; the limit may change."""
        async with self.fresh() as store:
            await store.put(TENANT, [*series(9), artifact("hidden", visibility=Private({"ann"}))])
            page = await store.query(FilterConfig(limit=3), ANN, LATER)
            rest = await store.query(FilterConfig(limit=9), ANN, LATER, cursor=page.cursor)
            assert len(rest.items) == 7 and rest.cursor is None
            for asked in (FilterConfig(limit=3, order="-created_at"), FilterConfig(types={"x"})):
                with refused(UsageError):
                    await store.query(asked, ANN, LATER, cursor=page.cursor)
            for nonsense in ("", "x", "é", "bnVsbA==", page.cursor and page.cursor[:-6]):
                with refused(UsageError):
                    await store.query(FilterConfig(limit=3), ANN, LATER, cursor=nonsense)
            with refused(UsageError):
                await store.query(FilterConfig(limit=3), BOB, LATER, cursor=page.cursor)
            hidden = await store.query(FilterConfig(limit=2), ANN, LATER)
            assert [item.id for item in hidden.items] == ["0", "hidden"]
            with refused(UsageError):
                await store.query(FilterConfig(limit=2), BOB, LATER, cursor=hidden.cursor)
