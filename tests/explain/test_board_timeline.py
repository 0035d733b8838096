"""Runs of boards at a glance: turns that overlap, artifacts and whom they are for."""

import asyncio
from typing import Any

import msgspec

from tests.explain.conftest import tells
from tests.explain.shop import Order, Parcel, Payment, engine, pack, shop
from turnloom import Task
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.spec.timeline import Timeline
from turnloom.reaction.spec import Batch


async def nothing(request: ContextRequest) -> ContextSlice:
    return ContextSlice(items=[])


async def broken(request: ContextRequest) -> ContextSlice:
    raise LookupError("the shelf is empty")


async def test_turns_that_overlap_keep_their_own_rows_and_times() -> None:
    began, left = asyncio.Event(), asyncio.Event()

    async def slow(task: Task) -> Parcel:
        began.set()
        await left.wait()
        await asyncio.sleep(0.02)
        return pack(task)

    async def quick(task: Task) -> str:
        await began.wait()
        left.set()
        return "Noted."

    async with shop() as here:
        agent = here.board.agent("slow").consumes(Order).publishes(Parcel)
        agent.with_context(nothing).with_engines(slow)
        agent = here.board.agent("quick").consumes(Order)
        agent.with_context(broken, fallback=nothing).with_engines(quick)
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        events = await here.events(order.run)
    found = timeline(events)
    assert (found.status, found.turns, found.workflow) == ("finished", 2, "shop")
    assert [(row.depth, row.what, row.who) for row in found.rows] == [
        (0, "artifact", "user"),
        (0, "turn 1", "slow"),
        (1, "context", "nothing"),
        (1, "artifact", "slow"),
        (0, "turn 2", "quick"),
        (1, "context", "broken"),
        (1, "context", "nothing"),
        (0, "finished", "driver"),
    ]
    notes = {row.seq: row.note for row in found.rows}
    first, slow_row, *_ = found.rows
    assert tells(notes[first.seq], "shop.Order", order.id, "slow#1, quick#1")
    assert tells(slow_row.note, "slow#1", order.id)
    turns = [row for row in found.rows if row.what.startswith("turn")]
    assert turns[0].seconds and turns[1].seconds is not None
    assert turns[0].seconds >= 0.02 and turns[0].seconds > turns[1].seconds
    assert turns[0].tokens and turns[1].tokens
    assert tells(str(found), "LookupError: the shelf is empty")
    assert msgspec.json.decode(msgspec.json.encode(found), type=Timeline) == found


async def test_a_run_that_rests_says_what_it_is_about() -> None:
    async with shop(engine(lambda task: "Noted.")) as here:
        here.board.agent("pair").consumes(Order, Payment)
        order = await here.board.publish(Order(item="hat"), correlation_id="trip 7")
        await here.settle()
        found = await here.app.explain.timeline(order.run or "")
        (summary,) = await here.app.runs()
    assert isinstance(found, Timeline)
    assert (found.status, found.correlation, summary.status) == (
        "collecting",
        "trip 7",
        "collecting",
    )
    assert (found.collected, found.wanted) == (summary.collected, summary.wanted) == (1, 2)
    assert summary.standing == "collecting 1 of 2" and "collecting 1 of 2" in found.headline
    head, about, *_ = str(found).splitlines()
    assert tells(head, order.run, "shop", "collecting") and tells(about, "trip 7")
    assert [row.what for row in found.rows] == ["artifact"]


async def test_limits_retries_choices_and_sets_have_rows() -> None:
    left = [ValueError("not today")]

    def answer(task: Task) -> Any:
        if left and task.agent == "packer":
            raise left.pop()
        return pack(task)

    async with shop(engine(answer)) as here:
        board = here.app.board("small", max_turns=2)
        board.agent("packer").consumes(Order).publishes(Parcel)
        board.agent("loop").consumes(Parcel).publishes(Parcel).prevent_self_trigger(False).best_of(
            2, lambda made: 1
        )
        board.agent("crate").consumes(Order, batch=Batch(1)).publishes(Parcel)
        order = await board.publish(Order(item="hat"))
        await board.run_until_idle(20, raise_errors=False)
        await board.retry(order)
        await board.run_until_idle(20, raise_errors=False)
        found = timeline(await here.events(order.run))
        (collects,) = await here.runs(collects="crate#1")
        sets = timeline(await here.events(collects))
    rows = [(row.what, row.who, row.note) for row in found.rows]
    assert ("retry", "local", "turn 1") in rows
    notes = {(what, who): note for what, who, note in rows}
    assert tells(notes["turn 2", "packer"], "packer#1", order.id, "turn 1")
    assert tells(notes["choice", "loop"], "try 1", "2")
    assert found.status == "failed" and "limit" in {row.what for row in found.rows}
    (failed,) = (row for row in found.rows if row.what == "turn 1")
    assert tells(failed.note, "packer#1", order.id, "ValueError: not today")
    assert [(row.what, row.who) for row in sets.rows] == [("artifact", "user"), ("set", "crate#1")]
    assert tells(sets.rows[1].note, order.id, "small-") and sets.status == "collecting"
