"""Artifacts in PostgreSQL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.adapters.postgres.test_trouble import execute
from tests.support.loopback import listening, stay_silent
from tests.support.servers import PASSWORD, free_port
from turnloom.adapters.postgres import PostgresArtifacts
from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import FilterConfig, Reader
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.testing.contracts import ArtifactStoreContract
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    LATER,
    NOON,
    SECOND,
    artifact,
    consumption,
    ids,
    series,
)
from turnloom.testing.contracts.facts import TENANT

EVERYTHING = FilterConfig()


class TestArtifacts(ArtifactStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        store = PostgresArtifacts(self.url)
        yield store
        await store.aclose()


async def complaint(store: PostgresArtifacts) -> str:
    """What a question is refused with, and without a password."""
    with anyio.fail_after(60), pytest.raises(StoreUnavailable) as raised:
        await store.query(EVERYTHING, ANN, NOON)
    with anyio.fail_after(60), pytest.raises(StoreUnavailable):
        await store.put(TENANT, [artifact("a")])
    await store.aclose()
    assert PASSWORD not in str(raised.value)
    return str(raised.value)


async def test_the_tables_are_made_once(postgres_url: str) -> None:
    stores = [PostgresArtifacts(postgres_url) for _ in range(4)]
    async with anyio.create_task_group() as tasks:
        for n, store in enumerate(stores):
            tasks.start_soon(store.put, TENANT, [artifact("same"), artifact(str(n))])
    for store in stores:
        assert sorted(await ids(store)) == ["0", "1", "2", "3", "same"]
        await store.aclose()


async def test_no_server() -> None:
    port = free_port()
    said = await complaint(PostgresArtifacts(f"postgresql://me:p%20w@127.0.0.1:{port}/db", 0.5))
    assert f"127.0.0.1:{port}" in said


async def test_a_silent_server() -> None:
    async with listening(stay_silent) as port:
        said = await complaint(PostgresArtifacts(f"postgresql://me@127.0.0.1:{port}/db", 0.2))
    assert "0.2 s" in said


async def test_a_user_who_may_not_make_tables(postgres_url: str) -> None:
    await execute(postgres_url, "CREATE ROLE visitor LOGIN PASSWORD 'x'")
    url = f"postgresql://visitor:x@{postgres_url.rpartition('@')[2]}"
    for takes, said in (("CREATE", "permission denied"), ("ALL", "no schema")):
        await execute(postgres_url, f"REVOKE {takes} ON SCHEMA public FROM PUBLIC")
        assert said in await complaint(PostgresArtifacts(url))


async def test_data_that_the_server_cannot_read_is_counted_here(postgres_url: str) -> None:
    store = PostgresArtifacts(postgres_url)
    await store.put(TENANT, [*series(3, tags={"t"}), artifact("nul", payload={"a": "\0"})])
    counted = await store.summary(EVERYTHING, ANN, LATER)
    assert (counted.total, counted.by_tag) == (4, {"t": 3})
    await execute(postgres_url, "UPDATE turnloom_artifacts SET data = 'x' WHERE id = '1'")
    counted = await store.summary(EVERYTHING, ANN, LATER)
    assert (counted.total, counted.by_tag) == (3, {"t": 2})
    await store.aclose()


async def test_a_large_board_is_counted_in_parts(postgres_url: str) -> None:
    store = PostgresArtifacts(postgres_url)
    store.window = 3
    await store.put(TENANT, [artifact(str(n), created_at=NOON + n // 2 * SECOND) for n in range(9)])
    for filter in (EVERYTHING, FilterConfig(order="-created_at"), FilterConfig(since=NOON)):
        assert (await store.summary(filter, ANN, LATER)).by_producer == {"ann": 9}
        assert (await store.query(filter, ANN, LATER, count=True)).total == 9
    assert (await store.summary(FilterConfig(until=NOON + SECOND), ANN, LATER)).total == 4
    await store.aclose()


def test_a_url_that_cannot_be_read() -> None:
    with pytest.raises(UsageError) as raised:
        PostgresArtifacts("postgresql://me:secret@host:port:5/x?y")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("corrupt", ["", '{"kind":"everyone"}', '{"kind":"tenant"}'])
async def test_a_damaged_visibility_shows_nothing(postgres_url: str, corrupt: str) -> None:
    store = PostgresArtifacts(postgres_url)
    await store.put(TENANT, series(5))
    statement = f"UPDATE turnloom_artifacts SET visibility = '{corrupt}' WHERE id IN ('1', '3')"
    await execute(postgres_url, statement)
    assert await ids(store) == ["0", "2", "4"]
    assert await ids(store, limit=2) == ["0", "2"]
    assert await store.get("1", ANN, LATER) is None
    await store.aclose()


async def test_a_closed_store_refuses(postgres_url: str) -> None:
    store = PostgresArtifacts(postgres_url)
    await store.put(TENANT, [artifact("a")])
    await store.aclose()
    await store.aclose()
    for call in (
        store.put(TENANT, [artifact("a")]),
        store.consume(TENANT, [consumption("a")]),
        store.get("a", Reader(), NOON),
        store.query(EVERYTHING, Reader(), NOON),
        store.summary(EVERYTHING, Reader(), NOON),
        store.upcoming(TENANT, NOON, 1),
    ):
        with pytest.raises(UsageError):
            await call
