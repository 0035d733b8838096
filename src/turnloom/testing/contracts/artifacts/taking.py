"""Who took an artifact is kept beside it, for those who may see it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import anyio

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import Artifact, Envelope, FilterConfig, Private, Reader
from turnloom.errors import InvalidArtifact
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    HOSTILE,
    LATER,
    NOON,
    SECOND,
    artifact,
    consumption,
    series,
)
from turnloom.testing.contracts.facts import TENANT, refused


class TakingContract:
    """How consumptions are kept and read."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty store of artifacts."""
        raise NotImplementedError

    async def test_who_took_it_comes_back(self) -> None:
        """An envelope holds all that an artifact says, and its consumptions, the oldest first."""
        async with self.fresh() as store:
            await store.put(
                TENANT, [artifact("a", tags={"t"}, run="r"), artifact("b"), artifact("c")]
            )
            late = consumption("a", at=LATER, turn=1)
            first = consumption("a", at=NOON, turn=2)
            await store.consume(TENANT, [late, first])
            await store.consume(TENANT, [consumption("c", agent="bob", subscription="bob/0")])
            a, b, c = await envelopes(store)
            assert plain(a) == artifact("a", tags={"t"}, run="r")
            assert a.consumptions == (first, late)
            assert b.consumptions == ()
            assert c.consumptions == (consumption("c", agent="bob", subscription="bob/0"),)
            page = await store.query(FilterConfig(), ANN, LATER)
            assert [type(item) for item in page.items] == [Artifact] * 3
            assert await store.get("a", ANN, LATER) == plain(a)

    async def test_of_one_moment_the_order_is_always_the_same(self) -> None:
        """Consumptions of one moment go by run, turn and subscription, however they came."""
        several = [
            consumption("a", run=run, turn=turn, subscription=subscription)
            for run in ("B", "a", "b", "é")
            for turn in (2, 10)
            for subscription in ("p", "q")
        ]
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            await store.consume(TENANT, several[::-2])
            await store.consume(TENANT, several)
            [found] = await envelopes(store)
            assert list(found.consumptions) == several

    async def test_the_same_again_changes_nothing(self) -> None:
        """An artifact is taken once by a subscription in a turn of a run, as it was first said."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            await store.consume(TENANT, [])
            await store.consume(TENANT, [consumption("a"), consumption("a", at=LATER)])
            await store.consume(TENANT, [consumption("a", at=LATER), consumption("a", turn=2)])
            [found] = await envelopes(store)
            assert found.consumptions == (consumption("a"), consumption("a", turn=2))

    async def test_it_may_be_known_before_the_artifact_is(self) -> None:
        """What was taken need not be there yet."""
        async with self.fresh() as store:
            await store.consume(TENANT, [consumption("a"), consumption("never")])
            await store.put(TENANT, [artifact("a")])
            [found] = await envelopes(store)
            assert found.consumptions == (consumption("a"),)

    async def test_who_may_not_see_it_is_not_told_who_took_it(self) -> None:
        """The consumptions of what is hidden are hidden too."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a"), artifact("b", visibility=Private({"bob"}))])
            await store.consume(TENANT, [consumption("a"), consumption("b")])
            assert [item.id for item in await envelopes(store)] == ["a"]
            assert [len(item.consumptions) for item in await envelopes(store, BOB)] == [1, 1]

    async def test_pages_of_envelopes(self) -> None:
        """Each page has the consumptions of its own, and the total and cursor that it has else."""
        async with self.fresh() as store:
            await store.put(TENANT, series(5))
            await store.consume(TENANT, [consumption(str(n)) for n in range(5)])
            found, cursor = list[Envelope](), None
            filter = FilterConfig(limit=2, order="-created_at")
            for size in (2, 2, 1):
                items, cursor = await _page(store, filter, cursor)
                assert len(items) == size
                found += items
            assert cursor is None
            assert [item.consumptions[0].artifact for item in found] == ["4", "3", "2", "1", "0"]

    async def test_any_name_and_any_number(self) -> None:
        """Odd names come back as they are, and so does a page of thousands."""
        async with self.fresh() as store:
            odd = [
                consumption(name, agent=name, subscription=name, run=name, turn=n)
                for n, name in enumerate(HOSTILE)
            ]
            await store.put(TENANT, [artifact(name) for name in HOSTILE])
            await store.put(
                TENANT, [artifact(f"{n}", created_at=NOON + SECOND) for n in range(3000)]
            )
            await store.consume(TENANT, [*odd, *(consumption(f"{n}") for n in range(3000))])
            found = await envelopes(store)
            assert [item.consumptions for item in found[: len(odd)]] == [(each,) for each in odd]
            assert all(len(item.consumptions) == 1 for item in found)

    async def test_two_who_say_the_same(self) -> None:
        """The same consumptions in another order at the same moment are kept once."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            taken = [consumption("a", turn=turn) for turn in range(20)]
            async with anyio.create_task_group() as tasks:
                for some in (taken, taken[::-1], taken[10:] + taken[:10]):
                    tasks.start_soon(store.consume, TENANT, some)
            [found] = await envelopes(store)
            assert list(found.consumptions) == taken

    async def test_an_envelope_is_not_put(self) -> None:
        """Who took an artifact is no part of it, so an envelope is none."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            [found] = await envelopes(store)
            with refused(InvalidArtifact):
                await store.put(TENANT, [found])


async def envelopes(store: ArtifactStore, reader: Reader = ANN) -> Sequence[Envelope]:
    """All that a reader sees, with who took it."""
    page = await store.query(FilterConfig(), reader, LATER, embed_meta=True)
    return [item for item in page.items if isinstance(item, Envelope)]


def plain(envelope: Envelope) -> Artifact:
    """The artifact in an envelope."""
    return Artifact(**{name: getattr(envelope, name) for name in Artifact.__struct_fields__})


async def _page(
    store: ArtifactStore, filter: FilterConfig, cursor: str | None
) -> tuple[list[Envelope], str | None]:
    """The envelopes of a page and its cursor, which are those of a page without envelopes."""
    page = await store.query(filter, ANN, LATER, cursor=cursor, count=True)
    same = await store.query(filter, ANN, LATER, cursor=cursor, count=True, embed_meta=True)
    items = [item for item in same.items if isinstance(item, Envelope)]
    assert list(map(plain, items)) == list(page.items)
    assert (same.total, same.cursor) == (page.total, page.cursor)
    return items, same.cursor
