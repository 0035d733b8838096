"""SQL statements for collections.

Chunks of all collections and tenants are in one table; the tenant is part of a document's key. Each
collection has its own index over its rows, for its number of dimensions. A statement without that
number uses no index, and so compares all vectors.
"""

import json
from collections.abc import Sequence

from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from turnloom.assembly.logic.retrieval import words_of
from turnloom.assembly.spec.retrieval import Probe, Space, StoredDocument

VERSION = 4
# The largest number of dimensions that can be indexed.
MAX_INDEXED = 2_000
# The first release of pgvector whose index scan continues when filters leave too few rows.
OLDEST = (0, 8)
# The minimum and maximum number of candidates of an index scan.
CANDIDATES = (200, 1_000)

EXISTS = SQL("SELECT to_regclass('turnloom_schema') IS NOT NULL").format()
SCHEMA = SQL("SELECT version FROM turnloom_schema WHERE part = 'vectors'").format()
EXTENSION = SQL("SELECT extversion FROM pg_extension WHERE extname = 'vector'").format()
CREATE = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('turnloom_schema'));
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE IF NOT EXISTS turnloom_schema (part text PRIMARY KEY, version integer NOT NULL);
    CREATE TABLE IF NOT EXISTS turnloom_collections (
        n integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name text NOT NULL UNIQUE,
        embedder text NOT NULL, version text NOT NULL, dimensions integer NOT NULL);
    CREATE TABLE IF NOT EXISTS turnloom_documents (
        n bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
        collection integer NOT NULL REFERENCES turnloom_collections,
        tenant text NOT NULL, id text NOT NULL, digest text NOT NULL, metadata text NOT NULL,
        UNIQUE (collection, tenant, id));
    CREATE TABLE IF NOT EXISTS turnloom_chunks (
        collection integer NOT NULL,
        document bigint NOT NULL REFERENCES turnloom_documents ON DELETE CASCADE,
        source text COLLATE "C" NOT NULL, place integer NOT NULL, facts text[] NOT NULL,
        content text NOT NULL, embedding vector NOT NULL, visibility text COLLATE "C" NOT NULL,
        tenant text COLLATE "C" NOT NULL, shared boolean NOT NULL,
        words text[] COLLATE "C" NOT NULL, PRIMARY KEY (document, place));
    CREATE INDEX IF NOT EXISTS turnloom_chunks_collection ON turnloom_chunks (collection, tenant);
    CREATE INDEX IF NOT EXISTS turnloom_chunks_facts ON turnloom_chunks USING gin (facts);
    CREATE INDEX IF NOT EXISTS turnloom_chunks_words ON turnloom_chunks USING gin (words);
    CREATE INDEX IF NOT EXISTS turnloom_chunks_restricted
    ON turnloom_chunks (collection, tenant, visibility) WHERE visibility <> '';
    CREATE INDEX IF NOT EXISTS turnloom_chunks_shared
    ON turnloom_chunks (collection, visibility) WHERE shared;
    INSERT INTO turnloom_schema VALUES ('vectors', {version}) ON CONFLICT DO NOTHING;
    COMMIT""").format(version=Literal(VERSION))

_FIND = SQL("""
    SELECT n, to_regclass('turnloom_chunks_near_' || n) IS NOT NULL, embedder, version, dimensions
    FROM turnloom_collections WHERE name = {name}""")
_MAKE = SQL("""
    INSERT INTO turnloom_collections (name, embedder, version, dimensions)
    VALUES ({name}, {embedder}, {version}, {dimensions}) ON CONFLICT DO NOTHING""")
_INDEX = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('turnloom_schema'));
    CREATE INDEX IF NOT EXISTS {index} ON turnloom_chunks
    USING hnsw ((embedding::vector({dimensions})) vector_cosine_ops)
    WHERE collection = {collection};
    COMMIT""")
_DIGESTS = SQL("""
    SELECT id, digest FROM turnloom_documents
    WHERE collection = {collection} AND tenant = {tenant} AND id = ANY({ids}::text[])""")
