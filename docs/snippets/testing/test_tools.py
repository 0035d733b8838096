"""Test a workflow with tools: they run, a person answers, and a server is in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnloom import Answer, Loom, ToolCall, ToolSchema
from turnloom.testing import FakeToolServer, ScriptedEngine

SNIPPETS = Path(__file__).parents[1]


def calling(tool: str, **arguments: Any) -> Answer:
    """An answer that calls a tool."""
    return Answer(calls=(ToolCall(tool, arguments),))


async def test_a_table_is_confirmed() -> None:
    engine = ScriptedEngine({"Clerk": [calling("confirm", table=7), "Table 7 is yours."]})
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(str(SNIPPETS / "Booking"))
        async for event in run.events():
            if event.kind == "question.asked":
                assert event.data.payload["note"] == "table 7 is held"
                await run.answer(event.data.question, {"confirmed": True})
    first, second = engine.calls
    assert [tool.name for tool in first.tools] == ["free_tables", "confirm"]
    assert second.exchanges[0].results[0].value is True


async def monday(arguments: Mapping[str, Any]) -> str:
    """The answer of the test's calendar."""
    return "2026-11-16"


async def test_the_calendar_is_asked() -> None:
    calendar = FakeToolServer()
    calendar.add(ToolSchema("next_workday", "The next workday.", {"type": "object"}), monday)
    async with Loom(store="memory", connect=lambda server, root: calendar) as app:
        run = await app.start(str(SNIPPETS / "Invoices"))
        assert (await run.finished()).kind == "run.finished"
    assert calendar.calls == [("next_workday", {"day": "2026-11-13"})]
