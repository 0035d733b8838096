"""Test a workflow in memory, with scripted agents."""

from pathlib import Path

import pytest

from turnloom import Loom
from turnloom.errors import EngineError
from turnloom.testing import ScriptedEngine

TRIAGE = str(Path(__file__).parents[1] / "Triage")


async def converse(engine: ScriptedEngine, *answers: str) -> list[str]:
    """Return the routes of a run with these answers of the user."""
    given = iter(answers)
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(TRIAGE)
        async for event in run.events():
            if event.kind == "question.asked":
                await run.answer(event.data.question, next(given))
        events = await app.history.events(run.id)
    return [event.data.target for event in events if event.kind == "route.decided"]


async def test_the_desk_asks_until_it_knows() -> None:
    engine = ScriptedEngine({"Desk": ["Which one?", "  route  "]})
    routes = await converse(engine, "It is broken.", "The printer.")
    assert routes == ["user", "Desk", "user", "Desk", "Engineer", "terminate"]
    engine.assert_complete()


async def test_the_desk_is_shown_what_the_user_said() -> None:
    engine = ScriptedEngine({"Desk": ["ROUTE"]})
    await converse(engine, "The printer.")
    (call,) = engine.calls
    assert call.prompt.endswith("user: The printer.")
    assert "known" not in call.system


def test_unused_lines_are_reported() -> None:
    with pytest.raises(EngineError, match="Desk: 1"):
        ScriptedEngine({"Desk": ["ROUTE"]}).assert_complete()
