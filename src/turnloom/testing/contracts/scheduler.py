"""Contract suite for schedulers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta

import anyio

from turnloom.adapters.system import SystemClock
from turnloom.errors import CodeMissing
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import EVERY_TENANT, Drive, Scheduler, SharedScheduler, Status
from turnloom.runtime.spec import LimitWait, tenant_limit
from turnloom.testing.contracts import facts
from turnloom.testing.contracts.facts import key

SOON = timedelta(seconds=0.2)
NEVER = timedelta(hours=1)
NO_LIMITS: Mapping[str, int] = {}


class Drives:
    """A drive function that records its calls, and can hold runs until they are released."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.most = 0
        self.timers: dict[str, datetime] = {}
        self.errors: dict[str, Exception] = {}
        self.limited: dict[str, LimitWait] = {}
        self._held: dict[str, anyio.Event] = {}
        self._driving: list[str] = []

    def hold(self, *runs: str) -> None:
        """Hold the next drives of these runs."""
        self._held.update({run: anyio.Event() for run in runs})

    def release(self, *runs: str) -> None:
        """Release the drives of these runs."""
        for run in runs:
            self._held.pop(run).set()

    async def __call__(self, of: RunKey, held: LimitWait | None = None, /) -> datetime | None:
        """Drive the run."""
        run = of.id
        if held is not None:
            self.limited[run] = held
        assert run not in self._driving, f"Run {run!r} is driven twice at once."
        self.begun.append(run)
        self._driving.append(run)
        self.most = max(self.most, len(self._driving))
        try:
            if run in self._held:
                await self._held[run].wait()
            if run in self.errors:
                raise self.errors.pop(run)
            return self.timers.pop(run, None)
        finally:
            self._driving.remove(run)
            self.ended.append(run)


