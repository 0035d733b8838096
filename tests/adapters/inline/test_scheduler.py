"""The inline scheduler passes its suite, and keeps its own promises."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest

from turnloom.adapters.inline import InlinePermits, InlineScheduler
from turnloom.adapters.inline.scheduler import SPARSE, Timers
from turnloom.adapters.system import SystemClock
from turnloom.errors import UsageError
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import LimitWait
from turnloom.testing.contracts import PermitsContract, SchedulerContract, facts
from turnloom.testing.contracts.facts import key
from turnloom.testing.contracts.scheduler import served, until, wait_begun

turn: ContextVar[str] = ContextVar("turn", default="none")


class SetClock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


class TestScheduler(SchedulerContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[InlineScheduler, None]:
        yield InlineScheduler(SystemClock())


class TestPermits(PermitsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[InlinePermits, None]:
        yield InlinePermits()


async def test_a_drive_does_not_inherit_the_context_of_who_woke_it() -> None:
    scheduler, seen = InlineScheduler(SystemClock()), list[str]()

    async def drive(run: RunKey, held: LimitWait | None = None, /) -> None:
        seen.append(turn.get())
        turn.set(run.id)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scheduler.serve(drive, slots=1, limits={}))
        await anyio.lowlevel.checkpoint()
        turn.set("mine")
        for run in ("a", "b"):
            await scheduler.wake(key(run))
            await until(scheduler, run, "idle")
        tasks.cancel_scope.cancel()
    assert seen == ["none", "none"]


async def test_a_failed_drive_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = InlineScheduler(SystemClock())
    async with served(scheduler) as drives:
        drives.errors["a"] = ValueError("no such colour")
        with caplog.at_level(logging.ERROR, "turnloom.inline"):
            await scheduler.wake(key("a"))
            await until(scheduler, "a", "idle")
    assert "'a'" in caplog.text
    assert "no such colour" in caplog.text


async def test_a_wake_during_a_drive_that_fails_is_not_lost() -> None:
    scheduler = InlineScheduler(SystemClock())
    async with served(scheduler) as drives:
        drives.hold("a")
        drives.errors["a"] = ValueError("fails once")
        await scheduler.wake(key("a"))
        await wait_begun(drives, 1)
        await scheduler.wake(key("a"))
        drives.release("a")
        await until(scheduler, "a", "idle")
        assert drives.ended == ["a", "a"]


async def test_a_timer_set_during_a_drive_is_kept() -> None:
    clock = SystemClock()
    scheduler = InlineScheduler(clock)
    async with served(scheduler) as drives:
        drives.hold("a")
        await scheduler.wake(key("a"))
        await wait_begun(drives, 1)
        await scheduler.wake(key("a"), at=clock.now() + timedelta(hours=1))
        drives.release("a")
        await until(scheduler, "a", "timer")


async def test_a_drive_cancelled_before_its_first_step_leaves_nothing_behind() -> None:
    scheduler = InlineScheduler(SystemClock())
    async with served(scheduler, slots=1) as drives:
        await anyio.lowlevel.checkpoint()
        await scheduler.wake(key("a"))
        await scheduler.cancel(key("a"))
        await until(scheduler, "a", "idle")
        await scheduler.wake(key("b"))
        await until(scheduler, "b", "idle")
        assert drives.begun == ["b"]


async def test_tenants_take_turns() -> None:
    scheduler = InlineScheduler(SystemClock())
    for run in ("a1", "a2", "a3", "b1", "b2"):
        await scheduler.wake(key(run, run[0]))
    async with served(scheduler, slots=1) as drives:
        await until(scheduler, "a3", "idle", "a")
        assert drives.begun == ["a1", "b1", "a2", "b2", "a3"]


async def test_a_scheduler_is_served_once_at_a_time() -> None:
    scheduler = InlineScheduler(SystemClock())
    async with served(scheduler) as drives:
        await anyio.lowlevel.checkpoint()
        with pytest.raises(UsageError):
            await scheduler.serve(drives, slots=1, limits={})


async def test_a_clock_that_jumps_is_noticed() -> None:
    clock = SetClock()
    scheduler = InlineScheduler(clock)
    async with served(scheduler) as drives:
        await scheduler.wake(key("a"), at=clock.time + timedelta(days=3))
        clock.time += timedelta(days=4)
        await wait_begun(drives, 1)


async def test_replaced_timers_do_not_pile_up() -> None:
    clock, fired = SetClock(), list[str]()
    timers = Timers(clock, fired.append)
    for n in range(1000):
        timers.set("a", clock.time + timedelta(seconds=n + 1))
    assert len(timers._heap) <= SPARSE + 3
    timers.start(asyncio.get_running_loop())
    clock.time += timedelta(seconds=999)
    timers.set("b", clock.time)
    await facts.until(lambda: fired == ["b"])
    clock.time += timedelta(seconds=1)
    timers.set("c", clock.time + timedelta(seconds=-1))
    await facts.until(lambda: fired == ["b", "c", "a"])
    timers.stop()


async def test_ten_thousand_timers_and_no_task() -> None:
    clock = SetClock()
    scheduler = InlineScheduler(clock)
    async with served(scheduler) as drives:
        await anyio.lowlevel.checkpoint()
        tasks = len(asyncio.all_tasks())
        for n in range(10_000):
            await scheduler.wake(key(f"run {n}"), at=clock.time + timedelta(hours=1))
        assert len(asyncio.all_tasks()) == tasks
        clock.time += timedelta(hours=2)
        await facts.until(lambda: len(drives.ended) == 10_000)
        await until(scheduler, "run 9999", "idle")
