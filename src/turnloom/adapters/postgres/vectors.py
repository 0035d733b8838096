"""Vector search over one collection in PostgreSQL with pgvector, for any number of machines.

The tables are created on first use, in the first schema of the connection's search path.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec
import psycopg
from anyio import to_thread
from psycopg.sql import Composed

from turnloom.adapters.postgres import vector_queries as queries
from turnloom.adapters.postgres.connections import Connections
from turnloom.adapters.postgres.faults import PostgresServer, locate
from turnloom.assembly.logic.retrieval import rank, read_kept, tidy, weigh
from turnloom.assembly.spec.retrieval import (
    Probe,
    RetrievalResult,
    Space,
    StoredDocument,
    Visibilities,
)
from turnloom.errors import CollectionUnavailable, UsageError

# Time limits in seconds for storing documents, and for building an index.
WRITE_TIMEOUT = 120.0
INDEX_TIMEOUT = 3_600.0
# Up to this number of passing chunks, all are compared: the index misses some when few of many
# pass. Counting first makes this independent of the planner's estimates.
FEW = 2_000


class PostgresVectors:
    """One collection in the tables of one PostgreSQL database.

    An index finds almost all of the nearest chunks, in nearly constant time. `exact` compares every
    vector that passes the filters. That also happens for vectors too long for the index, and when
    at most `few` chunks pass.
    """

    def __init__(
        self,
        url: str,
        collection: str,
        space: Space,
        *,
        exact: bool = False,
        few: int = FEW,
        timeout: float = 5.0,
    ) -> None:
        self._server: PostgresServer = locate(url, "collections")
        self._connections = Connections(url)
        self._name = collection
        self._space = space
        self._indexed = not exact and space.dimensions <= queries.MAX_INDEXED
        self._few = few
        self._timeout = timeout
        self._opening = anyio.Lock()
        self._prepared = False
        self._number: int | None = None
        self._closed = False

    async def digests(self, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """The digests of the given documents that the tenant has, by id.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the server fails or does not answer in time.
        """
        number = await self._open()
        if number is None:
            return {}
        rows = await self._run(queries.digests(number, tenant, ids), self._timeout)
        return {id: digest for id, digest in rows}

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Replace the tenant's documents with these ids by new ones, all or none, and return how
        many were removed.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: nothing was changed, or the outcome is unknown; a retry is safe.
        """
        number = await self._open(create=True)
        assert number is not None
        # Formatting many vectors takes a while.
        statement = await to_thread.run_sync(queries.replace, number, tenant, ids, entries)
        [(gone,)] = await self._run(statement, WRITE_TIMEOUT)
        return gone

    async def visibilities(self, tenant: str) -> Visibilities:
        """The distinct visibilities of the tenant's documents, and of shared documents.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the server fails or does not answer in time.
        """
        number = await self._open()
        if number is None:
            return Visibilities()
        rows = await self._run(queries.visibilities(number, tenant), self._timeout)
        own = [text for is_shared, text in rows if not is_shared]
        return Visibilities(own, [text for is_shared, text in rows if is_shared])

    async def having(self, tenant: str, fact: str) -> Sequence[str]:
        """The ids of the tenant's documents that have a fact and a chunk.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the server fails or does not answer in time.
        """
        number = await self._open()
        if number is None:
            return []
        return [
            id for (id,) in await self._run(queries.having(number, tenant, fact), WRITE_TIMEOUT)
        ]

    async def is_empty(self, tenant: str) -> bool:
        """Whether neither the tenant's own nor shared documents exist.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the server fails or does not answer in time.
        """
        number = await self._open()
        if number is None:
            return True
        return not await self._run(queries.any_chunk(number, tenant), self._timeout)

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """The best matches that pass the probe's filters and relevance, best first, then by source.

        Raises:
            UsageError: the collection was created in another space, or it is closed.
            CollectionUnavailable: the server fails or does not answer in time.
        """
        number = await self._open()
        if number is None:
            return []
        seeks = self._indexed and probe.vector is not None
        indexed = seeks and not await self._are_few(number, probe)
        if probe.words:
            statement = await self._matching(number, probe, indexed)
        else:
            statement = queries.nearest(number, probe, indexed)
        rows = await self._run(statement, self._timeout)
        return rank(map(_result, rows), probe.top_k, probe.min_relevance)

    async def aclose(self) -> None:
        """Close the connections and refuse all later calls. Idempotent."""
        self._closed = True
        await self._connections.aclose()

    async def _are_few(self, number: int, probe: Probe) -> bool:
        """Whether few enough chunks pass to compare them all, as for a small tenant in a large
        collection."""
        statement = queries.passing(number, probe, self._few + 1)
        [(count,)] = await self._run(statement, self._timeout)
        return count <= self._few

    async def _matching(self, number: int, probe: Probe, indexed: bool) -> Composed:
        [(total, *counts)] = await self._run(queries.counts(number, probe), self._timeout)
        return queries.matching(number, probe, weigh(counts, total), indexed)

    async def _open(self, *, create: bool = False) -> int | None:
        """The number of the collection; None if it does not exist and is not to be created."""
        if self._closed:
            raise UsageError(f"Collection {self._name!r} is closed. Open it again.")
        async with self._opening:
            if not self._prepared:
                await self._prepare()
                self._prepared = True
            if self._number is None:
                self._number = await self._find(create)
        return self._number

    async def _find(self, create: bool) -> int | None:
        if create:
            await self._run(queries.create(self._name, self._space), self._timeout)
        rows = await self._run(queries.find(self._name), self._timeout)
        if not rows:
            return None
        number, indexed, *found = rows[0]
        if Space(*found) != self._space:
            raise UsageError(
                f"Collection {self._name!r} was created with {Space(*found)}, not with "
                f"{self._space}. Use that embedder, or another name for the collection."
            )
        if self._indexed and not indexed:
            await self._run(queries.index(number, self._space.dimensions), INDEX_TIMEOUT)
        return number

    async def _prepare(self) -> None:
        """Create the tables if needed, and check their version and that of pgvector."""
        version = await self._version()
        if version is None:
            await self._run(queries.CREATE, self._timeout)
            version = await self._version()
        if version != queries.VERSION:
            raise CollectionUnavailable(
                f"The collections in {self._server} were created by another release of Turnloom "
                f"(schema {version}; this release uses {queries.VERSION}). Use that release, or "
                "choose another database for the collections."
            )
        [(extension,)] = await self._run(queries.EXTENSION, self._timeout)
        if tuple(map(int, extension.split(".")[:2])) < queries.OLDEST:
            wanted = ".".join(map(str, queries.OLDEST))
            raise CollectionUnavailable(
                f"{self._server} has pgvector {extension}, but {wanted} or later is required. "
                "Install it, and run `ALTER EXTENSION vector UPDATE`."
            )

    async def _version(self) -> int | None:
        """The version of the tables; None if they do not exist."""
        [(exists,)] = await self._run(queries.EXISTS, self._timeout)
        rows = await self._run(queries.SCHEMA, self._timeout) if exists else ()
        return rows[0][0] if rows else None

    async def _run(self, statement: Composed, limit: float) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, None, self._timeout, limit)
        except TimeoutError as error:
            raise self._server.collection_timed_out(limit) from error
        except psycopg.Error as error:
            raise self._server.collection_unavailable(error) from error


def _result(row: tuple[Any, ...]) -> RetrievalResult:
    content, score, source, metadata, place, visibility = row
    # A zero vector has no direction, and so no distance.
    relevance = 0.0 if math.isnan(score) else tidy(score)
    about = msgspec.json.decode(metadata), place, read_kept(visibility)
    return RetrievalResult(content, relevance, source, *about)
