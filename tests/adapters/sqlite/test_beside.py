"""What a SQLite file keeps beside runs passes every suite."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from turnloom.access.ports import Audit, Keys
from turnloom.adapters.sqlite import SqliteStore
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


@asynccontextmanager
async def fresh_store() -> AsyncGenerator[SqliteStore, None]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "turnloom.db"), CODEC)
        try:
            yield store
        finally:
            await store.aclose()


class TestKeys(KeysContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Keys, None]:
        async with fresh_store() as store:
            yield store.keys


class TestAudit(AuditContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Audit, None]:
        async with fresh_store() as store:
            yield store.audit


class TestFeedback(FeedbackContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, FeedbackStore], None]:
        async with fresh_store() as store:
            yield store.log, store.feedback


class TestSchedules(SchedulesContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ScheduleStore, None]:
        async with fresh_store() as store:
            yield store.schedules


class TestJobs(JobsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[JobStore, None]:
        async with fresh_store() as store:
            yield store.jobs
