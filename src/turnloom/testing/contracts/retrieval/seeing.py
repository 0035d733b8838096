"""Who is looking is part of the search: the best of what may be seen, and nothing of the rest."""

from datetime import UTC, datetime, timedelta
from itertools import product

from turnloom.assembly.logic.retrieval import admits
from turnloom.assembly.spec.retrieval import Document, Results
from turnloom.board.spec import After, Labelled, Private, Public, Reader, Tenant, Visibility
from turnloom.testing.contracts.retrieval.samples import (
    HOSTILE,
    QUERIES,
    Collecting,
    agree,
    everything,
    ids,
    library,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)

VISIBILITIES: tuple[Visibility, ...] = (
    Public(),
    Private({"ann"}),
    Private({"ann", "bob"}),
    Labelled({"hr"}),
    Labelled({"hr", "board"}),
    Tenant("acme"),
    Tenant("globex"),
    After(NOON),
    After(NOON, Labelled({"hr"})),
)
READERS = (
    Reader(tenant="acme"),
    Reader("ann", tenant="acme"),
    Reader("bob", {"hr"}, "acme"),
    Reader("eve", {"hr", "board", "more"}, "acme"),
)


class SeeingContract(Collecting):
    """What readers find."""

    async def test_searches_equal_a_comparison_with_what_may_be_seen(self) -> None:
        """However little a reader may see, the best k of it are found, and told as they are."""
        documents = [
            Document(each.id, each.text, each.metadata, visibility=VISIBILITIES[n % 9])
            for n, each in enumerate(library(168))
        ]
        async with self.fresh() as search:
            await search.add(documents, "acme")
            for reader, now in product(READERS, (None, NOON - SECOND, NOON)):
                seen = [each for each in documents if admits(each.visibility, reader, now)]
                by_id = {each.id: each for each in seen}
                for query, filters in product(QUERIES, ({}, {"tenant": ["t1", "t4"]})):
                    wanted = await everything(seen, query, filters)
                    for top_k in (1, 4, 100):
                        found = await search.search(query, top_k, 0.0, filters, reader, now)
                        assert agree(found, wanted, top_k), (reader, now, query, filters, top_k)
                        assert all(e.visibility == by_id[e.source_id].visibility for e in found)

    async def test_whoever_does_not_say_who_is_looking_sees_what_is_public(self) -> None:
        """Doubt closes."""
        async with self.fresh() as search:
            await search.add(
                Document(str(n), "red fish", visibility=each) for n, each in enumerate(VISIBILITIES)
            )
            assert await ids(search, "red fish") == ["0"]

    async def test_visibility_follows_what_documents_become(self) -> None:
        """Another visibility is other content, of every chunk."""
        ann = Reader("ann")
        async with self.fresh() as search:
            for visibility in (Public(), Private({"bob"}), Private({"ann"})):
                text = "red fish\n\nred fish again"
                added = await search.add([Document("a", text, visibility=visibility)])
                assert added.added + added.replaced == 1
                found = await ids(search, "red fish", reader=ann)
                assert found == ([] if "bob" in repr(visibility) else ["a", "a"])
            assert (await search.add([Document("a", text, visibility=visibility)])).unchanged == 1

    async def test_any_name_is_a_label(self) -> None:
        """Names are texts, whatever they look like, and none reaches another."""
        async with self.fresh() as search:
            await search.add(
                Document(word, "red fish", visibility=Labelled({word})) for word in HOSTILE
            )
            for word in HOSTILE:
                assert await ids(search, "red fish", reader=Reader(labels={word})) == [word]

    async def test_it_is_told_whether_everybody_finds_the_same(self) -> None:
        """They do as long as nothing is kept from anybody."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish")])
            found = await search.search("red fish")
            assert isinstance(found, Results) and found.for_all
            await search.add([Document("b", "blue bird", visibility=Private({"ann"}))])
            found = await search.search("red fish", reader=Reader("ann"))
            assert isinstance(found, Results) and not found.for_all
            await search.remove(["b"])
            found = await search.search("red fish")
            assert isinstance(found, Results) and found.for_all