# One writer per collection at a time: two that replace the same document would both insert it.
_REPLACE = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('turnloom_vectors'), {collection});
    WITH gone AS (
        DELETE FROM turnloom_documents
        WHERE collection = {collection} AND tenant = {tenant} AND id = ANY({gone}::text[])
        RETURNING n
    ) SELECT count(*) FROM gone;
    WITH given AS (
        SELECT * FROM unnest({ids}::text[], {digests}::text[], {metadata}::text[], {facts}::text[],
            {visibilities}::text[], {shared}::boolean[])
            AS rows (id, digest, metadata, facts, visibility, shared)
    ), kept AS (
        INSERT INTO turnloom_documents (collection, tenant, id, digest, metadata)
        SELECT {collection}, {tenant}, id, digest, metadata FROM given
        RETURNING n, id
    )
    INSERT INTO turnloom_chunks
    SELECT {collection}, kept.n, kept.id, chunks.place,
        ARRAY(SELECT jsonb_array_elements_text(given.facts::jsonb)),
        chunks.content, chunks.vector::vector, given.visibility, {tenant}, given.shared,
        ARRAY(SELECT jsonb_array_elements_text(chunks.words::jsonb))
    FROM kept JOIN given USING (id)
    JOIN unnest({sources}::text[], {places}::integer[], {contents}::text[], {vectors}::text[],
        {words}::text[]) AS chunks (id, place, content, vector, words) USING (id);
    COMMIT""")
_HAVING = SQL("""
    SELECT DISTINCT source FROM turnloom_chunks
    WHERE collection = {collection} AND tenant = {tenant} AND facts && {facts}::text[]""")
# One index lookup per visibility, regardless of the number of chunks.
_VISIBILITIES = SQL("""
    WITH RECURSIVE own (visibility) AS (
        SELECT min(visibility) FROM turnloom_chunks
        WHERE collection = {collection} AND tenant = {tenant} AND visibility <> ''
        UNION ALL
        SELECT (
            SELECT min(visibility) FROM turnloom_chunks
            WHERE collection = {collection} AND tenant = {tenant}
            AND visibility <> '' AND visibility > own.visibility)
        FROM own WHERE own.visibility IS NOT NULL
    ), common (visibility) AS (
        SELECT min(visibility) FROM turnloom_chunks WHERE collection = {collection} AND shared
        UNION ALL
        SELECT (
            SELECT min(visibility) FROM turnloom_chunks
            WHERE collection = {collection} AND shared AND visibility > common.visibility)
        FROM common WHERE common.visibility IS NOT NULL
    )
    SELECT false, visibility FROM own WHERE visibility IS NOT NULL
    UNION ALL SELECT true, visibility FROM common WHERE visibility IS NOT NULL""")
_ANY_CHUNK = SQL("""
    SELECT 1 FROM turnloom_chunks
    WHERE collection = {collection} AND (tenant = {tenant} OR shared) LIMIT 1""")
_PASSING = SQL("""
    SELECT count(*) FROM (
        SELECT 1 FROM turnloom_chunks WHERE collection = {collection}{filters} LIMIT {limit}
    ) AS passing""")
_NEAREST = SQL("""
    BEGIN;
    SET LOCAL hnsw.iterative_scan = strict_order;
    SET LOCAL hnsw.ef_search = {candidates};
    SELECT near.content, 1 - near.distance, near.source, turnloom_documents.metadata, near.place,
        near.visibility
    FROM (
        SELECT content, source, place, visibility, document, tenant,
            {vectors} <=> {vector} AS distance
        FROM turnloom_chunks WHERE collection = {collection}{filters}
        ORDER BY distance, source, place, tenant <> {tenant}, tenant LIMIT {limit}
    ) AS near JOIN turnloom_documents ON turnloom_documents.n = near.document
    ORDER BY near.tenant <> {tenant}, near.tenant;
    COMMIT""")


# The number of chunks that pass, and of those that have each word.
_COUNTS = SQL("""
    SELECT count(*){counts} FROM turnloom_chunks WHERE collection = {collection}{filters}""")
# Only chunks that have a word or are nearest by meaning can be among the best.
_MATCHING = SQL("""
    BEGIN;
    SET LOCAL hnsw.iterative_scan = strict_order;
    SET LOCAL hnsw.ef_search = {candidates};
    WITH near AS ({near}), scored AS (
        SELECT content, source, place, visibility, document, tenant,
            1 - (1 - {meaning}) * (1 - ({shares})) AS score
        FROM turnloom_chunks WHERE collection = {collection}{filters}
        AND (words && {words}::text[] OR (document, place) IN (SELECT document, place FROM near))
        ORDER BY score DESC, source, place, tenant <> {tenant}, tenant LIMIT {limit}
    )
    SELECT scored.content, scored.score, scored.source, turnloom_documents.metadata, scored.place,
        scored.visibility
    FROM scored JOIN turnloom_documents ON turnloom_documents.n = scored.document
    ORDER BY scored.tenant <> {tenant}, scored.tenant;
    COMMIT""")
_NO_CHUNK = SQL("SELECT 0::bigint AS document, 0 AS place WHERE false")
_NEAR = SQL("""
    SELECT document, place FROM turnloom_chunks WHERE collection = {collection}{filters}
    ORDER BY {vectors} <=> {vector} LIMIT {limit}""")
# A zero vector has no direction, and so no distance.
_MEANING = SQL("greatest(0, coalesce(nullif(1 - (embedding <=> {vector}), 'NaN'), 0))")


def find(name: str) -> Composed:
    """A collection's number, whether it is indexed, and its space."""
    return _FIND.format(name=Literal(name))


