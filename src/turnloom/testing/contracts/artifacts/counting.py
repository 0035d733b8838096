"""A summary counts what its reader may see, and nothing else."""

from contextlib import AbstractAsyncContextManager

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    After,
    BoardSummary,
    FilterConfig,
    Labelled,
    Private,
    TagFilter,
    Tenant,
)
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    LATER,
    NOBODY,
    NOON,
    SECOND,
    artifact,
)
from turnloom.testing.contracts.facts import TENANT


class CountingContract:
    """What a summary says."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty store of artifacts."""
        raise NotImplementedError

    async def test_an_empty_board_has_an_empty_summary(self) -> None:
        """Where nothing is, nothing is counted, and nobody has a count of zero."""
        nothing = BoardSummary(total=0, by_type={}, by_producer={}, by_visibility={}, by_tag={})
        async with self.fresh() as store:
            assert await store.summary(FilterConfig(), ANN, LATER) == nothing
            await store.put(TENANT, [artifact("a")])
            assert await store.summary(FilterConfig(types=set()), ANN, LATER) == nothing

    async def test_each_reader_counts_its_own(self) -> None:
        """By type, by producer, by kind of visibility and by each tag, of what a reader may see."""
        async with self.fresh() as store:
            await fill(store)
            assert await store.summary(FilterConfig(), ANN, NOON) == BoardSummary(
                total=4,
                by_type={"t.A": 3, "t.B": 1},
                by_producer={"ann": 2, "bob": 1, "eve": 1},
                by_visibility={"public": 1, "labelled": 1, "tenant": 1, "after": 1},
                by_tag={"x": 2, "y": 1},
            )
            assert await store.summary(FilterConfig(), BOB, NOON) == BoardSummary(
                total=4,
                by_type={"t.A": 3, "t.B": 1},
                by_producer={"ann": 1, "bob": 2, "eve": 1},
                by_visibility={"public": 1, "private": 1, "tenant": 1, "after": 1},
                by_tag={"x": 1, "z": 1},
            )
            assert (await store.summary(FilterConfig(), NOBODY, NOON)).total == 3
            assert (await store.summary(FilterConfig(), ANN, LATER)).total == 5

    async def test_a_filter_says_what_is_counted(self) -> None:
        """Every part of a filter counts, but for its limit and its order."""
        async with self.fresh() as store:
            await fill(store)
            for asked, total in (
                (FilterConfig(types={"t.A"}), 3),
                (FilterConfig(tags=TagFilter(include={"x"}, exclude={"y"})), 1),
                (FilterConfig(where=[("id", "in", ["public", "tenant"])]), 2),
                (FilterConfig(types={"t.A"}, limit=1, order="-created_at"), 3),
            ):
                counted = await store.summary(asked, ANN, NOON)
                assert counted.total == sum(counted.by_type.values()) == total


async def fill(store: ArtifactStore) -> None:
    """Put one artifact of each visibility, and one that opens later."""
    bobs, soon = Private({"bob"}), After(NOON + SECOND)
    await store.put(
        TENANT,
        [
            artifact("public", type="t.A", tags={"x"}),
            artifact("private", type="t.A", tags={"z"}, produced_by="bob", visibility=bobs),
            artifact("labelled", type="t.A", tags={"x", "y"}, visibility=Labelled({"audit"})),
            artifact("tenant", type="t.B", produced_by="eve", visibility=Tenant("acme")),
            artifact(
                "opened", type="t.A", produced_by="bob", visibility=After(NOON, Tenant("acme"))
            ),
            artifact("closed", type="t.C", tags={"x"}, visibility=soon),
        ],
    )
