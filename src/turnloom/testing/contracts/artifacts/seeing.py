"""Nobody is given, or told of, what they may not see."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    After,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    TagFilter,
    Tenant,
)
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    NOBODY,
    NOON,
    SECOND,
    SEEN_BY,
    artifact,
    ids,
    series,
)
from turnloom.testing.contracts.facts import TENANT


class SeeingContract:
    """Who sees what."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty store of artifacts."""
        raise NotImplementedError

    async def test_each_reader_sees_its_own(self) -> None:
        """Every way to read gives the same answer to the same reader."""
        async with self.fresh() as store:
            for n, (visibility, _) in enumerate(SEEN_BY):
                await store.put(
                    TENANT, [artifact(str(n), visibility=visibility, tags={"t"}, run="r")]
                )
            for reader in (ANN, BOB, NOBODY):
                seen = [str(n) for n, (_, readers) in enumerate(SEEN_BY) if reader in readers]
                questions: list[dict[str, Any]] = [
                    *({}, {"types": {"test.Note"}}, {"runs": {"r"}, "produced_by": {"ann"}}),
                    *({"tags": TagFilter(include={"t"})}, {"tags": TagFilter(exclude={"u"})}),
                    {"where": [("id", "exists", True)]},
                ]
                for asked in questions:
                    assert await ids(store, reader, NOON, **asked) == seen
                for n, (visibility, readers) in enumerate(SEEN_BY):
                    found = await store.get(str(n), reader, NOON)
                    assert (found is not None) == (reader in readers)
                    assert found is None or found.visibility == visibility

    async def test_a_reader_without_names_has_no_names(self) -> None:
        """Who is nobody is not an agent or a label that has no name; a name of one kind is none of
        another."""
        async with self.fresh() as store:
            await store.put(
                TENANT,
                [
                    artifact("a", visibility=Private({"ann"})),
                    artifact("b", visibility=Labelled({"staff"})),
                    artifact("c", visibility=Tenant("globex")),
                ],
            )
            for agent in ("", "acme", "globex", "staff"):
                assert await ids(store, Reader(agent, tenant=TENANT)) == []
            assert await ids(store, Reader(labels={"ann", "globex"}, tenant=TENANT)) == []
            for stranger in ("", "ann", "staff", "globex"):
                assert await ids(store, Reader("ann", {"staff"}, stranger)) == []

    async def test_a_limit_counts_what_is_seen(self) -> None:
        """A hundred hidden ones before three that are not leave room for these three."""
        hidden = [Private({"bob"}), Labelled({"staff", "secret"}), Tenant("globex")]
        hidden += [After(NOON + timedelta(days=1), Public())]
        async with self.fresh() as store:
            for part, visibility in enumerate(hidden):
                await store.put(
                    TENANT, [artifact(f"{part}.{n}", visibility=visibility) for n in range(100)]
                )
            await store.put(TENANT, [artifact(str(n), tags={"t"}) for n in range(3)])
            await store.put(
                TENANT, [artifact(f"behind {n}", visibility=hidden[1]) for n in range(100)]
            )
            for order in ("created_at", "-created_at"):
                asked = FilterConfig(limit=3, order=order)
                page = await store.query(asked, ANN, NOON, count=True)
                assert sorted(item.id for item in page.items) == ["0", "1", "2"]
                assert page.total == 3 and page.cursor is None

    async def test_an_instant_opens_and_stays_open(self) -> None:
        """Before its instant nobody sees it, from then on whoever may."""
        at, tick = NOON + 5 * SECOND, timedelta(microseconds=1)
        async with self.fresh() as store:
            await store.put(
                TENANT,
                [
                    artifact("a", visibility=After(at, Private({"ann"}))),
                    artifact("b", visibility=After(at - SECOND, After(at, Public()))),
                ],
            )
            for moment in (NOON, at - tick):
                assert await ids(store, ANN, moment) == []
            for moment in (at, at + tick):
                assert await ids(store, ANN, moment) == ["a", "b"]
                assert await ids(store, BOB, moment) == ["b"]

    async def test_upcoming_instants(self) -> None:
        """The instants at which something opens are told in order, each once, none that passed."""
        async with self.fresh() as store:
            await store.put(TENANT, series(3))
            for n, second in enumerate((30, 10, 20, 10, -10, 0)):
                opening = After(NOON, After(NOON + second * SECOND, Tenant("acme")))
                await store.put(TENANT, [artifact(f"later {n}", visibility=opening)])
            expected = [NOON + second * SECOND for second in (10, 20, 30)]
            assert list(await store.upcoming(TENANT, NOON, 9)) == expected
            assert list(await store.upcoming(TENANT, NOON, 2)) == expected[:2]
            assert list(await store.upcoming(TENANT, expected[0], 9)) == expected[1:]
            assert list(await store.upcoming(TENANT, expected[0] - SECOND, 1)) == expected[:1]
            assert list(await store.upcoming(TENANT, expected[2], 9)) == []