def create(name: str, space: Space) -> Composed:
    """Create a collection if it does not exist."""
    values = {key: Literal(value) for key, value in space._asdict().items()}
    return _MAKE.format(name=Literal(name), **values)


def index(collection: int, dimensions: int) -> Composed:
    """Create the vector index of a collection if it does not exist."""
    return _INDEX.format(
        index=Identifier(f"turnloom_chunks_near_{collection}"),
        dimensions=Literal(dimensions),
        collection=Literal(collection),
    )


def digests(collection: int, tenant: str, ids: Sequence[str]) -> Composed:
    """The digests of a tenant's documents."""
    return _DIGESTS.format(
        collection=Literal(collection), tenant=_text(tenant), ids=Literal(list(ids))
    )


def replace(
    collection: int, tenant: str, gone: Sequence[str], entries: Sequence[StoredDocument]
) -> Composed:
    """Replace a tenant's documents, and return how many were removed."""
    chunks = [
        (entry.id, place, chunk) for entry in entries for place, chunk in enumerate(entry.chunks)
    ]
    return _REPLACE.format(
        collection=Literal(collection),
        tenant=_text(tenant),
        gone=Literal(list(gone)),
        ids=Literal([entry.id for entry in entries]),
        digests=Literal([entry.digest for entry in entries]),
        metadata=Literal([entry.metadata for entry in entries]),
        facts=Literal([json.dumps(list(entry.facts)) for entry in entries]),
        visibilities=Literal([entry.visibility for entry in entries]),
        shared=Literal([entry.shared for entry in entries]),
        sources=Literal([id for id, _, _ in chunks]),
        places=Literal([place for _, place, _ in chunks]),
        contents=Literal([chunk.content for _, _, chunk in chunks]),
        vectors=Literal([_write(chunk.vector) for _, _, chunk in chunks]),
        words=Literal([json.dumps(words_of(chunk.content)) for _, _, chunk in chunks]),
    )


def visibilities(collection: int, tenant: str) -> Composed:
    """The distinct visibilities of a tenant's documents, except public, and of shared documents;
    the first column says which."""
    return _VISIBILITIES.format(collection=Literal(collection), tenant=_text(tenant))


def having(collection: int, tenant: str, fact: str) -> Composed:
    """The ids of a tenant's documents that have a fact."""
    return _HAVING.format(
        collection=Literal(collection), tenant=_text(tenant), facts=Literal([fact])
    )


