"""Cancelling runs of flows that were changed since: what the present plan names is made up for."""

import asyncio
from pathlib import Path as FilePath

import pytest

from tests.flow.scenes import Work, failing, note
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import Flow, Loom, Path, StepContext


def trip(*steps: str, undo: str = "hotel flight", last: str = "pay") -> Flow[Work]:
    """A flow that books, and waits for a person; `undo` says which bookings can be undone."""
    flow = Flow("trip", Work).start_with(note("plan"))
    for step in steps:
        can = note(f"un{step}") if step in undo.split() else None
        flow = flow.then(note(step), compensate=can)
    return flow.await_approval("boss").finally_(note(last))


def forked() -> Flow[Work]:
    paths = [Path().then(note(step), compensate=note(f"un{step}")) for step in ("hotel", "flight")]
    begun = Flow("trip", Work).start_with(note("plan")).fork(*paths, join=note("join"))
    return begun.await_approval("boss")


@pytest.fixture
def store(tmp_path: FilePath) -> str:
    return str(tmp_path / "turnloom.db")


async def parked(store: str, flow: Flow[Work]) -> str:
    async with Loom(store=store) as app:
        return (await app.run(flow)).run_id


async def undone(app: Loom, run: str) -> list[str]:
    return [each.step for each in every(await app.history.events(run), "step.compensated")]


@pytest.mark.parametrize("began", [trip("hotel", "flight"), forked()], ids=["line", "fork"])
async def test_what_the_present_plan_names_is_made_up_for(store: str, began: Flow[Work]) -> None:
    run = await parked(store, began)
    async with Loom(store=store) as app:
        app.register_flow(trip("visa", "flight", "hotel", last="post"))
        handle = app.handle(run)
        assert await handle.cancel(by="ada", reason="ill")
        events = await app.history.events(run)
        assert (events[-1].kind, events[-1].data.by) == ("run.cancelled", "ada")
        assert sorted(await undone(app, run)) == ["flight", "hotel"]
        assert events[-2].data.by in ("unflight", "unhotel")
        assert await handle.not_undone() == []
        assert not await handle.cancel()
        assert "unhotel" in str(await app.explain.timeline(run))


async def test_what_cannot_be_undone_is_on_record_and_given(store: str) -> None:
    run = await parked(store, trip("hotel", "car", "flight", undo="hotel flight car"))
    async with Loom(store=store) as app:
        failed = Flow("trip", Work).start_with(note("plan"))
        failed = failed.then(note("car"), compensate=failing("uncar"))
        app.register_flow(
            failed.then(note("flight")).then(note("hotel"), compensate=note("unhotel"))
        )
        handle = app.handle(run)
        assert await handle.cancel()
        lost = await handle.not_undone()
        assert [(each.step, each.by) for each in lost] == [("flight", ""), ("car", "uncar")]
        assert lost[0].error == "PlanChanged"
        assert await undone(app, run) == ["flight", "car", "hotel"]
        told = str(await app.explain.timeline(run))
        assert "flight" in told and "unhotel" in told


async def test_what_was_undone_before_the_change_is_not_undone_again(store: str) -> None:
    """Of a run whose process ended while it undid, the rest is done with the present plan."""

    async def unhotel(state: Work, ctx: StepContext) -> None:
        await asyncio.get_running_loop().create_future()

    async with Loom(store=store) as app:
        begun = Flow("trip", Work).start_with(note("hotel"), compensate=unhotel)
        began = begun.then(note("flight"), compensate=note("unflight")).await_approval("boss")
        run = await app.start(began)
        await run.outcome()
        await run.cancel()
        async with asyncio.timeout(PATIENCE):
            async for event in run.events():
                if event.kind == "step.started" and event.data.place == "hotel~":
                    break
    async with Loom(store=store) as app:
        app.register_flow(trip("hotel", last="post"))
        assert await app.handle(run.id).cancel()
        assert (await undone(app, run.id)) == ["flight", "hotel"]
        assert await app.handle(run.id).not_undone() == []
