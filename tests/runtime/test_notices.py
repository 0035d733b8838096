"""Lines in the program's log for every run: one when it begins, one when it ended."""

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.hooked import LINES, hook, hooked
from tests.support.plays import serving, until
from tests.support.programs import Program, answer, begin, drive, make_world
from tests.support.world import World
from turnloom.adapters.system import SystemClock
from turnloom.agents.spec import Answer, Task
from turnloom.testing import ScriptedEngine


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> "Lines":
    caplog.set_level("INFO", "turnloom.lifecycle")
    return Lines(caplog)


class Lines:
    """What the program's log tells of workflows."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __call__(self) -> Sequence[str]:
        found = [each for each in self._caplog.records if each.name == "turnloom.lifecycle"]
        assert all(each.levelname == "INFO" for each in found)
        return [each.getMessage() for each in found]


BEGUN = "🚀 Workflow Initialized | workflow=Flow | chat=run1 | user=u1 | app=local | timestamp="


async def test_a_run_is_told_of_once_when_it_begins_and_once_when_it_ended(
    tmp_path: Path, lines: Lines
) -> None:
    """However often it is woken, and whatever hooks do meanwhile."""
    code = "async def ask(): return await use_ui_tool('form')"
    world = make_world(ScriptedEngine(LINES))
    run = await begin(world, hooked(tmp_path, [hook("before_chat", "ask")], code))
    assert lines() == []
    async with Program(world) as program:
        world.clock.advance(timedelta(milliseconds=1.5))
        await program.drive(run)
        await program.drive(run)
        assert lines() == [f"{BEGUN}2026-01-01T00:00:00.001Z"]
        await program.answer(run, "Yes.")
        world.clock.advance(timedelta(seconds=42, milliseconds=370))
        await program.answer(run, "Yes.")
        assert lines()[1:] == [
            "✅ Workflow Completed | workflow=Flow | chat=run1 | duration=42.37s | "
            "timestamp=2026-01-01T00:00:42.371Z"
        ]
        await program.drive(run)
    await drive(world, run)
    assert len(lines()) == 2
    kinds = {event.kind for event in await world.read(run)}
    assert {kind for kind in kinds if kind.startswith("lifecycle")} == {
        "lifecycle.tool_call",
        "lifecycle.tool_result",
    }


async def test_another_process_tells_of_the_end_alone(tmp_path: Path, lines: Lines) -> None:
    world = make_world(ScriptedEngine(LINES))
    run = await begin(world, hooked(tmp_path, [], ""))
    await drive(world, run)
    await answer(world, run, "Yes.")
    first, last = lines()
    assert first.startswith("🚀 Workflow Initialized | ")
    assert last.startswith("✅ Workflow Completed | ")


async def test_a_run_that_failed_is_told_of_so(tmp_path: Path, lines: Lines) -> None:
    async def fail(task: Task) -> Answer:
        raise RuntimeError("lost")

    world = make_world(fail)
    run = await begin(world, hooked(tmp_path, [], ""))
    await drive(world, run)
    assert lines()[1:] == [
        "❌ Workflow Failed | workflow=Flow | chat=run1 | status=failed | duration=0.00s | "
        "timestamp=2026-01-01T00:00:00.000Z"
    ]


async def test_a_run_that_is_cancelled_is_told_of_so(tmp_path: Path, lines: Lines) -> None:
    """Also in its first turn, before anything else is on record."""
    begun = asyncio.Event()

    async def stuck(task: Task) -> Answer:
        begun.set()
        await asyncio.Event().wait()
        return Answer()

    async with serving(make_world(stuck)) as app:
        run = await app.start(hooked(tmp_path, [], ""), user_id="u1")
        await begun.wait()
        await run.cancel(by="boss")
        await until(run, "run.cancelled")
    assert [line.split(" | ")[0] for line in lines()] == [
        "🚀 Workflow Initialized",
        "❌ Workflow Failed",
    ]
    assert " | status=cancelled | duration=" in lines()[1]


async def test_a_name_cannot_forge_a_line(tmp_path: Path, lines: Lines) -> None:
    world = make_world(ScriptedEngine(LINES))
    async with Program(world) as program:
        run = await program.start(hooked(tmp_path, [], ""), user="u\n✅ Done")
        await program.drive(run)
    assert lines()[0].count("\n") == 0 and r'user="u\n✅ Done"' in lines()[0]


async def test_an_app_has_them_without_a_declaration(tmp_path: Path, lines: Lines) -> None:
    folder = hooked(tmp_path, [], "", handoffs="[]", orchestrator="{initial_agent: A}")
    async with Program(
        World(clock=SystemClock(), engine=ScriptedEngine({"A": ["Hi."]}))
    ) as program:
        await program.drive(await program.start(folder))
    stamp = r"timestamp=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    first, last = lines()
    assert re.fullmatch(f"🚀 .* \\| user=u1 \\| app=local \\| {stamp}", first)
    assert re.fullmatch(f"✅ .* \\| duration=\\d+\\.\\d\\ds \\| {stamp}", last)
