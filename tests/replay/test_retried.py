"""A run that was retried is replayed in all its lives."""

from pathlib import Path

import pytest

from tests.flow.ledgers import Ledger, Trip, acting, journey, stumble, travel, undisturbed
from tests.flow.test_retry import ALL, SOME, done, shop
from tests.runtime import test_board_retry as boards
from tests.runtime import test_retry as talks
from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task, UsageError
from turnloom import Path as FlowPath

TALK = {
    "orchestrator.yaml": "{initial_agent: A, max_turns: 3}",
    "agents.yaml": "{A: {system_message: Hi.}, B: {system_message: Hm.}}",
    "handoffs.yaml": """
        - {source_agent: A, target_agent: B, handoff_type: after_work}
        - {source_agent: B, target_agent: A, handoff_type: after_work}
        """,
}


async def test_a_conversation_that_was_retried_is_replayed(tmp_path: Path) -> None:
    trouble = [True]

    async def answer(task: Task) -> Answer:
        if task.agent == "B" and trouble:
            raise ConnectionError("Not now.")
        return Answer(f"I am {task.agent}.")

    async with Loom(store="memory", engine=answer) as app:
        run = await app.start(write_folder(tmp_path, TALK))
        assert (await run.finished()).kind == "run.failed"
        trouble.clear()
        await run.retry()
        assert (await run.finished()).kind == "run.finished"
        replay = await app.history.replay(run.id)
    assert replay.divergence is None and replay.same == replay.events


async def failed_shop(app: Loom, ledger: Ledger) -> str:
    """A flow whose last step failed, whose first step was compensated, and which told of it."""
    ledger.set_trap(8, stumble)
    run = await app.start(shop(ledger).on_failure(FlowPath(acting(ledger, "tell"))), Trip())
    assert (await travel(run)).status == "failed"
    return run.id


async def test_a_flow_cut_after_any_event_is_replayed() -> None:
    """Nothing is compensated twice, and what was compensated is done anew."""
    async with Loom(store="memory") as app:
        length, at = 99, 1
        while at < length - 1:
            ledger = Ledger()
            run = app.handle(await failed_shop(app, ledger))
            events = await app.history.events(run.id)
            length = len(events)
            stopped = next(event.seq for event in events if event.kind == "flow.stopped")
            await run.retry(at=at, tools="live")
            outcome = await travel(run)  # type: ignore[arg-type]
            (retried,) = [e for e in await app.history.events(run.id) if e.kind == "run.retried"]
            at = int(retried.data.since.removeprefix("event "))
            assert outcome.status == ("failed" if at >= stopped else "finished"), at
            assert done(ledger).count("unorder") == 1, at
            assert done(ledger).count("order0a") == (1 if at >= stopped else 2), at
            replay = await app.history.replay(run.id)
            assert replay.divergence is None, at
            at += 1


@pytest.mark.doors
@pytest.mark.parametrize("undoable", [(), ALL, SOME])
async def test_a_journey_cut_after_any_event(undoable: tuple[str, ...]) -> None:
    """The world holds the same in the end as without a failure."""
    async with Loom(store="memory") as app:
        expected, world = await undisturbed(app, *undoable)
        at, failed = 1, 99
        while at < failed:
            ledger = Ledger()
            ledger.set_trap(world.passed - 4, stumble)
            run = await app.start(journey(ledger, *undoable), Trip())
            assert (await travel(run)).status == "failed"
            events = await app.history.events(run.id)
            failed = next(event.seq for event in events if event.kind == "step.failed")
            await run.retry(at=at, tools="live")
            outcome = await travel(run)
            assert (outcome.status, outcome.state) == ("finished", expected.state), at
            assert ledger.stands() == world.stands(), at
            assert ledger.reused() == [], at
            assert (await app.history.replay(run.id)).divergence is None, at
            (retried,) = [e for e in await app.history.events(run.id) if e.kind == "run.retried"]
            at = int(retried.data.since.removeprefix("event ")) + 1


async def test_a_flow_tells_again_of_its_failure() -> None:
    async with Loom(store="memory") as app:
        ledger = Ledger()
        run = app.handle(await failed_shop(app, ledger))
        first = len(ledger.entries)
        await run.retry("tell", tools="live")
        assert (await travel(run)).status == "failed"  # type: ignore[arg-type]
        assert done(ledger)[first - 2 :] == ["tell100a", "tell100b"] * 2
        assert (await app.history.replay(run.id)).divergence is None


async def test_a_conversation_cut_after_any_event_is_replayed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, talks.SHOP)
    async with Loom(store="memory", engine=talks.clerk) as app:
        talks.stones.add("Buyer 3.1")
        run = await app.start(folder)
        await run.finished()
        talks.stones.clear()
        for at in range(len(await app.history.events(run.id)) - 9, 2, -5):
            await run.retry(at=at, tools="live")
            assert (await run.finished()).kind == "run.finished"
        replay = await app.history.replay(run.id)
    assert replay.divergence is None and replay.same == replay.events


async def test_a_board_cut_after_any_event_is_replayed() -> None:
    async with Loom(store="memory") as app:
        run = app.handle(await boards.run_of(app, boards.shop(app)))
        for at in range(len(await app.history.events(run.id)) - 6, 2, -4):
            await run.retry(at=at, tools="live")
            assert (await run.finished()).kind == "run.finished"
        replay = await app.history.replay(run.id)
        assert replay.divergence is None and replay.same == replay.events
        with pytest.raises(UsageError):
            await run.retry(at=len(await app.history.events(run.id)))
