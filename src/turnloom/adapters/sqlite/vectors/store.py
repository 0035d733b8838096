"""The vectors of one collection in a SQLite file, compared with all of them at once.

Filters come first: what does not pass is not compared. The vectors are held in memory and read
again as far as somebody wrote, in this process or in another.
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
    """One collection in a file that holds any number of them, for any number of processes."""

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
        """The digests of those of these documents that the tenant has, by id.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._digests, tenant, ids)

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Take the tenant's documents of these ids out and put these in, all or nothing; how many
        went.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: nothing was changed; the same may be tried again later.
        """
        return await self._run(self._replace, tenant, ids, entries)

    async def visibilities(self, tenant: str) -> Visibilities:
        """The different visibilities of what the tenant has, and of what any tenant shares.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._visibilities, tenant)

    async def having(self, tenant: str, fact: str) -> Sequence[str]:
        """The ids of the tenant's documents that have a fact.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._having, tenant, fact)

    async def is_empty(self, tenant: str) -> bool:
        """Whether the tenant has no document here, and no tenant shares one.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._is_empty, tenant)

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """What fits best of what passes, relevant enough, best first and then by source.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the file cannot be read.
        """
        return await self._run(self._nearest, probe)

    async def aclose(self) -> None:
        """Forget the vectors, and refuse everything from now on; again changes nothing."""
        self._closed = True
        self._matrix = empty_matrix(self._space.dimensions)

    async def _run(self, work: Callable[..., T], *given: object) -> T:
        if self._closed:
            raise UsageError(f"Collection {self._name!r} is closed. Open it again.")
        return await to_thread.run_sync(work, *given)

    # ------------------------------------------------------------------ on a thread

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
            # Whoever has its turn sees the latest moment from here on, so no matrix gets older.
            with self._refreshing:
                if connection:
                    connection.execute(queries.BEGIN)
                found = connection and self._find(connection)
                if not connection or not found:
                    return []
                matrix = self._refresh(connection, found)
            key = _Key(found.n, _number_of(connection, probe.tenant))
            rows = _passing(connection, key, matrix, probe)
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
                f"Collection {self._name!r} was made with {found.space}, and this is "
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
    """Make the generation that a write brings about; `dropped` is a digest of what it takes out."""
    (last,) = connection.execute(queries.LAST_CHUNK).fetchone()
    written = (text for entry in entries for text in (entry.id, entry.digest))
    generation = chain_digest(found.generation, str(last), dropped, *written)
    connection.execute(queries.BECOME, (found.n, generation))
    connection.execute(queries.ADD_GENERATION, (found.n, generation))


def _drop(connection: sqlite3.Connection, key: _Key, ids: Sequence[str]) -> int:
    """Take documents out, with all that belongs to them; how many there were."""
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


def _passing(connection: sqlite3.Connection, key: _Key, matrix: Matrix, probe: Probe) -> Numbers:
    """The rows whose documents have a fact out of each group, and are the tenant's and not hidden,
    or shared."""

    def among(query: str, *asked: int | Sequence[str]) -> Bits:
        given = [each if isinstance(each, int) else json.dumps(list(each)) for each in asked]
        found = connection.execute(query, given)
        documents = np.array([document for (document,) in found], np.int64)
        return np.isin(matrix.documents, documents)

    passes = matrix.tenants == key.tenant
    if probe.hidden:
        passes &= ~among(queries.DOCUMENTS_FOR, *key, probe.hidden)
    if probe.shared:
        passes |= among(queries.DOCUMENTS_SHARED, key.collection, probe.shared)
    for group in probe.filters:
        passes &= among(queries.DOCUMENTS_WITH, key.collection, group)
    return np.flatnonzero(passes)


def _best(
    connection: sqlite3.Connection, matrix: Matrix, rows: Numbers, probe: Probe
) -> tuple[Numbers, Floats]:
    """The chunks among these rows that may be the best, and how well they fit."""
    words = _shares(connection, matrix.chunks[rows], probe.words) if probe.words else None
    meaning = None if probe.vector is None else similarity(matrix, rows, probe.vector)
    near = best(_scores(meaning, words), probe.top_k, probe.min_relevance)
    if probe.vector is not None:
        meaning = precise(matrix, rows[near], probe.vector)
    scores = _scores(meaning, None if words is None else words[near])
    return matrix.chunks[rows[near]], scores


def _scores(meaning: Floats | None, words: Floats | None) -> Floats:
    """How well something fits by meaning, by words, or by both; see `blend`."""
    if meaning is None or words is None:
        found = meaning if words is None else words
        assert found is not None
        return found
    return 1 - (1 - np.maximum(meaning, 0)) * (1 - words)


def _shares(connection: sqlite3.Connection, chunks: Numbers, words: Sequence[str]) -> Floats:
    """How much of the query's words each of these chunks has."""
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
    """The best in order; texts are read of these only, which stand in for them as numbers."""
    told = dict(zip(chunks.tolist(), scores.tolist(), strict=True))
    sources = connection.execute(queries.SOURCES, (json.dumps(list(told)), probe.tenant))
    bare = [
        RetrievalResult(str(number), tidy(told[number]), id, chunk=place)
        for number, id, place in sources
    ]
    results: list[RetrievalResult] = []
    for each in rank(bare, probe.top_k, probe.min_relevance):
        number = int(each.content)
        content, metadata, visibility = connection.execute(queries.CONTENT, (number,)).fetchone()
        about, seen = msgspec.json.decode(metadata), read_kept(visibility)
        results.append(replace(each, content=content, metadata=about, visibility=seen))
    return results
