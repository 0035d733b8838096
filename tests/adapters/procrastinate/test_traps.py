"""What was found wrong with Procrastinate when it was tried, each closed."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from tests.support.servers import PostgresServer, free_port
from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.adapters.procrastinate.database import JobDatabase
from turnloom.adapters.procrastinate.worker import BEATS
from turnloom.errors import StoreUnavailable
from turnloom.log.spec import RunKey
from turnloom.testing.contracts import facts
from turnloom.testing.contracts.facts import key
from turnloom.testing.contracts.scheduler import served, until, wait_begun

pytestmark = pytest.mark.doors

LEASE = 1.0
PROGRAM = Path(__file__).with_name("worker_program.py")
HOUR = timedelta(hours=1)


@asynccontextmanager
async def scheduling(
    url: str, poll: float = 1.0, *, is_deaf: bool = False
) -> AsyncGenerator[ProcrastinateScheduler]:
    """A scheduler; one that is deaf hears no notification."""
    listen_url = f"postgresql://nobody@127.0.0.1:{free_port()}/nowhere" if is_deaf else None
    scheduler = ProcrastinateScheduler(url, listen_url=listen_url, lease=LEASE, poll=poll)
    yield scheduler
    await scheduler.aclose()


@contextmanager
def worker(url: str, slots: int = 4) -> Generator[subprocess.Popen[str]]:
    """A worker in a process of its own, which serves."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), url, str(LEASE), str(slots)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert says(process) == "serves"
    yield process
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.communicate()


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def run_sql(url: str, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, arguments)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def count(url: str, table: str) -> int:
    return run_sql(url, f"SELECT count(*) FROM {table}")[0][0]


async def test_drives_of_a_killed_worker_are_taken_over(postgres_url: str) -> None:
    async with scheduling(postgres_url) as scheduler:
        with worker(postgres_url) as doomed:
            await scheduler.wake(key("a-60"))
            assert says(doomed) == "begins a-60"
            await scheduler.wake(key("a-60"))  # a wake-up that waits when its worker dies
            doomed.kill()
            async with served(scheduler) as drives:
                await facts.until(lambda: bool(drives.begun))
                await until(scheduler, "a-60", "idle")
                assert 1 <= len(drives.begun) <= 2
    assert count(postgres_url, "procrastinate_jobs") == 0


# Every heartbeat, and every job that is taken over, by the clock of the server.
NOTES = """
    CREATE TABLE notes (what text, worker bigint, at timestamptz DEFAULT clock_timestamp());
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_TABLE_NAME = 'procrastinate_workers' THEN
            INSERT INTO notes VALUES ('beat', NEW.id);
        ELSIF OLD.status = 'doing' AND NEW.status = 'todo' THEN
            INSERT INTO notes VALUES ('taken over', OLD.worker_id);
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER note_beats BEFORE UPDATE ON procrastinate_workers
        FOR EACH ROW EXECUTE FUNCTION note();
    CREATE TRIGGER note_jobs BEFORE UPDATE ON procrastinate_jobs
        FOR EACH ROW EXECUTE FUNCTION note();
"""


async def test_a_takeover_waits_for_the_lease_and_a_heartbeat(postgres_url: str) -> None:
    """Less than two leases, as heartbeats are a fraction of one; however busy the machine is, it
    is the first heartbeat after the lease that takes over, or the next if that is late itself."""
    async with scheduling(postgres_url) as scheduler:
        await scheduler.status(key("a"))
        run_sql(postgres_url, NOTES)
        with worker(postgres_url) as doomed:
            await scheduler.wake(key("a-60"))
            assert says(doomed) == "begins a-60"
            async with served(scheduler) as drives:
                await facts.until(lambda: count(postgres_url, "procrastinate_workers") == 2)
                doomed.kill()
                await wait_begun(drives, 1)
                await until(scheduler, "a-60", "idle")
    ((dead, taken),) = run_sql(postgres_url, "SELECT worker, at FROM notes WHERE what <> 'beat'")
    ((last,),) = run_sql(
        postgres_url, "SELECT max(at) FROM notes WHERE worker = %s AND at < %s", dead, taken
    )
    stale = last + timedelta(seconds=LEASE)
    assert taken >= stale
    beats = run_sql(
        postgres_url,
        "SELECT at FROM notes WHERE what = 'beat' AND worker <> %s AND at BETWEEN %s AND %s",
        dead,
        stale,
        taken,
    )
    assert len(beats) <= 2
    assert 2 / BEATS < 1


