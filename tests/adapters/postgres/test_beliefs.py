"""Beliefs in PostgreSQL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.support.loopback import listening, stay_silent
from tests.support.servers import PASSWORD, free_port
from turnloom.adapters.postgres import PostgresBeliefs
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief
from turnloom.testing.contracts import BeliefStoreContract
from turnloom.testing.contracts.small import POOL, outcome


class TestBeliefs(BeliefStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[BeliefStore, None]:
        store = PostgresBeliefs(self.url)
        yield store
        await store.aclose()


async def complaint(store: PostgresBeliefs) -> str:
    """What both questions are refused with, and without a password."""
    with anyio.fail_after(60), pytest.raises(StoreUnavailable) as raised:
        await store.beliefs(POOL, ["Ann"])
    with anyio.fail_after(60), pytest.raises(StoreUnavailable):
        await store.observe([outcome("a")])
    await store.aclose()
    assert PASSWORD not in str(raised.value)
    return str(raised.value)


async def test_stores_that_come_first_together_and_fade_together(postgres_url: str) -> None:
    """Nobody waits for another who waits for it, although all change the same rows."""
    stores = [PostgresBeliefs(postgres_url) for _ in range(4)]
    async with anyio.create_task_group() as tasks:
        for n in range(80):
            seen = outcome(str(n), "Ann" if n % 2 else "Bob", decay=0.01)
            tasks.start_soon(stores[n % 4].observe, [seen])
    known = await stores[0].beliefs(POOL, ["Ann", "Bob"])
    total = sum(each.observations for each in known.values())
    assert total == pytest.approx(sum(0.99**n for n in range(80)))
    for store in stores:
        await store.aclose()


async def test_no_server() -> None:
    port = free_port()
    said = await complaint(PostgresBeliefs(f"postgresql://me:p%20w@127.0.0.1:{port}/db", 0.5))
    assert f"127.0.0.1:{port}" in said


async def test_a_silent_server() -> None:
    async with listening(stay_silent) as port:
        said = await complaint(PostgresBeliefs(f"postgresql://me@127.0.0.1:{port}/db", 0.2))
    assert "0.2 s" in said


async def test_what_cannot_be_kept_is_said(postgres_url: str) -> None:
    store = PostgresBeliefs(postgres_url)
    with pytest.raises(StoreUnavailable):
        await store.observe([outcome("a", "A\0nn")])
    await store.observe([outcome("b")])
    assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(1.0, 0.0)}
    await store.aclose()


async def test_a_closed_store_refuses(postgres_url: str) -> None:
    store = PostgresBeliefs(postgres_url)
    await store.observe([outcome("a")])
    await store.aclose()
    await store.aclose()
    with pytest.raises(UsageError):
        await store.beliefs(POOL, ["Ann"])
    with pytest.raises(UsageError):
        await store.observe([outcome("b")])
