"""A process with a board goes on where another one ended: what was cut off, and what waits."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.boards import (
    Place,
    Process,
    begin_process,
    go_round,
    live,
    serving,
    takings,
    tales,
)
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import After, Batch, Board, Join, PlanChanged, Public, Task, artifact_type
from turnloom.testing import Fuse

MINUTE = timedelta(minutes=1)


@artifact_type
class Letter(BaseModel):
    to: str


@artifact_type
class Stamp(BaseModel):
    to: str


@artifact_type
class Bag(BaseModel):
    of: list[str]


async def carry(task: Task) -> Any:
    return Bag(of=[each.payload["to"] for each in task.inputs])


def by_address(value: Letter | Stamp) -> str:
    return value.to


def declare(process: Process) -> None:
    carrying = process.mortal(carry)
    for name, types, consumes in (
        ("read", [Letter], {}),
        ("frank", [Letter, Stamp], {"join": Join(by_address, within=MINUTE)}),
        ("sort", [Stamp], {"batch": Batch(9, timeout=MINUTE)}),
    ):
        process.board.agent(name).consumes(*types, **consumes).publishes(Bag).with_engines(carrying)


class Post:
    """A letter that is hidden, one that waits for its stamp, a stamp that waits to be sorted; in
    another process, later, the time of all of them is over."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.later = place.clock.now() + 2 * MINUTE

    async def bring(self, board: Board) -> None:
        """Before: everything rests, and waits for an instant."""
        await board.resume()
        hidden = After(self.later - MINUTE, Public())
        await board.publish(Letter(to="ann"), id="ann", visibility=hidden)
        await board.publish(Letter(to="bob"), id="bob")
        await board.publish(Stamp(to="bob"), id="for bob")
        await board.publish(Letter(to="eve"), id="eve")
        await board.run_until(self.is_at_rest, PATIENCE)

    async def is_at_rest(self) -> bool:
        logs = [*(await self.place.logs()).values()]
        waits = [log[-1].data.due for log in logs if log[-1].kind == "run.paused"]
        came = [fact.artifact.id for log in logs for fact in every(log, "artifact.received")]
        ended = [log for log in logs if log[-1].kind == "run.finished"]
        return len(waits) == 3 and all(waits) and len(came) == 5 and len(ended) == 4

    async def go_on(self, board: Board) -> None:
        """After: whatever was cut off, or waits for an instant, goes on."""
        self.place.clock.time = self.later
        await board.resume()
        await board.run_until_idle(PATIENCE)


async def run(
    kill_before: int | None = None, kill_after: int | None = None
) -> tuple[Place, int, int]:
    """Two processes one after the other, either of which may be killed and begun again; how many
    points each of them passed in the end."""
    place = Place()
    post = Post(place)
    passed: list[int] = []
    for script, kill in ((post.bring, kill_before), (post.go_on, kill_after)):
        for points in (kill, None):
            process = begin_process(place, Fuse(points))
            declare(process)
            if await live(process, script):
                break
        passed.append(process.fuse.passed)
    return place, passed[0], passed[1]


@pytest.mark.repeats
async def test_instants_that_come_when_another_process_is_there() -> None:
    """A letter is seen, a join expires, a batch is taken: once, with kills before and after."""
    undisturbed, before, after = await run()
    logs = await undisturbed.logs()
    events = [event for log in logs.values() for event in log]
    assert [fact.artifact for fact in every(events, "artifact.opened")] == ["ann", "ann"]
    assert [fact.artifacts for fact in every(events, "join.expired")] == [("eve",)]
    assert [fact.subscription for fact in every(events, "batch.closed")] == ["sort#1"]
    for points in range(0, before, 3):
        await compare(logs, await run(kill_before=points), f"killed after {points} points")
    for points in range(after):
        await compare(logs, await run(kill_after=points), f"killed {points} points later")


async def compare(logs: Any, lives: tuple[Place, int, int], when: str) -> None:
    found = await lives[0].logs()
    assert tales(found) == tales(logs), when
    assert set(takings(found).values()) == {1}, when


async def test_a_changed_plan_is_refused_with_what_differs() -> None:
    """Nothing is gone on with, neither with what waits nor with what was cut off."""
    place = Place()
    post = Post(place)
    process = begin_process(place)
    declare(process)
    await live(process, post.bring)
    logs = await place.logs()
    other = begin_process(place)
    declare(other)
    other.board.agent("burn").consumes(Letter).with_engines(carry)
    place.clock.time = post.later
    async with serving(other) as board:
        with pytest.raises(PlanChanged) as refused:
            await board.resume()
        await go_round()
    assert "'burn'" in str(refused.value)
    assert await place.logs() == logs
    again = begin_process(place)
    declare(again)
    assert await live(again, post.go_on)