async def test_cancel_needs_no_poll(postgres_url: str) -> None:
    """A notification interrupts a drive of another process."""
    async with (
        scheduling(postgres_url, 3600) as mine,
        scheduling(postgres_url, 3600) as other,
        served(other) as drives,
    ):
        for run in ("x", "y", "z"):  # it looks when it begins to serve and to listen, not for `z`
            await mine.wake(key(run))
            await facts.until(lambda run=run: run in drives.ended)
        drives.hold("a")
        await mine.wake(key("a"))
        await wait_begun(drives, 4)
        await mine.cancel(key("a"))
        await facts.until(lambda: "a" in drives.ended)
        await until(mine, "a", "idle")


async def test_a_cancel_that_was_not_heard_is_found(postgres_url: str) -> None:
    """A worker whose connection for notifications is lost finds it by its poll."""
    async with (
        scheduling(postgres_url, 3600) as mine,
        scheduling(postgres_url, 0.1, is_deaf=True) as other,
        served(other) as drives,
    ):
        drives.hold("a")
        await mine.wake(key("a"))
        await wait_begun(drives, 1)
        await mine.cancel(key("a"))
        await facts.until(lambda: drives.ended == ["a"])
        await until(mine, "a", "idle")


async def test_a_stopped_worker_leaves_what_others_took_over(postgres_url: str) -> None:
    """The end of its drive, when it continues, does not end the drive of the other."""
    async with scheduling(postgres_url) as scheduler:
        with worker(postgres_url, slots=1) as stopped:
            await scheduler.wake(key("a-0.5"))
            assert says(stopped) == "begins a-0.5"
            stopped.send_signal(signal.SIGSTOP)
            async with served(scheduler, slots=1) as drives:
                drives.hold("a-0.5")
                await wait_begun(drives, 1)
                stopped.send_signal(signal.SIGCONT)
                assert await asyncio.to_thread(says, stopped) == "ends a-0.5"
                await scheduler.wake(key("b"))  # only the other has a free slot, after that end
                assert await asyncio.to_thread(says, stopped) == "begins b"
                await until(scheduler, "b", "idle")
                assert await scheduler.status(key("a-0.5")) == "driving"
                drives.release("a-0.5")
                await until(scheduler, "a-0.5", "idle")


async def test_a_takeover_meets_a_waiting_job(postgres_url: str) -> None:
    """The waiting job does the work of the one that died."""
    async with scheduling(postgres_url) as scheduler:
        with worker(postgres_url) as doomed:
            await scheduler.wake(key("a-60"))
            assert says(doomed) == "begins a-60"
            doomed.kill()
        run_sql(
            postgres_url,
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)"
            " SELECT queue_name, task_name, lock, queueing_lock, args FROM procrastinate_jobs",
        )
        async with served(scheduler) as drives:
            await wait_begun(drives, 1)
            await until(scheduler, "a-60", "idle")
    assert count(postgres_url, "procrastinate_jobs") == 0


async def test_a_cancelled_drive_of_a_dead_worker_is_not_begun_again(postgres_url: str) -> None:
    async with scheduling(postgres_url) as scheduler:
        with worker(postgres_url) as doomed:
            await scheduler.wake(key("a-60"))
            assert says(doomed) == "begins a-60"
            doomed.send_signal(signal.SIGSTOP)
            await scheduler.cancel(key("a-60"))
            doomed.kill()
        async with served(scheduler) as drives:
            await until(scheduler, "a-60", "idle")
            assert drives.begun == []
    assert count(postgres_url, "procrastinate_jobs") == 0


async def test_parked_timers_do_not_slow_the_queue(postgres_url: str) -> None:
    """They are no jobs: the queue holds what can be driven now, and nothing else."""
    async with scheduling(postgres_url) as scheduler:
        later = datetime.now(UTC) + HOUR  # noqa: TID251 - the database compares it with its clock
        await scheduler.wake(key("first"), at=later)
        run_sql(
            postgres_url,
            "INSERT INTO turnloom_timers SELECT 'tenant', 'run ' || n, %s"
            " FROM generate_series(1, 20000) AS n",
            later,
        )
        assert count(postgres_url, "procrastinate_jobs") == 0
        plan = run_sql(
            postgres_url, "EXPLAIN SELECT min(due) FROM turnloom_timers WHERE due <= now()"
        )
        assert any("turnloom_timers_due" in line for (line,) in plan)
        async with served(scheduler) as drives:
            for n in range(20):
                await scheduler.wake(key(f"run {n}", "tenant"))
            await wait_begun(drives, 20)
            await until(scheduler, "run 19", "idle", "tenant")
            assert await scheduler.status(key("run 500", "tenant")) == "timer"