class SchedulerContract:
    """The suite for `Scheduler`. `soon` is how far ahead timers are set: longer than a call
    takes."""

    soon = SOON

    def fresh(self) -> AbstractAsyncContextManager[Scheduler]:
        """A scheduler that is not serving yet."""
        raise NotImplementedError

    async def test_a_wake_drives_once(self) -> None:
        """A woken run is driven once, and is idle afterwards."""
        async with self.fresh() as scheduler:
            assert await scheduler.status(key("a")) == "idle"
            async with served(scheduler) as drives:
                await scheduler.wake(key("a"))
                await until(scheduler, "a", "idle")
                assert drives.ended == ["a"]

    async def test_wakes_before_serving_are_kept_and_coalesced(self) -> None:
        """Wakes before serving are kept, and lead to one drive per run."""
        async with self.fresh() as scheduler:
            for _ in range(3):
                await scheduler.wake(key("a"))
            await scheduler.wake(key("b"))
            assert await scheduler.status(key("a")) == "queued"
            async with served(scheduler) as drives:
                await until(scheduler, "a", "idle")
                await until(scheduler, "b", "idle")
                assert sorted(drives.ended) == ["a", "b"]

    async def test_wakes_during_a_drive_give_exactly_one_more(self) -> None:
        """Any number of wakes during a drive lead to exactly one more drive."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            drives.hold("a")
            await scheduler.wake(key("a"))
            await wait_begun(drives, 1)
            for _ in range(5):
                await scheduler.wake(key("a"))
            assert await scheduler.status(key("a")) == "driving"
            drives.release("a")
            await until(scheduler, "a", "idle")
            assert drives.ended == ["a", "a"]

    async def test_no_more_drives_than_slots(self) -> None:
        """At most `slots` drives run at once, and every run is driven."""
        runs = [f"run {n}" for n in range(6)]
        async with self.fresh() as scheduler, served(scheduler, slots=2) as drives:
            drives.hold(*runs)
            for run in runs:
                await scheduler.wake(key(run))
            for n, run in enumerate(runs):
                await wait_begun(drives, min(n + 2, 6))
                drives.release(run)
            for run in runs:
                await until(scheduler, run, "idle")
            assert sorted(drives.ended) == runs
            assert drives.most == 2

    async def test_a_tenant_stays_below_its_limit(self) -> None:
        """A tenant at its limit waits, without delaying other tenants."""
        async with self.fresh() as scheduler, served(scheduler, limits={"big": 1}) as drives:
            drives.hold("big 1", "big 2", "small")
            for run, tenant in (("big 1", "big"), ("big 2", "big"), ("small", "small")):
                await scheduler.wake(key(run, tenant))
            await wait_begun(drives, 2)
            await anyio.sleep(0.05)
            assert sorted(drives.begun) == ["big 1", "small"]
            assert await scheduler.status(key("big 2", "big")) == "queued"
            (found,) = (await scheduler.limited("big", ["big 1", "big 2", "none"])).items()
            assert (found[0], found[1].reason) == ("big 2", tenant_limit(1))
            assert found[1].seconds >= 0
            assert not await scheduler.limited("small", ["small"])
            drives.release("big 1")
            await wait_begun(drives, 3)
            assert drives.limited.keys() == {"big 2"}
            assert drives.limited["big 2"].reason == tenant_limit(1)
            assert drives.limited["big 2"].seconds > 0
            assert not await scheduler.limited("big", ["big 2"])
            drives.release("big 2", "small")
            await until(scheduler, "big 2", "idle", "big")

    async def test_a_limit_holds_for_what_was_woken_before(self) -> None:
        """Nobody served then, so nobody knew of the limit."""
        async with self.fresh() as scheduler:
            for n in range(5):
                await scheduler.wake(key(f"big {n}", "big"))
            async with served(scheduler, limits={"big": 2}) as drives:
                drives.hold(*(f"big {n}" for n in range(5)))
                await wait_begun(drives, 2)
                await anyio.sleep(0.05)
                assert drives.begun == ["big 0", "big 1"]
                assert (await scheduler.limited("big", ["big 1", "big 2"])).keys() == {"big 2"}
                drives.release("big 0")
                await facts.until(lambda: "big 2" in drives.begun)
                drives.release(*(f"big {n}" for n in range(1, 5)))
                await facts.until(lambda: len(drives.ended) == 5)

    async def test_a_limit_of_every_tenant_holds_for_those_that_are_not_named(self) -> None:
        """The limit `*` applies to all tenants without a limit."""
        limits = {EVERY_TENANT: 1, "big": 2}
        async with self.fresh() as scheduler, served(scheduler, limits=limits) as drives:
            runs = [(f"{tenant} {n}", tenant) for tenant in ("big", "small") for n in (1, 2, 3)]
            drives.hold(*(run for run, _ in runs))
            for run, tenant in runs:
                await scheduler.wake(key(run, tenant))
            await wait_begun(drives, 3)
            assert sorted(drives.begun) == ["big 1", "big 2", "small 1"]
            for run, tenant in runs:
                drives.release(run)
                await until(scheduler, run, "idle", tenant)

    async def test_tenants_take_turns(self) -> None:
        """The first run of a tenant does not wait for all runs of another."""
        many = [f"big {n}" for n in range(100)]
        async with self.fresh() as scheduler, served(scheduler, slots=1) as drives:
            drives.hold(many[0])
            for run in many:
                await scheduler.wake(key(run, "big"))
            await wait_begun(drives, 1)
            await scheduler.wake(key("small", "small"))
            drives.release(many[0])
            await until(scheduler, "small", "idle", "small")
            assert drives.begun.index("small") <= 2
            for run in many:
                await until(scheduler, run, "idle", "big")

    async def test_a_timer_wakes_at_its_instant(self) -> None:
        """A run with a timer is driven at its instant, not before."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            at = SystemClock().now() + self.soon
            await scheduler.wake(key("a"), at=at)
            assert await scheduler.status(key("a")) == "timer"
            assert not drives.begun
            await wait_begun(drives, 1)
            assert SystemClock().now() >= at
            await until(scheduler, "a", "idle")

    async def test_a_run_has_one_timer(self) -> None:
        """A later timer replaces an earlier one, and an immediate wake does not wait for it."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            now = SystemClock().now()
            await scheduler.wake(key("a"), at=now + NEVER)
            await scheduler.wake(key("a"), at=now + self.soon)
            await wait_begun(drives, 1)
            await until(scheduler, "a", "idle")
            await scheduler.wake(key("b"), at=now + NEVER)
            await scheduler.wake(key("b"))
            await wait_begun(drives, 2)
            await until(scheduler, "b", "idle")

    async def test_an_instant_in_the_past_is_now(self) -> None:
        """A timer in the past drives the run at once."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            await scheduler.wake(key("a"), at=SystemClock().now() - NEVER)
            await wait_begun(drives, 1)
            await until(scheduler, "a", "idle")

    async def test_a_drive_gives_the_next_timer(self) -> None:
        """The instant that a drive returns is the run's next timer."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            drives.timers["a"] = SystemClock().now() + self.soon
            drives.timers["b"] = SystemClock().now() + NEVER
            await scheduler.wake(key("a"))
            await scheduler.wake(key("b"))
            await wait_begun(drives, 3)
            await until(scheduler, "a", "idle")
            await until(scheduler, "b", "timer")
            assert drives.ended.count("a") == 2

    async def test_cancel_drops_queue_and_timer(self) -> None:
        """Cancelling a run drops its queued wake and its timer."""
        async with self.fresh() as scheduler:
            await scheduler.wake(key("a"))
            await scheduler.wake(key("b"), at=SystemClock().now() + self.soon)
            for run in ("a", "b", "unknown"):
                await scheduler.cancel(key(run))
                assert await scheduler.status(key(run)) == "idle"
            async with served(scheduler) as drives:
                await scheduler.wake(key("c"))
                await anyio.sleep(2 * self.soon.total_seconds())
                assert drives.begun == ["c"]
                await scheduler.wake(key("a"))
                await wait_begun(drives, 2)
                await until(scheduler, "a", "idle")

    async def test_cancel_interrupts_only_its_drive(self) -> None:
        """Cancelling a run interrupts only its own drive, and the run can be woken again."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            drives.hold("a", "b")
            for run in ("a", "b"):
                await scheduler.wake(key(run))
            await wait_begun(drives, 2)
            await scheduler.wake(key("a"))
            await scheduler.cancel(key("a"))
            await until(scheduler, "a", "idle")
            assert drives.ended == ["a"]
            drives.release("a", "b")
            await until(scheduler, "b", "idle")
            await scheduler.wake(key("a"))
            await wait_begun(drives, 3)
            await until(scheduler, "a", "idle")

    async def test_a_failing_drive_does_not_stop_others(self) -> None:
        """A drive that raises leaves its run idle, and other runs are driven."""
        async with self.fresh() as scheduler, served(scheduler) as drives:
            drives.errors["a"] = ValueError("a drive that fails")
            await scheduler.wake(key("a"))
            await scheduler.wake(key("b"))
            await wait_begun(drives, 2)
            await until(scheduler, "a", "idle")
            await scheduler.wake(key("a"))
            await wait_begun(drives, 3)
            await until(scheduler, "a", "idle")

    async def test_the_end_of_serving_interrupts_and_waits(self) -> None:
        """Cancelling `serve` interrupts all drives and waits for them."""
        async with self.fresh() as scheduler:
            async with served(scheduler) as drives:
                drives.hold("a", "b")
                for run in ("a", "b"):
                    await scheduler.wake(key(run))
                await wait_begun(drives, 2)
            assert sorted(drives.ended) == ["a", "b"]

    async def test_draining_begins_nothing_and_waits(self) -> None:
        """A draining scheduler finishes its drives, and begins none; the next one does."""
        async with self.fresh() as scheduler:
            async with served(scheduler, slots=2) as drives:
                drives.hold("a")
                await scheduler.wake(key("a"))
                await wait_begun(drives, 1)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(scheduler.drain)
                    await anyio.wait_all_tasks_blocked()
                    await scheduler.wake(key("b"))
                    assert not drives.ended
                    drives.release("a")
                assert drives.ended == drives.begun == ["a"]
                assert await scheduler.status(key("b")) == "queued"
            async with served(scheduler) as drives:
                await wait_begun(drives, 1)
                await until(scheduler, "b", "idle")

    async def test_serving_again(self) -> None:
        """Wakes between two calls of `serve` are driven by the second."""
        async with self.fresh() as scheduler:
            async with served(scheduler):
                await scheduler.wake(key("a"))
                await until(scheduler, "a", "idle")
            await scheduler.wake(key("a"))
            async with served(scheduler) as drives:
                await wait_begun(drives, 1)
                await until(scheduler, "a", "idle")


