"""The vectors of one collection in PostgreSQL with pgvector, for any number of machines.

The tables are made by whoever comes first, in the first schema of the connection's search path.
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

# Seconds that documents may take to be kept, and an index to be built over what is there.
WRITING = 120.0
BUILDING = 3_600.0
# Up to how many chunks that pass are compared each: the index misses some of so few among many, and
# who counts them first does not depend on what the planner guesses.
FEW = 2_000


class PostgresVectors:
    """One collection in the tables of one PostgreSQL database.

    An index finds almost all of the nearest, in a time that hardly grows; `exact` compares with
    every vector that passes the filters. So it is always done with vectors too long for the index,
    and where no more than `few` pass.
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
        self._indexed = not exact and space.dimensions <= queries.INDEXED
        self._few = few
        self._timeout = timeout
        self._opening = anyio.Lock()
        self._prepared = False
        self._number: int | None = None
        self._closed = False

    async def digests(self, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """The digests of those of these documents that the tenant has, by id.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the server does not answer, in time or at all.
        """
        number = await self._open()
        if number is None:
            return {}
        rows = await self._run(queries.digests(number, tenant, ids), self._timeout)
        return {id: digest for id, digest in rows}

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Take the tenant's documents of these ids out and put these in, all or nothing; how many
        went.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: nothing was changed, or nobody knows; the same may be tried
                again later.
        """
        number = await self._open(make=True)
        assert number is not None
        # Many vectors are a long text, and take a while to write.
        statement = await to_thread.run_sync(queries.replace, number, tenant, ids, entries)
        [(gone,)] = await self._run(statement, WRITING)
        return gone

    async def visibilities(self, tenant: str) -> Visibilities:
        """The different visibilities of what the tenant has, and of what any tenant shares.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the server does not answer, in time or at all.
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
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the server does not answer, in time or at all.
        """
        number = await self._open()
        if number is None:
            return []
        return [id for (id,) in await self._run(queries.having(number, tenant, fact), WRITING)]

    async def is_empty(self, tenant: str) -> bool:
        """Whether the tenant has no document here, and no tenant shares one.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the server does not answer, in time or at all.
        """
        number = await self._open()
        if number is None:
            return True
        return not await self._run(queries.any_chunk(number, tenant), self._timeout)

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """What fits best of what passes, relevant enough, best first and then by source.

        Raises:
            UsageError: the collection was made in another space, or it is closed.
            CollectionUnavailable: the server does not answer, in time or at all.
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
        """Close the connections and refuse everything from now on; again changes nothing."""
        self._closed = True
        await self._connections.aclose()

    async def _are_few(self, number: int, probe: Probe) -> bool:
        """Whether so few pass that each of them is compared: also of a tenant that has little in a
        large collection."""
        statement = queries.passing(number, probe, self._few + 1)
        [(count,)] = await self._run(statement, self._timeout)
        return count <= self._few

    async def _matching(self, number: int, probe: Probe, indexed: bool) -> Composed:
        [(total, *counts)] = await self._run(queries.counts(number, probe), self._timeout)
        return queries.matching(number, probe, weigh(counts, total), indexed)

    async def _open(self, *, make: bool = False) -> int | None:
        """The number of the collection; none if there is none and none is to be made."""
        if self._closed:
            raise UsageError(f"Collection {self._name!r} is closed. Open it again.")
        async with self._opening:
            if not self._prepared:
                await self._prepare()
                self._prepared = True
            if self._number is None:
                self._number = await self._find(make)
        return self._number

    async def _find(self, make: bool) -> int | None:
        if make:
            await self._run(queries.make(self._name, self._space), self._timeout)
        rows = await self._run(queries.find(self._name), self._timeout)
        if not rows:
            return None
        number, indexed, *found = rows[0]
        if Space(*found) != self._space:
            raise UsageError(
                f"Collection {self._name!r} was made with {Space(*found)}, and this is "
                f"{self._space}. Use that embedder, or another name for the collection."
            )
        if self._indexed and not indexed:
            await self._run(queries.index(number, self._space.dimensions), BUILDING)
        return number

    async def _prepare(self) -> None:
        """See that the tables are there and of this release, and the extension recent enough."""
        version = await self._version()
        if version is None:
            await self._run(queries.CREATE, self._timeout)
            version = await self._version()
        if version != queries.VERSION:
            raise CollectionUnavailable(
                f"The collections in {self._server} were made by another release of Turnloom "
                f"(schema {version}; this release knows {queries.VERSION}). Use that release, or "
                "choose another database for the collections."
            )
        [(extension,)] = await self._run(queries.EXTENSION, self._timeout)
        if tuple(map(int, extension.split(".")[:2])) < queries.OLDEST:
            wanted = ".".join(map(str, queries.OLDEST))
            raise CollectionUnavailable(
                f"{self._server} has pgvector {extension}; {wanted} or later is needed. Install "
                "it, and run `ALTER EXTENSION vector UPDATE`."
            )

    async def _version(self) -> int | None:
        """The schema of the tables; none if there are none."""
        [(exists,)] = await self._run(queries.EXISTS, self._timeout)
        rows = await self._run(queries.SCHEMA, self._timeout) if exists else ()
        return rows[0][0] if rows else None

    async def _run(self, statement: Composed, limit: float) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, self._timeout, limit)
        except TimeoutError as error:
            raise self._server.collection_silent(limit) from error
        except psycopg.Error as error:
            raise self._server.collection_unavailable(error) from error


def _result(row: tuple[Any, ...]) -> RetrievalResult:
    content, score, source, metadata, place, visibility = row
    # A vector of zeros has no direction, and so no distance.
    told = 0.0 if math.isnan(score) else tidy(score)
    about = msgspec.json.decode(metadata), place, read_kept(visibility)
    return RetrievalResult(content, told, source, *about)
