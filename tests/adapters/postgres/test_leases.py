"""Leases that are over, and runs that others take over, by the clock of the database."""

import asyncio

import anyio
import psycopg
import pytest

from tests.adapters.postgres.test_store_trouble import (
    EXPIRE,
    PATIENCE,
    WAITS,
    opened,
    pytestmark,
    until_there,
)
from tests.adapters.postgres.test_trouble import execute
from turnloom.errors import LeaseLost
from turnloom.testing.contracts.facts import events, key

__all__ = ["pytestmark"]

# Seconds of a lease that is not renewed meanwhile.
LONG = 10 * PATIENCE


async def test_a_lease_that_is_over_is_not_renewed(postgres_url: str) -> None:
    async with opened(postgres_url, lease=3.0) as store:
        with anyio.fail_after(PATIENCE), pytest.raises(LeaseLost):
            async with store.claims.claim(key("a")):
                await execute(postgres_url, EXPIRE)
                await anyio.sleep_forever()


async def test_a_run_that_another_took_over_is_closed_to_the_first(postgres_url: str) -> None:
    """Its fence is lower, and that of the other is in force."""
    async with opened(postgres_url, lease=LONG) as store, opened(postgres_url) as other:
        with pytest.raises(LeaseLost):
            async with store.claims.claim(key("a")) as fence:
                await execute(postgres_url, EXPIRE)
                async with other.claims.claim(key("a")) as later:
                    assert later > fence
                    await other.log.append(key("a"), events("a", 1), 0, later)
                    await store.log.append(key("a"), events("a", 1, 1), 1, fence)
        assert len(await store.log.read(key("a"))) == 1


async def test_a_takeover_waits_for_an_append_that_has_begun(postgres_url: str) -> None:
    """The append saw its lease in force; who takes the run over finds what it stored."""
    async with opened(postgres_url, lease=LONG) as store, opened(postgres_url) as other:
        await store.log.append(key("a"), events("a", 1), 0)
        with pytest.raises(LeaseLost):
            async with store.claims.claim(key("a")) as fence:
                async with await psycopg.AsyncConnection.connect(postgres_url) as lock:
                    await lock.execute("LOCK TABLE turnloom_ids IN ACCESS EXCLUSIVE MODE")
                    batch = events("a", 1, 1)
                    appending = asyncio.ensure_future(store.log.append(key("a"), batch, 1, fence))
                    await until_there(postgres_url, WAITS)
                    await execute(postgres_url, EXPIRE)
                    taking = asyncio.ensure_future(other.claims.claim(key("a")).__aenter__())
                    await until_there(postgres_url, f"{WAITS} HAVING count(*) > 1")
                    await lock.rollback()
                assert [*await appending] == batch
                assert await taking > fence
                await store.log.append(key("a"), events("a", 1, 2), 2, fence)
        assert len(await other.log.read(key("a"))) == 2
