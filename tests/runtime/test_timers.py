"""Timers: an expiry is an event, and survives a restart."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import as_json, write_folder
from tests.support.plays import serving, until
from tests.support.programs import Program, begin, make_world
from tests.support.world import World
from turnloom.log.spec import Event, RunKey
from turnloom.testing import ScriptedEngine

Make = Callable[..., Awaitable["Life"]]

LINES = {"A": ["Hello.", "start", "Well?", "And?"], "B": ["Too late."]}


def files(after: str, since: str = "run_start", more: str = "") -> dict[str, str]:
    return {
        "orchestrator.yaml": "initial_agent: A",
        "agents.yaml": "A: {system_message: Hi.}\nB: {system_message: Hi.}",
        "context_variables.yaml": f"""
            definitions:
              begun: {{type: boolean, source: {{type: derived, default: false, triggers: [
                {{type: agent_text, agent: A, match: {{equals: start}}}}]}}}}
              late: {{type: boolean, source: {{type: derived, default: false, triggers: [
                {{type: timer_expired, after: {after}, since: '{since}'{more}}}]}}}}
            """,
        "handoffs.yaml": """
            - {source_agent: A, target_agent: B, handoff_type: condition, condition: late is true}
            - {source_agent: A, target_agent: user, handoff_type: after_work}
            - {source_agent: user, target_agent: A, handoff_type: after_work}
            """,
    }


class Life:
    """A run in a world whose clock obeys; `restart` forgets all but what is stored."""

    def __init__(self, world: World, run: str) -> None:
        self.world, self.run, self.clock = world, run, world.clock
        self.program = Program(world)

    async def restart(self) -> None:
        await self.program.app.aclose()
        self.program = Program(self.world)

    async def drive(self) -> float | None:
        """Drive, and tell in how many seconds the run wants to be woken."""
        due = await self.program.drive(self.run)
        return None if due is None else (due - self.clock.time).total_seconds()

    async def answer(self) -> float | None:
        await self.program.answer(self.run, "Yes.")
        return await self.drive()

    def wait(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    async def events(self) -> list[Event]:
        return list(await self.world.store.log.read(RunKey("local", self.run)))

    async def count(self, kind: str) -> int:
        return [event.kind for event in await self.events()].count(kind)


@pytest.fixture
async def a_life(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a life of a run with a timer."""
    lives: list[Life] = []

    async def make(*said: Any, **more: Any) -> Life:
        world = make_world(ScriptedEngine(LINES))
        run = await begin(world, write_folder(tmp_path, as_json(files(*said, **more))))
        lives.append(Life(world, run))
        return lives[-1]

    yield make
    for life in lives:
        await life.program.app.aclose()


async def test_a_timer_expires_while_the_run_waits_for_the_user(a_life: Make) -> None:
    life = await a_life("PT1M")
    assert await life.drive() == 60
    life.wait(59)
    assert await life.drive() == 1
    assert await life.count("timer.expired") == 0
    life.wait(1)
    assert await life.drive() is None
    events = await life.events()
    assert [event.kind for event in events[-3:]] == [
        "timer.expired",
        "context.changed",
        "run.paused",
    ]
    expired, changed, _ = events[-3:]
    assert (expired.actor, changed.cause) == ("clock", expired.seq)
    assert await life.answer() is None
    assert (await life.events())[-1].kind == "run.finished"


@pytest.mark.parametrize("wait", [10, 60, 6000])
async def test_a_timer_survives_a_restart(wait: float, a_life: Make) -> None:
    life = await a_life("60")
    await life.drive()
    life.wait(wait)
    await life.restart()
    assert await life.drive() == (60 - wait if wait < 60 else None)
    assert await life.count("timer.expired") == (wait >= 60)
    await life.restart()
    await life.drive()
    assert await life.count("timer.expired") == (wait >= 60), "it expired a second time"


async def test_a_run_that_is_resumed_asks_to_be_woken(a_life: Make) -> None:
    """Through the scheduler: nobody but the clock says anything."""
    life = await a_life("60")
    await life.drive()
    life.wait(61)
    async with serving(life.world) as app:
        await until(await app.resume(life.run), "timer.expired")


async def test_a_run_that_is_served_wakes_when_its_timer_is_due(tmp_path: Path) -> None:
    world = make_world(ScriptedEngine(LINES))
    seen: list[str] = []
    async with serving(world) as app:
        run = await app.start(write_folder(tmp_path, files("PT1H")))
        async for event in run.events():
            seen.append(event.kind)
            if event.kind == "run.paused" and "timer.expired" not in seen:
                world.clock.advance(timedelta(seconds=3601))
            elif event.kind == "run.paused":
                break
    assert seen[-3:] == ["timer.expired", "context.changed", "run.paused"]


async def test_a_timer_since_a_variable_starts_when_it_changes(a_life: Make) -> None:
    life = await a_life("30", "variable:begun")
    assert await life.drive() is None
    life.wait(100)
    assert await life.answer() == 30
    life.wait(30)
    assert await life.drive() is None
    assert await life.count("timer.expired") == 1


async def test_a_timer_since_an_agent_starts_again_with_each_of_its_turns(a_life: Make) -> None:
    life = await a_life("30", "agent:A")
    assert await life.drive() == 30
    life.wait(20)
    assert await life.answer() == 30
    life.wait(20)
    assert await life.drive() == 10
    assert await life.count("timer.expired") == 0
    life.wait(10)
    assert await life.drive() is None
    assert await life.count("timer.expired") == 1


async def test_a_timer_that_fires_once_is_not_set_again(a_life: Make) -> None:
    life = await a_life("30", "agent:A", ", once: true, value: null")
    await life.drive()
    life.wait(30)
    assert await life.drive() is None
    assert await life.answer() is None
    assert await life.count("timer.set") == 1


async def test_no_timer_expires_after_the_end(a_life: Make) -> None:
    life = await a_life("30")
    await life.drive()
    assert await life.program.cancel(life.run)
    assert await life.drive() is None
    life.wait(60)
    await life.restart()
    assert await life.drive() is None
    assert (await life.events())[-1].kind == "run.cancelled"
