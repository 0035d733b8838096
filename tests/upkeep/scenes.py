"""Stores with something of everything in them."""

from typing import Any

from pydantic import BaseModel

from tests.flow.scenes import Work, note
from turnloom import Flow, Loom, Task, artifact_type


@artifact_type(name="upkeep.Order")
class Order(BaseModel):
    what: str


@artifact_type(name="upkeep.Bill")
class Bill(BaseModel):
    what: str


def approving() -> Flow[Work]:
    """A flow that waits for the boss."""
    return Flow("work", Work).start_with(note("a")).await_approval("boss").finally_(note("b"))


def cached() -> Flow[Work]:
    """A flow whose result is cached for its user."""
    return Flow("cached", Work).start_with(note("c"), cache=True)


async def bill(task: Task) -> Bill:
    return Bill(what="paid")


def shop(app: Loom, **more: Any) -> Any:
    """A board whose clerk bills orders."""
    board = app.board("shop", **more)
    board.agent("clerk").consumes(Order).publishes(Bill).with_engines(bill)
    return board


async def fill(app: Loom) -> dict[str, str]:
    """Begin a run of each kind; the ids by what they are."""
    parked = await app.start(approving(), user_id="ann")
    await parked.outcome()
    done = await app.start(cached(), user_id="ann")
    await done.finished()
    board = shop(app, user_id="bob")
    order = await board.publish(Order(what="tea"), correlation_id="table 7")
    await board.run_until_idle()
    fork = await app.handle(done.id).fork(2, tools="live")
    await fork.finished()
    other = await app.start(cached(), user_id="eve", app_id="it's; --")
    await other.finished()
    return {
        "parked": parked.id,
        "done": done.id,
        "board": order.run or "",
        "fork": fork.id,
        "other": other.id,
    }
