"""Memory, SQLite and PostgreSQL give the same answers, and never one that a reader may not get."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.board.strategies import boards, consumptions, filters, instants, of_all_roles
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.postgres import PostgresArtifacts
from turnloom.adapters.sqlite import SqliteStore
from turnloom.board.logic.matching import matches, may_see
from turnloom.board.service import IndexedArtifacts
from turnloom.board.spec import (
    After,
    Artifact,
    BoardSummary,
    Consumption,
    Envelope,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    TagFilter,
    Tenant,
    is_shared,
)
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND, artifact
from turnloom.testing.contracts.facts import TENANT


@asynccontextmanager
async def three_stores(url: str) -> AsyncGenerator[list[IndexedArtifacts], None]:
    """Empty stores of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        memory, sqlite = MemoryStore(CODEC), SqliteStore(Path(folder, "turnloom.db"), CODEC)
        postgres = PostgresArtifacts(url)
        await postgres.put(TENANT, [])
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(
                "TRUNCATE turnloom_artifacts, turnloom_terms, turnloom_consumptions"
            )
        try:
            yield [memory.artifacts, sqlite.artifacts, postgres]
        finally:
            await sqlite.aclose()
            await postgres.aclose()


def expected(
    board: list[Artifact], filter: FilterConfig, reader: Reader, now: datetime
) -> list[Artifact]:
    """What a reader gets, by looking at everything."""
    right = [
        each
        for each in sorted(board, key=lambda each: each.created_at)
        if may_see(each.visibility, reader, now) and matches(filter, each)
    ]
    return right[::-1] if filter.order == "-created_at" else right


def enveloped(right: list[Artifact], taken: list[Consumption]) -> list[Envelope]:
    """What a reader gets, with who took it: each taking as it was first told."""
    first = {(each.artifact, each.run, each.turn, each.subscription): each for each in taken[::-1]}
    order = sorted(first.items(), key=lambda item: (item[1].at, item[0]))
    return [
        Envelope(
            **{name: getattr(item, name) for name in item.__struct_fields__},
            consumptions=tuple(each for _, each in order if each.artifact == item.id),
        )
        for item in right
    ]


def summarized(right: list[Artifact]) -> BoardSummary:
    """How many of what a reader gets, counted one after the other."""
    kinds = {
        Public: "public",
        Private: "private",
        Labelled: "labelled",
        Tenant: "tenant",
        After: "after",
        Shared: "shared",
    }
    return BoardSummary(
        total=len(right),
        by_type=Counter(each.type for each in right),
        by_producer=Counter(each.produced_by for each in right),
        by_visibility=Counter(kinds[type(each.visibility)] for each in right),
        by_tag=Counter(tag for each in right for tag in each.tags),
    )


async def short_pages(
    store: IndexedArtifacts, filter: FilterConfig, reader: Reader, now: datetime
) -> list[list[Artifact]]:
    """All pages, where each compares a few artifacts only."""
    store.most_compared = 2
    found, cursor = list[list[Artifact]](), None
    while cursor is not None or not found:
        page = await store.query(filter, reader, now, cursor=cursor)
        found.append([*page.items])
        cursor = page.cursor
    return found


async def compare(
    url: str,
    board: tuple[list[Artifact], list[Consumption]],
    filter: FilterConfig,
    reader: Reader,
    now: datetime,
) -> None:
    artifacts, taken = board
    own = reader.tenant
    theirs = [each for each in artifacts if not is_shared(each.visibility)]
    right = expected(artifacts, filter, reader, now)
    async with three_stores(url) as stores:
        for store in stores:
            await store.put("stranger", theirs)
            await store.consume("stranger", taken)
            await store.put(own, artifacts[: len(artifacts) // 2])
            await store.consume(own, taken[: len(taken) // 2])
            await store.consume(own, taken[len(taken) // 2 :])
            await store.put(own, artifacts[len(artifacts) // 2 :])
            found, cursor = list[Artifact](), None
            while True:
                page = await store.query(
                    filter, reader, now, embed_meta=True, cursor=cursor, count=True
                )
                assert page.total == len(right)
                found += page.items
                cursor = page.cursor
                if cursor is None:
                    break
                assert len(page.items) == filter.limit
            assert found == enveloped(right, taken)
            assert await store.summary(filter, reader, now) == summarized(right)
            for each in artifacts:
                seen = await store.get(each.id, reader, now)
                assert seen == (each if may_see(each.visibility, reader, now) else None)
        paged = [await short_pages(store, filter, reader, now) for store in stores]
        assert paged[0] == paged[1] == paged[2]
        assert [*chain.from_iterable(paged[0])] == right
        assert all(len(page) <= 2 for page in paged[0])
        upcoming = [list(await store.upcoming(own, now, 3)) for store in stores]
        assert upcoming[0] == upcoming[1] == upcoming[2]


@pytest.mark.doors
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    board=st.tuples(boards(), consumptions()), filter=filters(), reader=of_all_roles, now=instants()
)
def test_all_stores_answer_as_the_rules_say(
    postgres_url: str,
    board: tuple[list[Artifact], list[Consumption]],
    filter: FilterConfig,
    reader: Reader,
    now: datetime,
) -> None:
    asyncio.run(compare(postgres_url, board, filter, reader, now))


@pytest.mark.doors
@pytest.mark.repeats
async def test_a_board_of_thousands(postgres_url: str) -> None:
    """More than any chunk holds, and than entries are counted."""
    reader, now = Reader("a", {"b"}, "c"), NOON + timedelta(seconds=5)
    closed = [Public(), Private({"a", "b"}), Labelled({"b", "c"}), Tenant("c"), After(NOON)]
    board = [
        artifact(
            str(n),
            type="rare" if n % 500 == 0 else "ab"[n % 2],
            produced_by="abc"[n % 3],
            created_at=NOON + n % 11 * SECOND,
            tags={"t"} if n % 5 else {"t", "u"},
            visibility=closed[n % 7 % 5],
        )
        for n in range(6_000)
    ]
    some = {"types": {"a", "rare"}, "produced_by": {"a", "b"}, "order": "-created_at"}
    tags = TagFilter(include={"t"}, exclude={"u"})
    right = expected(board, FilterConfig(**some, tags=tags), reader, now)
    async with three_stores(postgres_url) as stores:
        for store in stores:
            await store.put(reader.tenant, board)
            for limit in (7, None):
                filter = FilterConfig(**some, tags=tags, limit=limit)
                page = await store.query(filter, reader, now, count=True)
                assert page.total == len(right) > 500
                assert list(page.items) == right[:limit]
                assert await store.summary(filter, reader, now) == summarized(right)
