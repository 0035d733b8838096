"""Collections in PostgreSQL."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg import AsyncConnection, errors
from psycopg.sql import SQL

from tests.adapters.postgres.test_trouble import execute
from tests.support.loopback import listening, stay_silent
from tests.support.raising import raising
from tests.support.servers import PASSWORD, free_port
from turnloom.adapters.postgres import PostgresArtifacts, PostgresVectors
from turnloom.adapters.postgres import vector_queries as queries
from turnloom.adapters.postgres.faults import locate
from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.service.retrieval import space_of
from turnloom.assembly.spec.retrieval import Chunk, Document, Matching, Probe, Space, StoredDocument
from turnloom.errors import CollectionUnavailable, UsageError
from turnloom.testing import HashingEmbedder
from turnloom.testing.contracts import PruningContract, VectorSearchContract, WordsContract
from turnloom.testing.contracts.artifacts.samples import artifact
from turnloom.testing.contracts.facts import OTHER, TENANT
from turnloom.testing.contracts.retrieval.samples import EMBEDDER, SPLITTER, ids


def collection(
    url: str, name: str = "library", matching: Matching = "vector", *, exact: bool = False
) -> EmbeddingSearch:
    store = PostgresVectors(url, name, space_of(EMBEDDER), exact=exact)
    return EmbeddingSearch(store, EMBEDDER, SPLITTER, matching)


class TestIndexed(VectorSearchContract, WordsContract, PruningContract):
    exact = False

    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        search = collection(self.url, matching, matching, exact=self.exact)
        yield search
        await search.aclose()


class TestExact(TestIndexed):
    exact = True


# ------------------------------------------------------------------ many vectors

DIMENSIONS = 32
SPACE = Space("given", "1", DIMENSIONS)
COUNT, GROUPS = 5_000, 100


def vectors(count: int) -> NDArray[np.float64]:
    """Vectors in clusters, as those of texts are."""
    draw = np.random.default_rng(7)
    centres = draw.normal(size=(50, DIMENSIONS))
    found = centres[draw.integers(0, 50, count)] + draw.normal(size=(count, DIMENSIONS)) * 0.6
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def entries(matrix: NDArray[np.float64]) -> list[StoredDocument]:
    return [
        StoredDocument(
            f"{n:05}", "", "{}", (f'["group",{n % GROUPS}]',), [Chunk(f"text {n}", row.tolist())]
        )
        for n, row in enumerate(matrix)
    ]


async def fill(url: str, matrix: NDArray[np.float64]) -> None:
    store = PostgresVectors(url, "many", SPACE)
    given = entries(matrix)
    for first in range(0, len(given), 1_000):
        some = given[first : first + 1_000]
        await store.replace(TENANT, [entry.id for entry in some], some)
    await store.aclose()
    await execute(url, "ANALYZE turnloom_chunks")


async def recall(
    url: str, matrix: NDArray[np.float64], filters: Sequence[Sequence[str]], **more: Any
) -> float:
    """How much of the true nearest is found, for queries near to what is there."""
    draw = np.random.default_rng(8)
    store = PostgresVectors(url, "many", SPACE, **more)
    passing = np.arange(len(matrix))
    if filters:
        passing = passing[passing % GROUPS == 3]
    hits = 0
    for n in range(20):
        query = matrix[n * 7] + draw.normal(size=DIMENSIONS) * 0.1
        query /= np.linalg.norm(query)
        true = passing[np.argsort(-(matrix[passing] @ query))[:10]]
        found = await store.nearest(Probe(TENANT, query.tolist(), (), 10, 0.0, filters))
        assert [each.score for each in found] == sorted((e.score for e in found), reverse=True)
        hits += len({f"{each:05}" for each in true} & {each.source_id for each in found})
    await store.aclose()
    return hits / 200


@pytest.mark.doors
async def test_almost_all_of_the_nearest_are_found(postgres_url: str) -> None:
    matrix = vectors(COUNT)
    await fill(postgres_url, matrix)
    rare = (('["group",3]',),)
    # As the planner likes it, with every way but the index of vectors closed, and without it.
    walls = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off"
    forced = f"{postgres_url}?options={quote(walls)}"
    for filters in ((), rare):
        assert await recall(postgres_url, matrix, filters, exact=True) == 1.0
        assert await recall(postgres_url, matrix, filters, few=0) >= 0.95
        assert await recall(forced, matrix, filters, few=0) >= 0.95
    assert await recall(forced, matrix, rare) == 1.0  # few pass, and each of them is compared
    assert "turnloom_chunks_near_1" in await plan(forced, matrix, rare, indexed=True)
    assert "turnloom_chunks_near_1" in await plan(postgres_url, matrix, (), indexed=True)
    assert "turnloom_chunks_near_1" not in await plan(postgres_url, matrix, (), indexed=False)


async def plan(
    url: str, matrix: NDArray[np.float64], filters: Sequence[Sequence[str]], *, indexed: bool
) -> str:
    probe = Probe(TENANT, matrix[0].tolist(), (), 10, 0.0, filters)
    whole = queries.nearest(1, probe, indexed).as_string()
    search = next(part for part in whole.split(";") if "<=>" in part)
    async with await AsyncConnection.connect(url) as connection:
        cursor = await connection.execute(SQL("EXPLAIN ") + SQL(search))
        return "\n".join(row[0] for row in await cursor.fetchall())


# ------------------------------------------------------------------ trouble


async def complaint(search: EmbeddingSearch) -> str:
    """What a search is refused with, and without a password."""
    with anyio.fail_after(60), pytest.raises(CollectionUnavailable) as raised:
        await search.search("red fish")
    with anyio.fail_after(60), pytest.raises(CollectionUnavailable):
        await search.add([Document("a", "red fish")])
    await search.aclose()
    assert PASSWORD not in str(raised.value)
    return str(raised.value)


async def test_the_tables_are_made_once(postgres_url: str) -> None:
    searches = [collection(postgres_url, f"c{n % 2}") for n in range(4)]
    async with anyio.create_task_group() as tasks:
        for n, search in enumerate(searches):
            tasks.start_soon(search.add, [Document("same", "red fish"), Document(str(n), "red")])
    for n, search in enumerate(searches):
        assert sorted(await ids(search, "red fish")) == sorted([str(n % 2), str(n % 2 + 2), "same"])
        await search.aclose()


async def test_tables_of_artifacts_and_collections_stand_beside_each_other(
    postgres_url: str,
) -> None:
    board, search = PostgresArtifacts(postgres_url), collection(postgres_url)
    await board.put(TENANT, [artifact("a")])
    await search.add([Document("a", "red fish")])
    assert await ids(search, "red fish") == ["a"]
    await search.aclose()
    await board.aclose()


async def test_another_embedder_is_refused(postgres_url: str) -> None:
    first = collection(postgres_url)
    await first.add([Document("a", "red fish")])
    await first.aclose()
    other = HashingEmbedder(32)
    store = PostgresVectors(postgres_url, "library", space_of(other))
    search = EmbeddingSearch(store, other, SPLITTER)
    for call in (search.add([Document("b", "x")]), search.remove(["a"]), search.search("x")):
        with raising(UsageError, "hashing 1", "64", "32"):
            await call
    await search.aclose()


async def test_vectors_too_long_for_an_index_are_compared_all(postgres_url: str) -> None:
    long = HashingEmbedder(queries.MAX_INDEXED + 1)
    store = PostgresVectors(postgres_url, "long", space_of(long))
    search = EmbeddingSearch(store, long, SPLITTER)
    await search.add([Document("a", "red fish"), Document("b", "blue birds")])
    assert await ids(search, "red fish", min_relevance=0.9) == ["a"]
    await search.aclose()


@pytest.mark.parametrize("version", [queries.VERSION - 1, queries.VERSION + 1])
async def test_tables_of_another_release_are_refused(postgres_url: str, version: int) -> None:
    """They are left as they are: those of an earlier one do not say whose documents are."""
    search = collection(postgres_url)
    await search.add([Document("a", "red fish")])
    await search.aclose()
    made = f"UPDATE turnloom_schema SET version = {version} WHERE part = 'vectors'"
    await execute(postgres_url, made)
    said = await complaint(collection(postgres_url))
    assert f"schema {version}" in said and f"uses {queries.VERSION}" in said


@pytest.mark.doors
async def test_a_tenant_with_little_among_much_finds_all_of_it(postgres_url: str) -> None:
    matrix = vectors(COUNT)
    await fill(postgres_url, matrix)
    store = PostgresVectors(postgres_url, "many", SPACE)
    few = entries(-matrix[:12])
    await store.replace(OTHER, [entry.id for entry in few], few)
    for vector in matrix[:12]:
        found = await store.nearest(Probe(OTHER, vector.tolist(), (), 20, -1.0, ()))
        assert {each.source_id for each in found} == {entry.id for entry in few}
    await store.aclose()


async def test_an_extension_that_is_too_old_is_refused(postgres_url: str) -> None:
    search = collection(postgres_url)
    await search.add([Document("a", "red fish")])
    await search.aclose()
    await execute(
        postgres_url, "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'"
    )
    said = await complaint(collection(postgres_url))
    assert "0.7.4" in said and "0.8" in said


async def test_a_user_who_may_not_make_tables(postgres_url: str) -> None:
    await execute(postgres_url, "CREATE ROLE reader LOGIN PASSWORD 'x'")
    url = f"postgresql://reader:x@{postgres_url.rpartition('@')[2]}"
    said = await complaint(collection(url))
    assert "permission denied" in said and "CREATE EXTENSION vector" in said
    await execute(postgres_url, "DROP ROLE reader")


async def test_no_server() -> None:
    port = free_port()
    said = await complaint(collection(f"postgresql://me:p%20w@127.0.0.1:{port}/db"))
    assert f"127.0.0.1:{port}" in said


async def test_a_silent_server() -> None:
    async with listening(stay_silent) as port:
        url = f"postgresql://me@127.0.0.1:{port}/db"
        store = PostgresVectors(url, "library", space_of(EMBEDDER), timeout=0.2)
        said = await complaint(EmbeddingSearch(store, EMBEDDER, SPLITTER))
    assert "0.2 s" in said


def test_a_server_without_the_extension_is_told_so() -> None:
    server = locate("postgresql://me@host/db", "collections")
    said = str(server.collection_unavailable(errors.UndefinedFile("no vector.control")))
    assert "pgvector" in said and "no vector.control" in said
    said = str(server.collection_unavailable(errors.FeatureNotSupported("not available")))
    assert "pgvector" in said and "not available" in said
