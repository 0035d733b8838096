"""Forks of boards: what a fork and its original see of each other."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.world import at_rest
from turnloom import Answer, Batch, Loom, Publication, Run, Task, artifact_type


@artifact_type
class Order(BaseModel):
    item: str


@artifact_type
class Parcel(BaseModel):
    item: str


@artifact_type
class Bill(BaseModel):
    of: list[str]


# What each agent saw of the board, apart from its input, in order.
seen: dict[str, list[list[str]]] = {}

# What is packed for an order.
packed = ["tea"]


def note(task: Task) -> None:
    """Remember what a task shows."""
    items = [item["payload"]["item"] for item in task.context.items if "item" in item["payload"]]
    seen.setdefault(task.agent, []).append(items)


async def pack(task: Task) -> Answer:
    note(task)
    return Answer("", artifacts=(Publication(Parcel(item=packed[-1])),))


async def bill(task: Task) -> Answer:
    note(task)
    of = [each.payload["item"] for each in task.inputs]
    return Answer("", artifacts=(Publication(Bill(of=of)),))


@pytest.fixture(params=["memory", "shop.db"])
async def loom(request: Any, tmp_path: Path) -> AsyncIterator[Loom]:
    seen.clear()
    packed[:] = ["tea"]
    where = request.param if request.param == "memory" else str(tmp_path / request.param)
    async with Loom(store=where) as app:
        yield app


async def position(loom: Loom, run: str, kind: str) -> int:
    events = await loom.history.events(run)
    return next(event.seq for event in events if event.kind == kind)


async def test_a_fork_and_its_original_do_not_see_each_other(loom: Loom) -> None:
    board = loom.board()
    board.agent("pack").consumes(Order).publishes(Parcel).with_engines(pack)
    board.agent("bill").consumes(Parcel).publishes(Bill).with_engines(bill)
    order = await board.publish(Order(item="a box"), correlation_id="c1")
    await board.run_until_idle()
    run = loom.handle(order.run or "")
    assert seen == {"pack": [[]], "bill": [["a box"]]}
    at = await position(loom, run.id, "artifact.offered")

    packed.append("silk")
    fork = await run.fork(at)
    assert (await fork.finished()).kind == "run.finished"
    assert seen["pack"] == [[], []], "it saw what the original packed"
    assert seen["bill"] == [["a box"], ["a box"]]
    events = await loom.history.events(fork.id)
    made = [event.data.artifact for event in events if event.kind == "artifact.published"]
    assert [each.correlation_id for each in made] == ["c1", fork.id, fork.id]

    packed.append("tin")
    await board.publish(Order(item="more"), correlation_id="c1")
    await board.run_until_idle()
    assert sorted(seen["pack"][-1]) == ["a box", "tea"], "the next run saw what the fork packed"

    second = await fork.fork(await position(loom, fork.id, "turn.finished"))
    assert (await second.finished()).kind == "run.finished"
    assert seen["bill"][-1] == ["a box"]
    for each in (fork, second):
        assert (await loom.history.replay(each.id)).divergence is None


async def test_nothing_is_forwarded_that_was_not_allowed(loom: Loom) -> None:
    board = loom.board()
    board.agent("pack").consumes(Order).publishes(Parcel).with_engines(pack)
    batch = Batch(size=2)
    board.agent("bill").consumes(Parcel, batch=batch).publishes(Bill).with_engines(bill)
    order = await board.publish(Order(item="a box"))
    await board.run_until_idle()
    run = loom.handle(order.run or "")
    at = await position(loom, run.id, "artifact.offered")
    same = await run.fork(at)
    assert (await same.finished()).kind == "run.finished"
    packed.append("silk")
    refused = await run.fork(at, tools="recorded")
    assert (await refused.finished()).kind == "run.finished"
    fork = await run.fork(at)
    assert (await at_rest(fork, at)).kind == "run.paused"
    assert await forwarded(loom, same) == [False]
    assert await forwarded(loom, refused) == [True]
    assert "bill" not in seen
    await fork.answer(None, "allow")
    assert (await fork.finished()).kind == "run.finished"
    await board.run_until_idle()
    assert await forwarded(loom, fork) == [False]
    assert len(seen["bill"]) == 1


async def forwarded(loom: Loom, run: Run) -> list[bool]:
    """Whether what was forwarded in a run was refused."""
    events = await loom.history.events(run.id)
    return [event.data.refused for event in events if event.kind == "artifact.forwarded"]
