"""The scheduler over Procrastinate passes its suite."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import pytest

from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.runtime.ports import Permits
from turnloom.runtime.spec import Limit
from turnloom.testing.contracts import (
    PermitsContract,
    SchedulerContract,
    SharedSchedulerContract,
    facts,
)
from turnloom.testing.contracts.facts import key

pytestmark = pytest.mark.doors

LEASE = 1.0
SOON = timedelta(seconds=2)


class TestScheduler(SchedulerContract):
    soon = SOON

    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ProcrastinateScheduler, None]:
        scheduler = ProcrastinateScheduler(self.url, lease=LEASE)
        await scheduler.status(key("a"))  # it connects, and creates the tables
        yield scheduler
        await scheduler.aclose()


class TestSharedScheduler(SharedSchedulerContract):
    soon = SOON

    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ProcrastinateScheduler, None]:
        scheduler = ProcrastinateScheduler(self.url, lease=LEASE, stranded=0.2)
        await scheduler.status(key("a"))  # it connects, and creates the tables
        yield scheduler
        await scheduler.aclose()

    another = fresh


class TestPermits(PermitsContract):
    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Permits, None]:
        scheduler = ProcrastinateScheduler(self.url, lease=LEASE)
        yield scheduler.permits
        await scheduler.aclose()


async def test_places_of_a_process_that_dies_are_free_after_its_lease(postgres_url: str) -> None:
    limit = Limit("model a", at_once=1)
    lasting, dead = (ProcrastinateScheduler(postgres_url, lease=LEASE) for _ in range(2))
    assert await dead.permits.acquire(limit, "its") == 0
    await dead.aclose()  # it renews nothing any more
    with anyio.fail_after(facts.PATIENCE):
        while pause := await lasting.permits.acquire(limit, "ours"):  # noqa: ASYNC110
            await anyio.sleep(pause)
    await anyio.sleep(2 * LEASE)  # ours is renewed
    assert await lasting.permits.acquire(limit, "another") > 0
    await lasting.aclose()