async def test_many_timers_at_one_instant(postgres_url: str) -> None:
    async with scheduling(postgres_url) as scheduler:
        await scheduler.wake(key("x"), at=datetime.now(UTC) + HOUR)  # noqa: TID251 - as above
        run_sql(
            postgres_url,
            "INSERT INTO turnloom_timers SELECT 't' || n %% 3, 'run ' || n, now()"
            " FROM generate_series(1, 300) AS n",
        )
        async with served(scheduler, slots=50) as drives:
            await facts.until(lambda: len(drives.ended) >= 300)
            await until(scheduler, "run 300", "idle", "t0")
            assert len(drives.begun) == 300


async def test_the_next_drive_does_not_wait_for_a_poll(postgres_url: str) -> None:
    """Neither of the same run nor of another one: with no poll at all, all are driven."""
    async with scheduling(postgres_url, 3600) as scheduler, served(scheduler, slots=1) as drives:
        drives.hold("a")
        await scheduler.wake(key("a"))
        await wait_begun(drives, 1)
        for run in ("a", "b", "c"):
            await scheduler.wake(key(run))
        drives.release("a")
        await wait_begun(drives, 4)
        await until(scheduler, "c", "idle")


async def test_the_next_drive_needs_no_notification(postgres_url: str) -> None:
    """The end of a drive lets its worker look at the queue, also while it has free slots."""
    async with (
        scheduling(postgres_url, 3600, is_deaf=True) as scheduler,
        served(scheduler, slots=4) as drives,
    ):
        drives.hold("a")
        await scheduler.wake(key("a"))
        await wait_begun(drives, 1)
        run_sql(postgres_url, "SELECT turnloom_wake(%s, 'a')", facts.TENANT)
        drives.release("a")
        await wait_begun(drives, 2)
        await until(scheduler, "a", "idle")


async def test_the_tables_do_not_grow(postgres_url: str) -> None:
    async with scheduling(postgres_url) as scheduler, served(scheduler) as drives:
        drives.errors["run 7"] = ValueError("a drive that fails")
        for n in range(30):
            await scheduler.wake(key(f"run {n}"))
            await scheduler.wake(key(f"run {n}"), at=datetime.now(UTC))  # noqa: TID251 - as above
        for n in range(30):
            await until(scheduler, f"run {n}", "idle")
    for table in (
        "procrastinate_jobs",
        "procrastinate_events",
        "turnloom_queue",
        "turnloom_timers",
    ):
        assert count(postgres_url, table) == 0


async def test_workers_that_died_are_forgotten(postgres_url: str) -> None:
    async with scheduling(postgres_url) as scheduler, served(scheduler):
        await scheduler.status(key("a"))
        dead = "procrastinate_workers WHERE last_heartbeat < now() - interval '30 minutes'"
        run_sql(
            postgres_url,
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')",
        )
        assert count(postgres_url, dead) == 1
        await facts.until(lambda: count(postgres_url, dead) == 0)


async def test_thousands_of_one_tenant_delay_another_by_one_drive(postgres_url: str) -> None:
    """Most of them are not even jobs, so that the job table stays small."""
    async with scheduling(postgres_url) as scheduler:
        await scheduler.status(key("a"))
        run_sql(
            postgres_url,
            "INSERT INTO turnloom_queue (tenant, run)"
            " SELECT 'big', 'run ' || n FROM generate_series(1, 10000) AS n",
        )
        async with served(scheduler, slots=1) as drives:
            drives.hold("run 1")
            await scheduler.wake(key("run 1", "big"))
            await wait_begun(drives, 1)
            drives.hold("first", "second")
            for run in ("first", "second"):
                await scheduler.wake(key(run, "small"))
            drives.release("run 1")
            await facts.until(lambda: "first" in drives.begun)
            assert len(drives.begun) <= 3
            drives.release("first")
            await facts.until(lambda: "second" in drives.begun)
            assert len(drives.begun) <= 5
            assert count(postgres_url, "procrastinate_jobs") <= 1002
            drives.release("second")


