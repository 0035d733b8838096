"""Workers in processes of their own drive what programs start."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.workers.crew import FOLDERS, all_ended, crew_of, lost, repeated, until
from tests.workers.effects import executions
from tests.workers.shop import Order, Receipt, Ticket, declare, orders
from turnloom import Flow, Loom
from turnloom.adapters.postgres import signals
from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.errors import UsageError
from turnloom.log.spec import RunKey

pytestmark = pytest.mark.doors


async def test_a_killed_worker_changes_nothing(postgres_url: str, tmp_path: Path) -> None:
    """Two workers; one is killed in the middle of ten runs, and everything ends."""
    with crew_of(2, postgres_url, tmp_path, seconds=0.3) as crew:
        async with crew.loom() as app:
            runs = [await app.start(orders, Order(number=n)) for n in range(10)]
            await until(lambda: len(executions(crew.effects)) >= 5)
            crew.workers[0].kill()
            outcomes = [await run.outcome() for run in runs]
            assert {outcome.status for outcome in outcomes} == {"finished"}
            logs = await all_ended(app)
            assert (repeated(crew, logs), lost(crew, logs)) == ([], [])


async def test_all_forms_from_a_program_that_drives_nothing(
    postgres_url: str, tmp_path: Path
) -> None:
    with crew_of(2, postgres_url, tmp_path) as crew:
        async with crew.loom() as app:
            board = declare(app)
            outcome = await app.run(orders, Order(number=7))
            assert (outcome.status, len(outcome.state.done)) == ("finished", 4)
            talk = await app.start(FOLDERS / "Relay")
            assert (await talk.finished()).kind == "run.finished"
            for number in range(3):
                await board.publish(Ticket(number=number))
            await board.run_until_idle(60)
            items, total = await board.query_artifacts(count=True)
            receipts = [item for item in items if item.type.endswith(Receipt.__name__)]
            assert (total, len(receipts)) == (9, 3)
            made = await board.invoke("clerk", Ticket(number=9))
            assert len(made) == 1
            logs = await all_ended(app)
            assert (repeated(crew, logs), lost(crew, logs)) == ([], [])
            assert all(len(each) == 1 for each in executions(crew.effects).values())


async def test_a_stopped_worker_appends_nothing_and_repeats_nothing(
    postgres_url: str, tmp_path: Path
) -> None:
    with crew_of(1, postgres_url, tmp_path, seconds=0.5, lease=1.0) as crew:
        async with crew.loom() as app:
            runs = [await app.start(orders, Order(number=n)) for n in range(4)]
            await until(lambda: len(executions(crew.effects)) >= 4)
            stopped = crew.workers[0]
            stopped.send_signal(signal.SIGSTOP)
            crew.start()
            outcomes = [await run.outcome() for run in runs]
            assert {outcome.status for outcome in outcomes} == {"finished"}
            logs, began = await all_ended(app), executions(crew.effects)
            stopped.send_signal(signal.SIGCONT)
            after = await app.run(orders, Order(number=5))
            assert after.status == "finished"
            await asyncio.sleep(1)  # what a woken process would do by mistake, it would do at once
            again = await all_ended(app)
            assert {run: again[run] for run in logs} == logs
            now = executions(crew.effects)
            assert {key: now[key] for key in began} == began
            assert (repeated(crew, again), lost(crew, again)) == ([], [])


async def test_cancel_reaches_a_drive_elsewhere(postgres_url: str, tmp_path: Path) -> None:
    with crew_of(1, postgres_url, tmp_path, seconds=60) as crew:
        async with crew.loom() as app:
            run = await app.start(orders, Order())
            await until(lambda: len(executions(crew.effects)) == 1)
            assert await run.cancel(reason="enough")
            assert (await run.finished()).kind == "run.cancelled"
            assert not await run.cancel()


async def test_cancel_reaches_a_worker_that_hears_no_notification(postgres_url: str) -> None:
    """By its next poll, which is a second away at most."""
    assert signals.POLL_DEAF < signals.POLL <= 1
    begun, never = asyncio.Event(), asyncio.Event()

    async def wait(order: Order) -> dict[str, Any]:
        begun.set()
        await never.wait()
        return {}

    flow = Flow("waits", Order).start_with(wait).finally_(same, name="end")
    async with (
        one_worker(postgres_url, flow, listen_url="postgresql://127.0.0.1:9/nowhere"),
        shared(postgres_url) as app,
    ):
        run = await app.start(flow, Order())
        await begun.wait()
        assert await run.cancel()
        assert (await run.finished()).kind == "run.cancelled"


async def test_a_worker_that_ends_finishes_or_gives_back(postgres_url: str, tmp_path: Path) -> None:
    with crew_of(1, postgres_url, tmp_path, seconds=0.3) as crew:
        async with crew.loom() as app:
            first = await app.start(orders, Order())
            await until(lambda: len(executions(crew.effects)) == 1)
            crew.workers[0].send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(crew.workers[0].wait, 60) == 0
            assert (await first.outcome()).status == "finished"  # within its grace
            second = await app.start(orders, Order())
            impatient = crew.start("--grace", "0.1")
            await until(lambda: len(executions(crew.effects)) == 5)
            os.kill(impatient.pid, signal.SIGTERM)
            assert await asyncio.to_thread(impatient.wait, 60) == 0
            crew.start()
            assert (await second.outcome()).status == "finished"
            logs = await all_ended(app)
            assert (repeated(crew, logs), lost(crew, logs)) == ([], [])


async def test_a_worker_without_the_code_leaves_the_run_to_others(
    postgres_url: str, tmp_path: Path
) -> None:
    (tmp_path / "bare.py").write_text("from turnloom import Loom\n\napp = Loom()\n")
    with crew_of(1, postgres_url, tmp_path, app="bare:app") as crew:
        async with crew.loom() as app:
            runs = [await app.start(orders, Order()) for _ in range(2)]
            await until(lambda: "left to other workers" in crew.logs())
            crew.app = "tests.workers.shop:app"
            crew.start()
            for run in runs:
                assert (await run.outcome()).status == "finished"
            assert crew.logs().count("left to other workers") == 1


def undo(order: Order) -> None:
    """Nothing is left of it."""


async def test_a_stranded_run_is_cancelled_without_its_code(postgres_url: str) -> None:
    """By a program that lacks the code too; what it cannot undo is on record."""
    flow = (
        Flow("lost", Order)
        .start_with(same, compensate=undo)
        .await_approval("local")
        .finally_(same, name="end")
    )
    async with one_worker(postgres_url, flow), shared(postgres_url) as app:
        app.register_flow(flow)
        run = await app.start(flow, Order())
        assert (await run.outcome()).status == "waiting"
    scheduler = ProcrastinateScheduler(postgres_url, stranded=0.1)
    async with (
        one_worker(postgres_url),
        Loom(store=postgres_url, scheduler=scheduler) as app,
    ):
        run = app.handle(run.id)
        await scheduler.wake(RunKey("local", run.id))
        async with asyncio.timeout(60):
            while (await run.summary()).status != "stranded":  # noqa: ASYNC110 - the worker refuses it
                await asyncio.sleep(0.02)
        assert [each.run for each in await app.runs(status="stranded")] == [run.id]
        assert await app.runs(status="waiting") == []
        assert await run.cancel(reason="gone")
        assert (await run.finished()).kind == "run.cancelled"
        (left,) = await run.not_undone()
        assert left.step == "same"
        assert await scheduler.status(RunKey("local", run.id)) == "idle"
        assert (await run.summary()).status == "cancelled"
        assert not await run.cancel()
    await scheduler.aclose()


def shared(url: str, **settings: Any) -> Loom:
    return Loom(store=url, scheduler="procrastinate", lease=30.0, **settings)


@asynccontextmanager
async def one_worker(url: str, *flows: Flow[Any], **settings: Any) -> AsyncGenerator[None]:
    """A worker in this process."""
    async with shared(url, **settings) as worker:
        for flow in flows:
            worker.register_flow(flow)
        working = asyncio.ensure_future(worker.serving.work(4))
        try:
            yield
        finally:
            working.cancel()
            await asyncio.wait({working})


async def test_answers_retries_and_forks_from_a_program_that_drives_nothing(
    postgres_url: str,
) -> None:
    fails = [True]

    def unsure(order: Order) -> dict[str, Any]:
        if fails:
            raise ValueError("not yet")
        return {"number": order.number + 1}

    flow = Flow("asks", Order).start_with(unsure).await_approval("local").finally_(same)
    async with one_worker(postgres_url, flow), shared(postgres_url) as app:
        app.register_flow(flow)
        run = await app.start(flow, Order(number=1))
        assert (await run.outcome()).status == "failed"
        fails.clear()
        await run.retry()
        waiting = await run.outcome()
        assert (waiting.status, waiting.state.number) == ("waiting", 2)
        (question,) = await run.questions()
        position = (await app.history.events(run.id))[-1].seq
        assert await run.answer(question.id, "approve") is not None
        assert (await run.outcome()).status == "finished"
        fork = await run.fork(position)
        assert (await fork.outcome()).status == "waiting"
        assert await fork.cancel()
        assert (await fork.finished()).kind == "run.cancelled"


def same(order: Order) -> dict[str, Any]:
    return {}


class Forgetful(ProcrastinateScheduler):
    """Misses every wake, as a program that dies right after its commit."""

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Do nothing."""


async def test_a_missed_wake_is_made_up_for(postgres_url: str) -> None:
    quick = Flow("quick", Order).start_with(same).finally_(same, name="end")
    scheduler = Forgetful(postgres_url)
    async with Loom(store=postgres_url, scheduler=scheduler) as app:
        run = await app.start(quick, Order())
        assert await scheduler.status(RunKey("local", run.id)) == "idle"
        async with one_worker(postgres_url, quick, sweep=0.2):
            assert (await run.outcome()).status == "finished"
    await scheduler.aclose()


async def test_schedulers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await Loom(store="memory").serving.work()
    assert caught.value.code == UsageError.code
    with pytest.raises(UsageError) as caught:
        await Loom(store=tmp_path / "runs.db", scheduler="procrastinate").runs()
    assert caught.value.code == UsageError.code
