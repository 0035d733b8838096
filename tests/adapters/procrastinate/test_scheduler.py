"""The scheduler over Procrastinate passes its suite."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.testing.contracts import SchedulerContract, SharedSchedulerContract

pytestmark = pytest.mark.doors

LEASE = 1.0


class TestScheduler(SchedulerContract):
    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ProcrastinateScheduler, None]:
        scheduler = ProcrastinateScheduler(self.url, lease=LEASE)
        yield scheduler
        await scheduler.aclose()


class TestSharedScheduler(SharedSchedulerContract):
    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ProcrastinateScheduler, None]:
        scheduler = ProcrastinateScheduler(self.url, lease=LEASE)
        yield scheduler
        await scheduler.aclose()

    another = fresh
