"""What the store in memory keeps beside runs passes every suite."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from turnloom.access.ports import Audit, Keys
from turnloom.adapters.memory import MemoryStore
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


class TestKeys(KeysContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Keys, None]:
        yield MemoryStore(CODEC).keys


class TestAudit(AuditContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Audit, None]:
        yield MemoryStore(CODEC).audit


class TestFeedback(FeedbackContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, FeedbackStore], None]:
        store = MemoryStore(CODEC)
        yield store.log, store.feedback


class TestSchedules(SchedulesContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ScheduleStore, None]:
        yield MemoryStore(CODEC).schedules


class TestJobs(JobsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[JobStore, None]:
        yield MemoryStore(CODEC).jobs