class SharedSchedulerContract:
    """The suite for a `SharedScheduler`, whose drives are spread over several processes. `soon` is
    how far ahead timers are set: longer than a call takes."""

    soon = SOON

    def fresh(self) -> AbstractAsyncContextManager[SharedScheduler]:
        """A scheduler of an empty queue that is not serving yet, and lists runs as stranded within
        seconds."""
        raise NotImplementedError

    def another(self) -> AbstractAsyncContextManager[SharedScheduler]:
        """Another scheduler of the same queue, as another process has it."""
        raise NotImplementedError

    async def test_who_wakes_need_not_drive(self) -> None:
        """A run that one process wakes is driven by another, once."""
        async with self.fresh() as mine, self.another() as other:
            assert mine.drives_elsewhere
            async with served(other) as drives:
                await mine.wake(key("a"))
                await until(mine, "a", "idle")
                assert drives.begun == ["a"]
                await mine.wake(key("b"), at=SystemClock().now() + self.soon)
                assert await other.status(key("b")) == "timer"
                await wait_begun(drives, 2)
                await until(mine, "b", "idle")

    async def test_a_run_is_driven_in_one_place(self) -> None:
        """Wakes during a drive lead to one more drive, after it, wherever that is."""
        async with self.fresh() as mine, self.another() as other:
            async with served(mine) as here, served(other) as there:
                here.hold("a")
                there.hold("a")
                await mine.wake(key("a"))
                await facts.until(lambda: len(here.begun) + len(there.begun) >= 1)
                for scheduler in (mine, other, mine):
                    await scheduler.wake(key("a"))
                await anyio.sleep(0.05)
                assert len(here.begun) + len(there.begun) == 1
                here.release("a")
                there.release("a")
                await until(mine, "a", "idle")
                assert len(here.ended) + len(there.ended) == 2

    async def test_limits_hold_for_all_together(self) -> None:
        """A tenant stays below its limit over all processes, and all its runs are driven."""
        runs = [f"run {n}" for n in range(12)]
        limits = {EVERY_TENANT: 3}
        async with self.fresh() as mine, self.another() as other:
            at_once, most = set[str](), 0

            async def drive(run: RunKey, held: LimitWait | None = None, /) -> None:
                nonlocal most
                at_once.add(run.id)
                most = max(most, len(at_once))
                await anyio.sleep(0.02)
                at_once.discard(run.id)

            async with anyio.create_task_group() as tasks:
                for scheduler in (mine, other):
                    tasks.start_soon(_serve, scheduler, drive, 10, limits)
                for run in runs:
                    await mine.wake(key(run))
                for run in runs:
                    await until(mine, run, "idle")
                tasks.cancel_scope.cancel()
            assert most == 3

    async def test_cancel_reaches_a_drive_elsewhere(self) -> None:
        """Cancelling a run interrupts its drive in another process."""
        async with self.fresh() as mine, self.another() as other, served(other) as drives:
            drives.hold("a", "b")
            for run in ("a", "b"):
                await mine.wake(key(run))
            await wait_begun(drives, 2)
            with anyio.fail_after(facts.PATIENCE):
                await mine.cancel(key("a"))
                await until(mine, "a", "idle")
            assert drives.ended == ["a"]
            drives.release("b")
            await until(mine, "b", "idle")

    async def test_a_process_that_ends_gives_its_drives_back(self) -> None:
        """Drives that the end of `serve` interrupts are begun again elsewhere."""
        async with self.fresh() as mine, self.another() as other:
            async with served(mine) as here:
                here.hold("a")
                await mine.wake(key("a"))
                await wait_begun(here, 1)
            async with served(other) as there:
                await wait_begun(there, 1)
                await until(other, "a", "idle")

    async def test_who_lacks_the_code_leaves_it_to_others(self) -> None:
        """A drive that raises `CodeMissing` is begun where the code is."""
        async with self.fresh() as mine, self.another() as other:
            refused: list[str] = []

            async def refuse(run: RunKey, held: LimitWait | None = None, /) -> None:
                refused.append(run.id)
                raise CodeMissing("flow 'review'", "there is no such flow here")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_serve, mine, refuse, 10, NO_LIMITS)
                await mine.wake(key("a"))
                with anyio.fail_after(facts.PATIENCE):
                    while not (listed := await other.stranded(facts.TENANT)):  # noqa: ASYNC110
                        await anyio.sleep(0.05)
                assert listed == {"a": "flow 'review'"}
                assert await other.stranded("another") == {}
                async with served(other) as drives:
                    await wait_begun(drives, 1)
                    await until(mine, "a", "idle")
                assert await other.stranded(facts.TENANT) == {}
                tasks.cancel_scope.cancel()
            assert refused == ["a"]


@asynccontextmanager
async def served(
    scheduler: Scheduler, *, slots: int = 10, limits: Mapping[str, int] | None = None
) -> AsyncGenerator[Drives, None]:
    """Serve a scheduler while the context is open."""
    drives = Drives()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_serve, scheduler, drives, slots, limits or {})
        yield drives
        tasks.cancel_scope.cancel()


async def until(scheduler: Scheduler, run: str, status: Status, tenant: str = facts.TENANT) -> None:
    """Wait until a run has a status."""
    with anyio.fail_after(facts.PATIENCE):
        while True:
            if await scheduler.status(key(run, tenant)) == status:
                return
            await anyio.sleep(0.002)


async def wait_begun(drives: Drives, count: int) -> None:
    """Wait until exactly this number of drives has begun."""
    await facts.until(lambda: len(drives.begun) >= count)
    assert len(drives.begun) == count


async def _serve(scheduler: Scheduler, drive: Drive, slots: int, limits: Mapping[str, int]) -> None:
    await scheduler.serve(drive, slots=slots, limits=limits)
