"""Exact vector search over one collection in a SQLite file.

Filters come first: only rows that pass are compared. The vectors are cached in memory, and updated
after writes by any process.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from anyio import to_thread
from msgspec.structs import replace

from turnloom.adapters.sqlite.vectors import queries
from turnloom.adapters.sqlite.vectors.file import VectorFile
from turnloom.adapters.sqlite.vectors.matrix import (
    Bits,
    Floats,
    Matrix,
    Numbers,
    best,
    blob_of,
    empty_matrix,
    precise,
    read_matrix,
    similarity,
)
from turnloom.assembly.logic.retrieval import rank, read_kept, tidy, weigh
from turnloom.assembly.spec.retrieval import (
    Probe,
    RetrievalResult,
    Space,
    StoredDocument,
    Visibilities,
)
from turnloom.errors import UsageError
from turnloom.kernel.digests import chain_digest

T = TypeVar("T")

# The number of a tenant that has never had a document.
UNKNOWN = -1


class _Found(NamedTuple):
    """A collection in the file."""

    n: int
    space: Space
    generation: str


class _Key(NamedTuple):
    """The numbers of a collection and of a tenant in it."""

    collection: int
    tenant: int


class SqliteVectors:
    """One of many collections in a file, for any number of processes."""

    def __init__(
        self, path: Path | str, collection: str, space: Space, *, patience: float = 30.0
    ) -> None:
        self._file = VectorFile(Path(path), patience)
        self._name = collection
        self._space = space
        self._matrix = empty_matrix(space.dimensions)
        self._refreshing = Lock()
        self._closed = False

    async def digests(self, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """The digests of the given documents that the tenant has, by id.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._digests, tenant, ids)

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Replace the tenant's documents with these ids by new ones, all or none, and return how
        many were removed.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: nothing was changed; a retry may succeed later.
        """
        return await self._run(self._replace, tenant, ids, entries)

    async def visibilities(self, tenant: str) -> Visibilities:
        """The distinct visibilities of the tenant's documents, and of shared documents.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._visibilities, tenant)

    async def having(self, tenant: str, fact: str) -> Sequence[str]:
        """The ids of the tenant's documents that have a fact.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._having, tenant, fact)

    async def is_empty(self, tenant: str) -> bool:
        """Whether neither the tenant's own nor shared documents exist.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._is_empty, tenant)

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """The best matches that pass the probe's filters and relevance, best first, then by source.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._nearest, probe)

    async def aclose(self) -> None:
        """Drop the cached vectors, and refuse all later calls. Idempotent."""
        self._closed = True
        self._matrix = empty_matrix(self._space.dimensions)

    async def _run(self, work: Callable[..., T], *given: object) -> T:
        if self._closed:
            raise UsageError(f"Collection {self._name!r} is closed. Open it again.")
        return await to_thread.run_sync(work, *given)

    # ------------------------------------------------------------------ in a thread

    def _digests(self, tenant: str, ids: Sequence[str]) -> dict[str, str]:
        with self._file.reading() as connection:
            found = connection and self._find(connection)
            if not connection or not found:
                return {}
            key = found.n, _number_of(connection, tenant)
            return dict(connection.execute(queries.DIGESTS, (*key, json.dumps(list(ids)))))

    def _replace(self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]) -> int:
        with self._file.writing() as connection:
            found = self._find(connection)
            if found is None:
                connection.execute(queries.ADD_COLLECTION, (self._name, *self._space))
                found = self._find(connection)
                assert found is not None
            connection.execute(queries.ADD_TENANT, (tenant,))
            key = _Key(found.n, _number_of(connection, tenant))
            _advance(connection, found, chain_digest(tenant, *ids), entries)
            gone = _drop(connection, key, ids)
            for entry in entries:
                _put(connection, key, entry)
            return gone

    def _visibilities(self, tenant: str) -> Visibilities:
        with self._file.reading() as connection:
            found = connection and self._find(connection)
            if not connection or not found:
                return Visibilities()
            key = found.n, _number_of(connection, tenant)
            own = connection.execute(queries.VISIBILITIES, key).fetchall()
            shared = connection.execute(queries.SHARED_VISIBILITIES, (found.n,)).fetchall()
            return Visibilities([text for (text,) in own], [text for (text,) in shared])

    def _having(self, tenant: str, fact: str) -> list[str]:
        with self._file.reading() as connection:
            found = connection and self._find(connection)
            if not connection or not found:
                return []
            key = found.n, _number_of(connection, tenant)
            return [id for (id,) in connection.execute(queries.HAVING, (*key, fact))]

    def _is_empty(self, tenant: str) -> bool:
        with self._file.reading() as connection:
            found = connection and self._find(connection)
            if not connection or not found:
                return True
            key = found.n, _number_of(connection, tenant)
            return connection.execute(queries.ANY_DOCUMENT, key).fetchone() is None

    def _nearest(self, probe: Probe) -> list[RetrievalResult]:
        with self._file.reading() as connection:
            # The lock holder reads the latest state, so the cached matrix never gets older.
            with self._refreshing:
                if connection:
                    connection.execute(queries.BEGIN)
                found = connection and self._find(connection)
                if not connection or not found:
                    return []
                matrix = self._refresh(connection, found)
            key = _Key(found.n, _number_of(connection, probe.tenant))
            rows = _matching_rows(connection, key, matrix, probe)
            chunks, scores = _best(connection, matrix, rows, probe)
            return _results(connection, chunks, scores, probe)

    def _find(self, connection: sqlite3.Connection) -> _Found | None:
        row = connection.execute(queries.COLLECTION, (self._name,)).fetchone()
        if row is None:
            return None
        n, *space, generation = row
        found = _Found(n, Space(*space), generation)
        if found.space != self._space:
            raise UsageError(
                f"Collection {self._name!r} was created with {found.space}, not with "
                f"{self._space}. Use that embedder, or another name for the collection."
            )
        return found

    def _refresh(self, connection: sqlite3.Connection, found: _Found) -> Matrix:
        matrix = self._matrix
        if matrix.generation != found.generation:
            matrix = read_matrix(connection, found.n, found.generation, matrix)
            self._matrix = matrix
        return matrix


def _number_of(connection: sqlite3.Connection, tenant: str) -> int:
    row = connection.execute(queries.TENANT, (tenant,)).fetchone()
    return row[0] if row else UNKNOWN


def _advance(
    connection: sqlite3.Connection, found: _Found, dropped: str, entries: Sequence[StoredDocument]
) -> None:
    """Store the generation that a write creates; `dropped` is a digest of the removed ids."""
    (last,) = connection.execute(queries.LAST_CHUNK).fetchone()
    written = (text for entry in entries for text in (entry.id, entry.digest))
    generation = chain_digest(found.generation, str(last), dropped, *written)
    connection.execute(queries.BECOME, (found.n, generation))
    connection.execute(queries.ADD_GENERATION, (found.n, generation))


def _drop(connection: sqlite3.Connection, key: _Key, ids: Sequence[str]) -> int:
    """Delete documents with all their data, and return how many there were."""
    rows = connection.execute(queries.NUMBERS, (*key, json.dumps(list(ids))))
    numbers = [number for (number,) in rows]
    if numbers:
        for statement in (
            queries.FORGET_WORDS,
            queries.DROP_VECTORS,
            queries.DROP_CHUNKS,
            queries.DROP_FACTS,
            queries.DROP_DOCUMENTS,
        ):
            connection.execute(statement, (json.dumps(numbers),))
    return len(numbers)


def _put(connection: sqlite3.Connection, key: _Key, entry: StoredDocument) -> None:
    row = (*key, entry.id, entry.digest, entry.metadata, entry.visibility, entry.shared)
    document = connection.execute(queries.ADD_DOCUMENT, row).lastrowid
    facts = [(key.collection, fact, document) for fact in entry.facts]
    connection.executemany(queries.ADD_FACT, facts)
    for place, chunk in enumerate(entry.chunks):
        row = (key.collection, document, key.tenant, place, chunk.content)
        number = connection.execute(queries.ADD_CHUNK, row).lastrowid
        connection.execute(queries.ADD_VECTOR, (number, blob_of(chunk.vector)))
        connection.execute(queries.ADD_WORDS, (number, chunk.content))


def _matching_rows(
    connection: sqlite3.Connection, key: _Key, matrix: Matrix, probe: Probe
) -> Numbers:
    """The rows of documents that have a fact of each group, and are shared, or the tenant's own and
    not hidden."""

    def is_in(query: str, *asked: int | Sequence[str]) -> Bits:
        given = [each if isinstance(each, int) else json.dumps(list(each)) for each in asked]
        found = connection.execute(query, given)
        documents = np.array([document for (document,) in found], np.int64)
        return np.isin(matrix.documents, documents)

    passes = matrix.tenants == key.tenant
    if probe.hidden:
        passes &= ~is_in(queries.DOCUMENTS_FOR, *key, probe.hidden)
    if probe.shared:
        passes |= is_in(queries.DOCUMENTS_SHARED, key.collection, probe.shared)
    for group in probe.filters:
        passes &= is_in(queries.DOCUMENTS_WITH, key.collection, group)
    return np.flatnonzero(passes)


def _best(
    connection: sqlite3.Connection, matrix: Matrix, rows: Numbers, probe: Probe
) -> tuple[Numbers, Floats]:
    """The best candidates among these rows, and their scores."""
    words = _word_scores(connection, matrix.chunks[rows], probe.words) if probe.words else None
    meaning = None if probe.vector is None else similarity(matrix, rows, probe.vector)
    near = best(_scores(meaning, words), probe.top_k, probe.min_relevance)
    if probe.vector is not None:
        meaning = precise(matrix, rows[near], probe.vector)
    scores = _scores(meaning, None if words is None else words[near])
    return matrix.chunks[rows[near]], scores


def _scores(meaning: Floats | None, words: Floats | None) -> Floats:
    """Scores by meaning, by words, or by both; see `blend`."""
    if meaning is None or words is None:
        found = meaning if words is None else words
        assert found is not None
        return found
    return 1 - (1 - np.maximum(meaning, 0)) * (1 - words)


def _word_scores(connection: sqlite3.Connection, chunks: Numbers, words: Sequence[str]) -> Floats:
    """The weighted share of the query's words in each chunk."""
    has = [_with_word(connection, chunks, word) for word in words]
    weights = weigh([int(np.count_nonzero(each)) for each in has], len(chunks))
    shares = np.zeros(len(chunks), np.float64)
    for each, weight in zip(has, weights, strict=True):
        shares[each] += weight
    return shares


def _with_word(connection: sqlite3.Connection, chunks: Numbers, word: str) -> Bits:
    rows = connection.execute(queries.CHUNKS_WITH_WORD, (f'"{word}"',))
    return np.isin(chunks, np.array([number for (number,) in rows], np.int64))


def _results(
    connection: sqlite3.Connection, chunks: Numbers, scores: Floats, probe: Probe
) -> list[RetrievalResult]:
    """The best results in order. Only their texts are read; until then, `content` is the chunk
    number."""
    scores_by_chunk = dict(zip(chunks.tolist(), scores.tolist(), strict=True))
    sources = connection.execute(queries.SOURCES, (json.dumps(list(scores_by_chunk)), probe.tenant))
    candidates = [
        RetrievalResult(str(number), tidy(scores_by_chunk[number]), id, chunk=place)
        for number, id, place in sources
    ]
    results: list[RetrievalResult] = []
    for each in rank(candidates, probe.top_k, probe.min_relevance):
        number = int(each.content)
        content, metadata, visibility = connection.execute(queries.CONTENT, (number,)).fetchone()
        about, seen = msgspec.json.decode(metadata), read_kept(visibility)
        results.append(replace(each, content=content, metadata=about, visibility=seen))
    return results
