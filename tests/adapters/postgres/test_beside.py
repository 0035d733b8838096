"""What a PostgreSQL store keeps beside runs passes every suite."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from turnloom.access.ports import Audit, Keys
from turnloom.adapters.postgres import PostgresStore
from turnloom.feedback.ports import FeedbackStore
from turnloom.jobs.ports import JobStore
from turnloom.log.ports import EventLog
from turnloom.schedules.ports import ScheduleStore
from turnloom.testing.contracts import (
    CODEC,
    AuditContract,
    FeedbackContract,
    JobsContract,
    KeysContract,
    SchedulesContract,
)

pytestmark = pytest.mark.doors


class _Fresh:
    """A store in a database that is empty at first."""

    url: str

    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def store(self) -> AsyncGenerator[PostgresStore, None]:
        store = PostgresStore(self.url, CODEC)
        try:
            yield store
        finally:
            await store.aclose()


class TestKeys(_Fresh, KeysContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Keys, None]:
        async with self.store() as store:
            yield store.keys


class TestAudit(_Fresh, AuditContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Audit, None]:
        async with self.store() as store:
            yield store.audit


class TestFeedback(_Fresh, FeedbackContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, FeedbackStore], None]:
        async with self.store() as store:
            yield store.log, store.feedback


class TestSchedules(_Fresh, SchedulesContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ScheduleStore, None]:
        async with self.store() as store:
            yield store.schedules


class TestJobs(_Fresh, JobsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[JobStore, None]:
        async with self.store() as store:
            yield store.jobs
