"""The cost of board queries after the board has grown a hundredfold."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Protocol
from urllib.parse import quote

import psycopg

from bench.measures import Measure, Rounds, Size, settle
from turnloom.adapters.postgres import PostgresArtifacts
from turnloom.adapters.sqlite import SqliteStore
from turnloom.board.logic.rows import EVERYTHING, Scope, tagged, term
from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import Artifact, FilterConfig, Public, Reader, TagFilter, Tenant
from turnloom.runtime.logic import codec

# URL of a PostgreSQL server whose database may be filled; optional.
SERVER = "TURNLOOM_BENCH_POSTGRES"
LIMIT = 2.0
QUESTIONS = 20
BATCH = 1_000
RUN = 50
START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=1)
NOW = START + 3650 * SPAN
TYPES = [f"bench.Type{n}" for n in range(10)]
AGENTS = [f"agent{n}" for n in range(7)]
TAGS = ["won", "lost", "draft"]
TENANTS = ["acme", "globex"]
READER = Reader("agent", {"staff"}, "acme")
QUERIES = {
    "20 by type, tag": FilterConfig(
        types={TYPES[3]}, tags=TagFilter(include={"won"}), limit=20, order="-created_at"
    ),
    "20 by type, agent": FilterConfig(
        types={*TYPES[3:5]}, produced_by={*AGENTS[:2]}, limit=20, order="-created_at"
    ),
    "a correlation": FilterConfig(correlation_id="run-1"),
}
# A board grows by copies of itself, each later than the previous one and with separate runs.
SEED = "CREATE TEMPORARY TABLE seed AS SELECT * FROM {terms}"
COPY = """
    INSERT INTO {artifacts}
    SELECT n + {n}, tenant, id || '-{k}', digest, at + {at}, opens, shared, visibility,
        replace(data, '"' || id || '"', '"' || id || '-{k}"')
    FROM {artifacts} WHERE n <= {count}"""
COPY_TERMS = """
    INSERT INTO {terms}
    SELECT CASE WHEN term IN ({common}) THEN term ELSE term + {k} END, at + {at}, n + {n}, opens
    FROM seed"""


class Store(Protocol):
    """A store that has artifacts."""

    @property
    def artifacts(self) -> ArtifactStore: ...
    async def aclose(self) -> None: ...


class Board(Protocol):
    """A board to fill, query and multiply."""

    def open(self) -> Store: ...
    def multiply(self, count: int, times: int) -> None: ...


class File:
    """A board in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> SqliteStore:
        return SqliteStore(self._path, codec())

    def multiply(self, count: int, times: int) -> None:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute("PRAGMA cache_size = -400000")
            for statement in _copies("artifacts", "terms", count, times):
                connection.execute(statement)


class Schema:
    """A board in a fresh schema of a PostgreSQL server."""

    def __init__(self, url: str, name: str) -> None:
        self._url = f"{url}{'&' if '?' in url else '?'}options={quote(f'-c search_path={name}')}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
            connection.execute(f"CREATE SCHEMA {name}".encode())

    def open(self) -> "PostgresBoard":
        return PostgresBoard(self._url)

    def multiply(self, count: int, times: int) -> None:
        with psycopg.connect(self._url) as connection:
            for statement in _copies("turnloom_artifacts", "turnloom_terms", count, times):
                connection.execute(statement.encode())
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE turnloom_terms")
            connection.execute("VACUUM ANALYZE turnloom_artifacts")


class PostgresBoard:
    """A PostgreSQL store with the interface of the others."""

    def __init__(self, url: str) -> None:
        self.artifacts = PostgresArtifacts(url, timeout=60)

    async def aclose(self) -> None:
        await self.artifacts.aclose()


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare the same queries on a small board and on a large one."""
    yield from _compare("SQLite", {n: File(root / f"{n}.db") for n in size.boards}, size)
    if server := os.environ.get(SERVER):
        schemas = {n: Schema(server, f"turnloom_bench_{n}") for n in size.boards}
        yield from _compare("PostgreSQL", schemas, size)


def _compare(name: str, boards: Mapping[int, Board], size: Size) -> Iterator[Measure]:
    rounds = Rounds()
    few, many = size.boards
    for count, board in boards.items():
        asyncio.run(_fill(board, few))
        board.multiply(few, count // few)
    for _ in range(size.rounds):
        for count, board in boards.items():
            settle()
            for case, cost in asyncio.run(_ask(board)).items():
                rounds.add(f"{case} {count}", cost)
    for case in QUERIES:
        cost = rounds.least(f"{case} {many}") * 1e6
        ratio = rounds.ratio(f"{case} {many}", f"{case} {few}")
        against = f"{few:,}, not {many:,}"
        yield Measure("board", f"{name}: {case}", cost, "µs", against, ratio, LIMIT)


async def _fill(board: Board, count: int) -> None:
    store = board.open()
    for some in artifacts(count):
        await store.artifacts.put(READER.tenant, some)
    await store.aclose()


def artifacts(count: int) -> Iterator[list[Artifact]]:
    """Yield batches of artifacts of many kinds."""
    for first in range(0, count, BATCH):
        yield [_artifact(n) for n in range(first, min(count, first + BATCH))]


def _artifact(n: int) -> Artifact:
    """An artifact; types, agents and tags vary, and two of three are public."""
    return Artifact(
        id=f"artifact-{n}",
        type=TYPES[n % len(TYPES)],
        payload={"n": n, "text": "x" * 64},
        produced_by=AGENTS[n % len(AGENTS)],
        created_at=START + n * SPAN / 1_000_000,
        correlation_id=f"run-{n // RUN}",
        run=f"run-{n // RUN}",
        tags={TAGS[n // 10 % len(TAGS)]},
        visibility=Public() if n // 7 % 3 else Tenant(TENANTS[n // 21 % 2]),
    )


def _copies(artifacts: str, terms: str, count: int, times: int) -> Iterator[str]:
    facts = [EVERYTHING, *(("type", each) for each in TYPES), *(("producer", a) for a in AGENTS)]
    facts += [("tag", each) for each in TAGS] + [tagged(*pair) for pair in product(TYPES, TAGS)]
    own = READER.tenant
    scopes: list[Scope] = [("public", "", own), ("restricted", "", own)]
    scopes += [("tenant", each, own) for each in TENANTS]
    common = ", ".join(str(term(*pair)) for pair in product(scopes, facts))
    names = {"artifacts": artifacts, "terms": terms, "count": count, "common": common}
    yield SEED.format(**names)
    for k in range(1, times):
        shift = {"k": k, "n": k * count, "at": k * SPAN // timedelta(microseconds=1)}
        yield COPY.format(**names, **shift)
        yield COPY_TERMS.format(**names, **shift)


async def _ask(board: Board) -> dict[str, float]:
    """The shortest time of each query in a few tries."""
    store = board.open()
    found: dict[str, float] = {}
    for case, filter in QUERIES.items():
        costs: list[float] = []
        for _ in range(QUESTIONS):
            begin = perf_counter()
            page = await store.artifacts.query(filter, READER, NOW)
            costs.append(perf_counter() - begin)
            assert page.items
        found[case] = min(costs)
    await store.aclose()
    return found
