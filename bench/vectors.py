"""The cost of a search compared with a matrix product, and the recall of an index."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.board import SERVER
from bench.measures import Measure, Rounds, Size, settle
from turnloom.adapters.postgres import PostgresVectors
from turnloom.adapters.sqlite.vectors import SqliteVectors
from turnloom.assembly.ports import VectorStore
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.spec.retrieval import Chunk, Probe, Space, StoredDocument
from turnloom.log.spec import LOCAL
from turnloom.testing import ParagraphSplitter

LIMIT = 1.5
MISSED = 0.05
TOP = 10
BATCH = 1_000
SEARCHES = 15
# One in this many vectors passes the filter.
GROUPS = 100
FILTERS = {"every vector": None, "1 % pass": {"group": 3}}
FACTS = ('["group",3]',)
SCHEMA = "turnloom_bench_vectors"

Matrix = NDArray[np.float32]


class MatrixEmbedder:
    """An embedder that returns rows of a matrix by number."""

    name = "given"
    min_relevance = 0.0
    version = "1"

    def __init__(self, matrix: Matrix) -> None:
        self.dimensions = matrix.shape[1]
        self._matrix = matrix

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self._matrix[int(text)].tolist() for text in texts]


def measure(size: Size, root: Path) -> Iterator[Measure]:
    count, dimensions = size.vectors
    matrix = clusters(count + SEARCHES, dimensions)
    kept, queries = matrix[:count], matrix[count:]
    space = Space(MatrixEmbedder.name, MatrixEmbedder.version, dimensions)
    yield from _compare(size, kept, queries, SqliteVectors(root / "vectors.db", "bench", space))
    if server := os.environ.get(SERVER):
        yield from asyncio.run(_recall(server, kept, queries, space))


def clusters(count: int, dimensions: int) -> Matrix:
    """Clustered vectors of length 1, similar to those of texts."""
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(200, dimensions))
    found = centres[draw.integers(0, 200, count)] + draw.normal(size=(count, dimensions)) * 0.6
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


async def _fill(store: VectorStore, matrix: Matrix) -> None:
    for first in range(0, len(matrix), BATCH):
        some = [_entry(n, matrix[n]) for n in range(first, min(first + BATCH, len(matrix)))]
        await store.replace(LOCAL, [], some)


def _entry(n: int, vector: Matrix) -> StoredDocument:
    fact = f'["group",{n % GROUPS}]'
    return StoredDocument(f"{n:06}", "", "{}", (fact,), [Chunk(f"text {n}", vector.tolist())])


# ------------------------------------------------------------------ the embedded store


def _compare(size: Size, matrix: Matrix, queries: Matrix, store: VectorStore) -> Iterator[Measure]:
    rounds = Rounds()
    asyncio.run(_fill(store, matrix))
    for _ in range(size.rounds):
        settle()
        rounds.add("bare", median(_bare(matrix, query) for query in queries))
        for case, seconds in asyncio.run(_search(store, queries)).items():
            rounds.add(case, seconds)
    against = f"numpy, {len(matrix):,} x {matrix.shape[1]}"
    for case in FILTERS:
        value, ratio = rounds.least(case) * 1e3, rounds.ratio(case, "bare")
        yield Measure("vectors", f"SQLite: p50, {case}", value, "ms", against, ratio, LIMIT)


def _bare(matrix: Matrix, query: Matrix) -> float:
    """Seconds of the minimum: the products, and the best of them."""
    begin = perf_counter()
    scores = matrix @ query
    best = np.argpartition(scores, -TOP)[-TOP:]
    best[np.argsort(-scores[best])]
    return perf_counter() - begin


async def _search(store: VectorStore, queries: Matrix) -> dict[str, float]:
    """The median duration of a search, for each filter."""
    search = EmbeddingSearch(store, MatrixEmbedder(queries), ParagraphSplitter())
    found: dict[str, float] = {}
    for case, filters in FILTERS.items():
        costs: list[float] = []
        await search.search("0", TOP, 0.0, filters)
        for n in range(len(queries)):
            begin = perf_counter()
            results = await search.search(str(n), TOP, 0.0, filters)
            costs.append(perf_counter() - begin)
            assert results
        found[case] = median(costs)
    return found


# ------------------------------------------------------------------ the index


async def _recall(url: str, matrix: Matrix, queries: Matrix, space: Space) -> list[Measure]:
    """The share of nearest neighbours missed, with and without the filter."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
    path = f"options=-csearch_path%3D{SCHEMA}%2Cpublic"
    there = f"{url}{'&' if '?' in url else '?'}{path}"
    filled = PostgresVectors(there, "bench", space, exact=True, timeout=60)
    await _fill(filled, matrix)  # without an index; building it after the load is faster
    await filled.aclose()
    store = PostgresVectors(there, "bench", space, timeout=60)
    with psycopg.connect(there, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE turnloom_chunks")
    passing = np.arange(len(matrix))
    found = [
        await _missed("every vector", store, matrix, passing, queries, ()),
        await _missed("1 % pass", store, matrix, passing[3::GROUPS], queries, (FACTS,)),
    ]
    await store.aclose()
    return found


async def _missed(
    case: str,
    store: VectorStore,
    matrix: Matrix,
    passing: NDArray[np.int64],
    queries: Matrix,
    filters: Sequence[Sequence[str]],
) -> Measure:
    hits, wanted, costs = 0, 0, list[float]()
    for query in queries:
        scores = matrix[passing] @ query
        order = np.argsort(-scores)[:TOP]
        true = passing[order[scores[order] > 0]]
        wanted += len(true)
        begin = perf_counter()
        found = await store.nearest(Probe(LOCAL, query.tolist(), (), TOP, 0.0, filters))
        costs.append(perf_counter() - begin)
        hits += len({f"{n:06}" for n in true} & {each.source_id for each in found})
    missed = 1 - hits / wanted
    case = f"PostgreSQL: p50, missed, {case}"
    return Measure("vectors", case, median(costs) * 1e3, "ms", "all of the nearest", missed, MISSED)
