"""Contracts of collections: visibility and tenants."""

from datetime import UTC, datetime, timedelta
from itertools import product

from turnloom.assembly.logic.retrieval import admits
from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.spec.retrieval import AddedDocuments, Document, RetrievalResults
from turnloom.board.spec import (
    After,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    Tenant,
    Visibility,
)
from turnloom.testing.contracts.facts import OTHER, TENANT
from turnloom.testing.contracts.retrieval.samples import (
    HOSTILE,
    QUERIES,
    CollectionSuite,
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


class CollectionVisibilityContract(CollectionSuite):
    """Visibility of documents."""

    async def test_searches_equal_a_comparison_with_visible_documents(self) -> None:
        """A search returns the best k of the chunks that the reader may see, with their
        visibility."""
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
                        found = await search.search(
                            query, top_k, 0.0, filters, reader=reader, now=now
                        )
                        assert agree(found, wanted, top_k), (reader, now, query, filters, top_k)
                        assert all(e.visibility == by_id[e.source_id].visibility for e in found)

    async def test_a_search_without_a_reader_finds_public_documents(self) -> None:
        """A search without a reader finds public documents only."""
        async with self.fresh() as search:
            await search.add(
                Document(str(n), "red fish", visibility=each) for n, each in enumerate(VISIBILITIES)
            )
            assert await ids(search, "red fish") == ["0"]

    async def test_searches_follow_changed_visibility(self) -> None:
        """A changed visibility replaces the document, with all of its chunks."""
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
        """Any string is a valid label, and matches only itself."""
        async with self.fresh() as search:
            await search.add(
                Document(word, "red fish", visibility=Labelled({word})) for word in HOSTILE
            )
            for word in HOSTILE:
                assert await ids(search, "red fish", reader=Reader(labels={word})) == [word]

    async def test_results_say_whether_all_readers_get_the_same(self) -> None:
        """`for_all` is true while no document of the tenant is restricted."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish")])
            found = await search.search("red fish")
            assert isinstance(found, RetrievalResults) and found.for_all
            await search.add([Document("b", "blue bird", visibility=Private({"ann"}))])
            found = await search.search("red fish", reader=Reader("ann"))
            assert isinstance(found, RetrievalResults) and not found.for_all
            await search.remove(["b"])
            found = await search.search("red fish")
            assert isinstance(found, RetrievalResults) and found.for_all


OURS = Reader("ann", {"hr"}, TENANT)
THEIRS = Reader("ann", {"hr"}, OTHER)
DEVELOPER = Reader(tenant=OTHER, role="developer")
KINDS: tuple[Visibility, ...] = (
    Public(),
    Private({"ann"}),
    Labelled({"hr"}),
    Tenant(TENANT),
    Tenant(OTHER),
    After(NOON),
)


class TenantDocumentsContract(CollectionSuite):
    """Tenants in one collection."""

    async def test_tenants_are_separate(self) -> None:
        """Tenants may have documents with the same id; each finds only its own."""
        async with self.fresh() as search:
            for tenant in (TENANT, OTHER):
                given = [
                    Document(str(n), f"red fish\n\nof {tenant}", {"n": n}, visibility=each)
                    for n, each in enumerate(KINDS)
                ]
                assert await search.add(given, tenant) == AddedDocuments(added=6, chunks=12)
                assert await search.add(given, tenant) == AddedDocuments(unchanged=6)
            for reader in (OURS, THEIRS):
                seen = ["0", "1", "2", "3" if reader is OURS else "4", "5"]
                for top_k in (2, 100):
                    found = await search.search(
                        f"of {reader.tenant}", top_k, 0.9, None, reader=reader, now=NOON
                    )
                    assert [each.source_id for each in found] == seen[:top_k]
                    assert {each.content for each in found} == {f"of {reader.tenant}"}
                assert (
                    await ids(search, "red fish", reader=reader, filters={"n": [0, 9]}) == ["0"] * 2
                )
            assert await ids(search, "red fish") == []

    async def test_searches_equal_a_comparison_with_the_tenants_documents(self) -> None:
        """A search returns the best k of the tenant's chunks among those of other tenants."""
        documents = library(120)
        parts = {f"t{k}": documents[k::3] for k in range(3)}
        async with self.fresh() as search:
            for tenant, part in parts.items():
                await search.add(part, tenant)
            for (tenant, part), query in product(parts.items(), QUERIES):
                for filters in ({}, {"year": [2000, 2001]}):
                    wanted = await everything(part, query, filters)
                    for top_k in (1, 4, 100):
                        reader = Reader(tenant=tenant)
                        found = await search.search(query, top_k, 0.0, filters, reader=reader)
                        assert agree(found, wanted, top_k), (tenant, query, filters, top_k)

    async def test_changes_of_one_tenant_leave_the_others_alone(self) -> None:
        """Replacing and removing documents does not affect other tenants."""
        async with self.fresh() as search:
            for tenant in (TENANT, OTHER):
                await search.add([Document("a", "red fish"), Document("b", "red fish")], tenant)
            assert await search.add([Document("a", "blue birds")], TENANT) == AddedDocuments(
                0, 1, 0, 1
            )
            assert await search.remove(["a", "b", "c"], "initech") == 0
            assert await search.remove(["b"], TENANT) == 1
            assert await _texts(search, OURS) == {"a": "blue birds"}
            assert await _texts(search, THEIRS) == {"a": "red fish", "b": "red fish"}
            assert await search.remove(["a", "b"], OTHER) == 2
            assert await _texts(search, THEIRS) == {}
            assert await _texts(search, OURS) == {"a": "blue birds"}

    async def test_the_default_tenant_is_local(self) -> None:
        """Without a tenant, documents belong to the tenant `local`."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish")])
            assert await ids(search, "red fish") == ["a"]
            assert await ids(search, "red fish", reader=Reader(tenant="local")) == ["a"]
            assert await ids(search, "red fish", reader=OURS) == []
            assert await search.remove(["a"], TENANT) == 0
            assert await search.remove(["a"]) == 1

    async def test_shared_documents_are_found_by_all(self) -> None:
        """Every tenant finds shared documents; with the same id and score, its own comes first."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish", visibility=Shared())], TENANT)
            await search.add([Document("b", "red fish", visibility=Private({"eve"}))], TENANT)
            for reader in (Reader(), OURS, THEIRS, DEVELOPER):
                assert await ids(search, "red fish", reader=reader) == ["a"]
            mine = Document("a", "red fish", {"whose": OTHER})
            await search.add([mine], OTHER)
            for top_k in (1, 2):
                found = await search.search("red fish", top_k, 0.5, None, reader=THEIRS)
                assert [each.metadata for each in found] == [{"whose": OTHER}, {}][:top_k]
                assert [each.visibility for each in found] == [Public(), Shared()][:top_k]
            filters = {"whose": OTHER}
            assert await ids(search, "red fish", reader=THEIRS, filters=filters) == ["a"]
            assert await ids(search, "red fish", reader=OURS, filters=filters) == []
            assert await search.add([Document("a", "red fish")], TENANT) == AddedDocuments(
                0, 1, 0, 1
            )
            assert await ids(search, "red fish", reader=Reader()) == []
            assert len(await ids(search, "red fish", reader=THEIRS)) == 1

    async def test_documents_shared_from_an_instant_on(self) -> None:
        """A document shared from an instant on is found then; earlier only by developers of its
        tenant."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish", visibility=After(NOON, Shared()))], TENANT)
            own = Reader(tenant=TENANT, role="developer")
            for reader in (Reader(), OURS, THEIRS, DEVELOPER):
                assert await ids(search, "red fish", reader=reader) == []
                assert await ids(search, "red fish", reader=reader, now=NOON - SECOND) == []
                assert await ids(search, "red fish", reader=reader, now=NOON) == ["a"]
            assert await ids(search, "red fish", reader=own, now=NOON - SECOND) == ["a"]

    async def test_a_developer_finds_all_of_the_tenant(self) -> None:
        """A developer finds all documents of their tenant, and none of others."""
        async with self.fresh() as search:
            for tenant in (TENANT, OTHER):
                given = enumerate((*KINDS, Private({"eve"})))
                named = (Document(f"{tenant}{n}", "red fish", visibility=v) for n, v in given)
                await search.add(named, tenant)
            found = await ids(search, "red fish", reader=DEVELOPER)
            assert found == [f"{OTHER}{n}" for n in range(7)]

    async def test_restrictions_of_other_tenants_do_not_matter(self) -> None:
        """`for_all` does not depend on restricted documents of other tenants."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish", visibility=Private({"ann"}))], OTHER)
            await search.add([Document("a", "red fish", visibility=Shared())], TENANT)
            for reader, same in ((OURS, True), (THEIRS, False)):
                found = await search.search("red fish", reader=reader)
                assert isinstance(found, RetrievalResults) and found.for_all is same

    async def test_any_text_names_a_tenant(self) -> None:
        """Any string is a valid tenant, and matches only itself."""
        async with self.fresh() as search:
            for word in HOSTILE:
                await search.add([Document("a", "red fish", {"whose": word})], word)
            for word in HOSTILE:
                found = await search.search("red fish", 9, 0.5, None, reader=Reader(tenant=word))
                assert [each.metadata for each in found] == [{"whose": word}]


async def _texts(search: VectorSearch, reader: Reader) -> dict[str, str]:
    found = await search.search("red fish blue birds", 100, 0.0, None, reader=reader)
    return {each.source_id: each.content for each in found}