async def test_a_cut_connection_loses_no_drive(postgres_url: str) -> None:
    """Also when it is cut after a job was taken, and before its worker learned of it."""
    async with scheduling(postgres_url) as scheduler, served(scheduler, slots=2) as drives:
        await scheduler.wake(key("a"))
        await until(scheduler, "a", "idle")
        drives.hold("b")
        await scheduler.wake(key("b"))
        await facts.until(lambda: "b" in drives.begun)
        ((mine,),) = run_sql(postgres_url, "SELECT id FROM procrastinate_workers")
        run_sql(
            postgres_url,
            "INSERT INTO turnloom_queue (tenant, run, job) SELECT %s, 'c', id FROM"
            " unnest(procrastinate_defer_jobs_v1(ARRAY[ROW('elsewhere', 'turnloom.drive', 0,"
            " 'c', 'c', jsonb_build_object('tenant', %s::text, 'run', 'c'), NULL)"
            "::procrastinate_job_to_defer_v1])) AS id",
            facts.TENANT,
            facts.TENANT,
        )
        run_sql(
            postgres_url,
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s, queue_name ="
            " 'turnloom' WHERE lock = 'c'",
            mine,
        )
        run_sql(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        await facts.until(lambda: "c" in drives.begun)
        drives.release("b")
        for run in ("b", "c"):
            await until(scheduler, run, "idle")
        await scheduler.wake(key("d"))
        await until(scheduler, "d", "idle")
        assert sorted(drives.ended) == ["a", "b", "c", "d"]


CUT_LISTENER = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%%'
"""


@pytest.mark.parametrize(("stop", "most"), [(signal.SIGINT, 1), (signal.SIGQUIT, 2)])
async def test_a_restarted_server_loses_no_drive(
    own_server: PostgresServer, stop: signal.Signals, most: int
) -> None:
    """One that crashes may forget that a drive was begun, as that commits without waiting for the
    disk; then it is begun once more."""
    async with scheduling(own_server.url()) as scheduler, served(scheduler) as drives:
        drives.hold("a")
        await scheduler.wake(key("a"))
        await scheduler.wake(key("b"), at=datetime.now(UTC) + HOUR)  # noqa: TID251 - as above
        await wait_begun(drives, 1)
        await asyncio.to_thread(own_server.stop, stop)
        drives.release("a")
        await facts.until(lambda: drives.ended == ["a"])
        with pytest.raises(StoreUnavailable) as caught:
            await JobDatabase(own_server.url(), timeout=0.2).call("SELECT 1")
        assert caught.value.code == StoreUnavailable.code
        await asyncio.to_thread(own_server.start)
        await wake(scheduler, key("c"))
        await facts.until(lambda: "c" in drives.ended)
        await until(scheduler, "a", "idle")
        assert await scheduler.status(key("b")) == "timer"
        assert 1 <= drives.begun.count("a") <= most


async def test_a_cancelled_task_ends_however_many_share_the_connections(postgres_url: str) -> None:
    """A cancel that meets the moment in which a connection becomes free is heeded too."""
    database = JobDatabase(postgres_url)
    await database.call("SELECT 1")
    asking: list[asyncio.Task[None]] = []

    async def ask_for_ever() -> None:
        while True:
            await database.call("SELECT 1")
            while asking:  # one of them just got this connection
                asking.pop().cancel()

    for _ in range(20):
        asking += (asyncio.ensure_future(ask_for_ever()) for _ in range(30))
        _, going = await asyncio.wait([*asking], timeout=facts.PATIENCE)
        assert not going
    await database.aclose()


async def test_a_wake_before_the_worker_listens_is_not_missed(postgres_url: str) -> None:
    """Nor one while its connection is lost: when it listens again, it looks at the queue."""
    async with scheduling(postgres_url, 3600) as scheduler, served(scheduler) as drives:
        await scheduler.wake(key("a"))
        await wait_begun(drives, 1)
        await until(scheduler, "a", "idle")
        await facts.until(lambda: run_sql(postgres_url, CUT_LISTENER) == [(True,)])
        run_sql(postgres_url, "SELECT turnloom_wake(%s, 'b')", facts.TENANT)
        await facts.until(lambda: "b" in drives.begun)
        await until(scheduler, "b", "idle")


async def wake(scheduler: ProcrastinateScheduler, run: RunKey) -> None:
    """Wake a run as soon as the server is back."""
    with anyio.fail_after(facts.PATIENCE):
        while True:
            try:
                await scheduler.wake(run)
                return
            except StoreUnavailable:
                await anyio.sleep(0.1)


async def test_tables_of_another_release_are_refused(postgres_url: str) -> None:
    async with scheduling(postgres_url) as scheduler:
        await scheduler.wake(key("a"))
    run_sql(postgres_url, "UPDATE turnloom_schema SET version = 99 WHERE part = 'scheduler'")
    async with scheduling(postgres_url) as scheduler:
        with pytest.raises(StoreUnavailable) as caught:
            await scheduler.wake(key("a"))
        assert caught.value.code == StoreUnavailable.code


async def test_several_processes_create_the_tables_at_once(postgres_url: str) -> None:
    async with anyio.create_task_group() as tasks:
        databases = [JobDatabase(postgres_url) for _ in range(4)]
        for each in databases:
            tasks.start_soon(each.call, "SELECT count(*) FROM turnloom_queue")
    for each in databases:
        await each.aclose()
