"""A run of a flow that ended goes on: what completed stands, what was compensated is done anew."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import pytest

from tests.flow.ledgers import (
    Ledger,
    Trip,
    acting,
    hang,
    journey,
    stumble,
    travel,
    undisturbed,
    undoing,
)
from tests.flow.scenes import Work, note
from tests.support.timed import Timed
from turnloom import Flow, Guards, Loom, Outcome, Path, RunBudget, StepContext, UsageError

ALL = ("plan", "draft", "hotel", "spa", "flight", "bus", "pay")
SOME = ("draft", "hotel", "pay")


def check(outcome: Outcome[Trip], ledger: Ledger, expected: Outcome[Trip], world: Ledger) -> None:
    """The end is that of an undisturbed run, and the world holds the same, done once."""
    assert (outcome.status, outcome.state) == ("finished", expected.state)
    assert ledger.done_twice() == []
    assert ledger.stands() == world.stands()
    assert ledger.reused() == []


async def fail_anywhere(app: Loom, undoable: tuple[str, ...], every: int) -> None:
    """Fail at every so many points, and again in the retry."""
    expected, world = await undisturbed(app, *undoable)
    for at in range(1, world.passed + 1, every):
        ledger = Ledger()
        ledger.set_trap(at, stumble)
        run = await app.start(journey(ledger, *undoable), Trip())
        assert (await travel(run)).status == "failed"
        ledger.set_trap(at // 2, stumble)
        await run.retry()
        outcome = await travel(run)
        if outcome.status == "failed":
            await run.retry()
            outcome = await travel(run)
        check(outcome, ledger, expected, world)


async def cancel_anywhere(app: Loom, undoable: tuple[str, ...], every: int) -> None:
    """Cancel at every so many points."""
    expected, world = await undisturbed(app, *undoable)
    for at in range(1, world.passed + 1, every):
        ledger, reached = Ledger(), asyncio.Event()

        async def stop(reached: asyncio.Event = reached) -> None:
            reached.set()
            await hang()

        ledger.set_trap(at, stop)
        run = await app.start(journey(ledger, *undoable), Trip())
        travelling = asyncio.create_task(travel(run))
        await reached.wait()
        await run.cancel()
        assert (await travelling).status == "cancelled"
        await run.retry()
        check(await travel(run), ledger, expected, world)


async def test_failures_and_cancels(app: Loom) -> None:
    await fail_anywhere(app, SOME, 7)
    await fail_anywhere(app, (), 13)
    await cancel_anywhere(app, SOME, 11)


@pytest.mark.doors
@pytest.mark.parametrize("undoable", [(), ALL, SOME])
async def test_failures_and_cancels_everywhere(app: Loom, undoable: tuple[str, ...]) -> None:
    await fail_anywhere(app, undoable, 1)
    await cancel_anywhere(app, undoable, 1)


async def test_another_process_retries(tmp_path: FilePath) -> None:
    """The retry is stored, and any process continues it; so does one after a kill."""
    store, ledger = f"sqlite:{tmp_path}/runs.db", Ledger()
    flow = journey(ledger, *SOME)
    ledger.set_trap(30, stumble)
    async with Loom(store=store) as app:
        run = await app.start(flow, Trip())
        assert (await travel(run)).status == "failed"
    reached = asyncio.Event()

    async def stop() -> None:
        reached.set()
        await hang()

    ledger.set_trap(5, stop)
    async with Loom(store=store) as app:
        app.register_flow(flow)
        await app.handle(run.id).retry()
        await reached.wait()  # the process ends in the midst of it
    async with Loom(store=store) as app, Loom(store="memory") as other:
        app.register_flow(flow)
        await app.resume(run.id)
        expected, world = await undisturbed(other, *SOME)
        check(await travel(app.handle(run.id)), ledger, expected, world)  # type: ignore[arg-type]


def shop(ledger: Ledger, **settings: Any) -> Flow[Trip]:
    """Three steps, of which the first can be compensated, with an approval in between."""
    return (
        Flow("shop", Trip, **settings)
        .start_with(acting(ledger, "order"), compensate=undoing(ledger, "order"))
        .then(acting(ledger, "pack"))
        .await_approval("boss", name="ok")
        .then(acting(ledger, "ship"))
    )


def done(ledger: Ledger) -> list[str]:
    """What was done and undone, in order."""
    return [what if kind == "do" else f"un{what}" for kind, what, _ in ledger.entries]


async def test_what_was_compensated_is_done_anew(app: Loom) -> None:
    ledger = Ledger()
    ledger.set_trap(8, stumble)
    run = await app.start(shop(ledger), Trip())
    await travel(run)
    assert done(ledger) == ["order0a", "order0b", "pack0a", "pack0b", "ship0a", "unorder"]
    await run.retry()
    outcome = await run.outcome()
    assert outcome.status == "finished", "the approval was given before"
    assert done(ledger)[6:] == ["order0a", "order0b", "ship0b"]
    assert (await app.history.replay(run.id)).divergence is None
    kinds = [event.kind for event in await app.history.events(run.id)]
    assert kinds.count("flow.rewound") == 1 and "run.resumed" not in kinds


async def test_a_step_whose_compensation_failed_stands(app: Loom) -> None:
    ledger = Ledger()

    async def cannot(state: Trip) -> None:
        raise ValueError("no")

    flow = Flow("stuck", Trip).start_with(acting(ledger, "order"), compensate=cannot)
    flow = flow.then(acting(ledger, "ship")).on_failure(Path(acting(ledger, "tell")))
    ledger.set_trap(4, stumble)
    run = await app.start(flow, Trip())
    assert (await travel(run)).status == "failed"
    await run.retry()
    outcome = await run.outcome()
    assert outcome.state.said == ["order0", "ship0"]
    assert done(ledger) == ["order0a", "order0b", "tell0a", "tell0b", "ship0a", "ship0b"]


async def test_a_rejected_approval_is_asked_again(app: Loom) -> None:
    ledger = Ledger()
    run = await app.start(shop(ledger), Trip())
    assert (await travel(run, "reject")).status == "failed"
    await run.retry()
    assert (await travel(run)).status == "finished"
    assert done(ledger)[2:5] == ["pack0a", "pack0b", "unorder"]
    assert ledger.done_twice() == []


async def test_an_approval_that_was_open_is_open_again(app: Loom) -> None:
    ledger = Ledger()
    for undo in (True, False):
        flow = shop(ledger) if undo else Flow("wait", Trip).start_with(acting(ledger, "look"))
        flow = flow if undo else flow.await_approval("boss", name="ok")
        run = await app.start(flow, Trip())
        (before,) = (await run.outcome()).questions
        await run.cancel()
        await run.finished()
        await run.retry()
        (after,) = (await run.outcome()).questions
        assert after.id == before.id
        assert (await travel(run)).status == "finished"


async def test_the_time_of_a_run_begins_again(timed: Timed) -> None:
    ledger = Ledger()
    run = await timed.start(shop(ledger, timeout=60), Trip())
    await run.outcome()
    timed.clock.time += timedelta(seconds=61)
    await timed.resume(run.id)
    assert (await run.outcome()).failure is not None
    timed.clock.time += timedelta(days=1)
    await run.retry()
    assert (await travel(run)).status == "finished"


async def test_a_raised_budget(app: Loom) -> None:
    ledger = Ledger()
    run = await app.start(shop(ledger, guards=Guards(budget=RunBudget(steps=2))), Trip())
    assert (await travel(run)).status == "failed"
    await run.retry(budget={"steps": 9})
    assert (await travel(run)).status == "finished"
    assert ledger.done_twice() == []


def packing(ledger: Ledger) -> Flow[Trip]:
    """A loop, and two branches with steps of one name."""

    async def more(state: Trip) -> dict[str, int]:
        return {"n": 1}

    body = Path().then(more).then(acting(ledger, "pack"))
    return (
        Flow("packing", Trip)
        .start_with(acting(ledger, "order"))
        .repeat_until(lambda state: state.n == 2, body, max_iterations=3, name="door")
        .branch(
            lambda state: True, {True: Path().then(acting(ledger, "seal"), name="end")}, name="one"
        )
        .branch(
            lambda state: True, {True: Path().then(acting(ledger, "stamp"), name="end")}, name="two"
        )
    )


@pytest.mark.parametrize(
    ("since", "again"),
    [
        ("pack", ["pack2", "seal2", "stamp2"]),
        ("door[1]/pack", ["pack1", "pack2", "seal2", "stamp2"]),
        ("two:True/end", ["stamp2"]),
    ],
)
async def test_everything_since_a_step(app: Loom, since: str, again: list[str]) -> None:
    ledger = Ledger()
    run = await app.start(packing(ledger), Trip())
    before = await run.outcome()
    first = len(ledger.entries)
    await run.retry(since, tools="live")
    assert (await run.outcome()).state == before.state
    assert done(ledger)[first:] == [f"{what}{part}" for what in again for part in "ab"]
    assert ledger.entries[-1][2] not in [key for _, _, key in ledger.entries[:first]]


async def test_a_step_that_is_not_told_apart(app: Loom) -> None:
    run = await app.start(packing(Ledger()), Trip())
    await run.outcome()
    with pytest.raises(UsageError, match="one:True/end, two:True/end"):
        await run.retry("end")
    with pytest.raises(UsageError, match="took no step"):
        await run.retry("elsewhere")
    with pytest.raises(UsageError, match="Nothing failed"):
        await run.retry()


async def test_since_a_step_after_a_compensation(app: Loom) -> None:
    ledger = Ledger()
    ledger.set_trap(8, stumble)
    run = await app.start(shop(ledger), Trip())
    await travel(run)
    for _ in range(2):
        first = len(ledger.entries)
        await run.retry("pack", tools="live")
        assert (await travel(run)).status == "finished"
        assert "pack0a" in done(ledger)[first:]
        assert ("order0a" in done(ledger)[first:]) == (first == 6)


def racing(ledger: Ledger, waits: int) -> Flow[Trip]:
    """A fork in which one path stores effects until the other one fails, after so many waits."""
    started = asyncio.Event()

    async def act(state: Trip, ctx: StepContext) -> None:
        started.set()
        for number in range(20):
            await ctx.once(f"{number}", partial(ledger.act, f"{number}", ctx.idempotency_key))

    async def fail(state: Trip) -> None:
        await started.wait()
        for _ in range(waits):
            await asyncio.sleep(0)
        await stumble()

    paths = Path().then(act, compensate=undoing(ledger, "act")), Path().then(fail)
    flow = Flow("racing", Trip).start_with(acting(ledger, "begin"))
    return flow.fork(*paths, join=acting(ledger, "join"), name="both")


async def test_a_path_fails_while_another_stores_an_effect(app: Loom) -> None:
    for waits in range(30):
        ledger = Ledger()
        run = await app.start(racing(ledger, waits % 10), Trip())
        async with asyncio.timeout(60):
            assert (await run.outcome()).status == "failed"
        assert (await app.history.replay(run.id)).divergence is None


async def test_a_flow_is_not_retried_with_a_folder(tmp_path: FilePath) -> None:
    async with Loom(store="memory") as app:
        run = await app.start(Flow("work", Work).start_with(note("a")).finally_(note("b")))
        await run.finished()
        with pytest.raises(UsageError, match="not a run of a folder"):
            await run.retry(1, folder=tmp_path)


async def test_what_failed_is_done_again_and_what_was_done_is_not(app: Loom) -> None:
    """Since an earlier step: recorded results stand in for calls, and never the failure."""
    ledger, broken = Ledger(), [True]

    async def ship(state: Work, ctx: StepContext) -> dict[str, Any]:
        if broken:
            await stumble()
        ledger.act("ship", ctx.idempotency_key)
        return {"notes": ["ship"]}

    async def pack(state: Work, ctx: StepContext) -> dict[str, Any]:
        ledger.act("pack", ctx.idempotency_key)
        return {"notes": ["pack"]}

    run = await app.start(Flow("work", Work).start_with(pack).finally_(ship))
    assert (await run.outcome()).status == "failed"
    broken.clear()
    await run.retry("pack")
    outcome = await run.outcome()
    assert (outcome.status, outcome.state.notes) == ("finished", ["pack", "ship"])
    assert done(ledger) == ["pack", "ship"]