def any_chunk(collection: int, tenant: str) -> Composed:
    """A row if the tenant has documents, or shared documents exist."""
    return _ANY_CHUNK.format(collection=Literal(collection), tenant=_text(tenant))


def passing(collection: int, probe: Probe, most: int) -> Composed:
    """The number of chunks that pass, up to a limit."""
    return _PASSING.format(
        collection=Literal(collection), filters=_filters(probe), limit=Literal(most)
    )


def nearest(collection: int, probe: Probe, indexed: bool) -> Composed:
    """The chunks nearest to a vector among those that pass."""
    assert probe.vector is not None
    least, most = CANDIDATES
    length = SQL("::vector({})").format(Literal(len(probe.vector))) if indexed else SQL("")
    return _NEAREST.format(
        candidates=Literal(max(least, min(most, 2 * probe.top_k))),
        vectors=SQL("embedding{}").format(length),
        vector=SQL("{}::vector").format(Literal(_write(probe.vector))),
        collection=Literal(collection),
        tenant=_text(probe.tenant),
        filters=_filters(probe),
        limit=Literal(probe.top_k),
    )


def counts(collection: int, probe: Probe) -> Composed:
    """The number of chunks that pass, and of those that have each word."""
    has = SQL(", count(*) FILTER (WHERE words @> ARRAY[{}]::text[])")
    return _COUNTS.format(
        counts=SQL("").join(has.format(Literal(word)) for word in probe.words),
        collection=Literal(collection),
        filters=_filters(probe),
    )


def matching(collection: int, probe: Probe, weights: Sequence[float], indexed: bool) -> Composed:
    """The best chunks by weighted words, and by meaning if there is a vector, among those that
    pass."""
    share = SQL("CASE WHEN words @> ARRAY[{}]::text[] THEN {}::float8 ELSE 0 END")
    pairs = zip(probe.words, weights, strict=True)
    least, most = CANDIDATES
    near, meaning = _near(collection, probe, indexed)
    return _MATCHING.format(
        candidates=Literal(max(least, min(most, 2 * probe.top_k))),
        near=near,
        meaning=meaning,
        shares=SQL(" + ").join(share.format(Literal(word), Literal(w)) for word, w in pairs),
        words=Literal(list(probe.words)),
        collection=Literal(collection),
        tenant=_text(probe.tenant),
        filters=_filters(probe),
        limit=Literal(probe.top_k),
    )


def _near(collection: int, probe: Probe, indexed: bool) -> tuple[Composable, Composable]:
    """The chunks nearest by meaning, and the expression for a chunk's similarity."""
    if probe.vector is None:
        return _NO_CHUNK, SQL("0")
    length = SQL("::vector({})").format(Literal(len(probe.vector))) if indexed else SQL("")
    vector = SQL("{}::vector").format(Literal(_write(probe.vector)))
    near = _NEAR.format(
        collection=Literal(collection),
        filters=_filters(probe),
        vectors=SQL("embedding{}").format(length),
        vector=vector,
        limit=Literal(probe.top_k),
    )
    return near, _MEANING.format(vector=vector)


def _filters(probe: Probe) -> Composed:
    """The conditions that chunks must fulfil to pass."""
    found: list[Composable] = [SQL(" AND ({})").format(_visible(probe))]
    found += [
        SQL(" AND facts && {}::text[]").format(Literal(list(group))) for group in probe.filters
    ]
    return SQL("").join(found)


def _visible(probe: Probe) -> Composed:
    """The tenant's own chunks that are not hidden, or shared ones."""
    visible = SQL("tenant = {}").format(_text(probe.tenant))
    if probe.hidden:
        visible += SQL(" AND visibility <> ALL({}::text[])").format(Literal(list(probe.hidden)))
    if probe.shared:
        shared = Literal(list(probe.shared))
        visible += SQL(" OR shared AND visibility = ANY({}::text[])").format(shared)
    return visible


def _text(value: str) -> Composed:
    return SQL("{}::text").format(Literal(value))


def _write(vector: Sequence[float]) -> str:
    return f"[{','.join(map(str, vector))}]"
