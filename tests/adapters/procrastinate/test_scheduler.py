"""The scheduler over Procrastinate passes its suite."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.testing.contracts import SchedulerContract, SharedSchedulerContract
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
