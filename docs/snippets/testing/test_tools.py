"""A workflow with tools under test: they run, a person answers, and a server is in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnloom import Answer, Loom, ToolCall, ToolSchema
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.runtime.service.driver import Driver, Stores
from turnloom.runtime.service.runs import Runs, World
from turnloom.testing import (
    FakeClock,
    FakeDocuments,
    FakeEntropy,
    FakeEnvironment,
    FakeToolServer,
    ScriptedEngine,
)
from turnloom.variables.service import ContextSource
from turnloom.wiring import Folders

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
    """What the calendar of the test says."""
    return "2026-11-16"


async def test_the_calendar_is_asked() -> None:
    calendar, store, clock = FakeToolServer(), MemoryStore(codec()), FakeClock()
    calendar.add(ToolSchema("next_workday", "The next workday.", {"type": "object"}), monday)
    world = World(
        Stores(
            store.log,
            store.inbox,
            store.claims,
            store.snapshots,
            store.artifacts,
            store.beliefs,
            store.results,
        ),
        clock,
        FakeEntropy(),
        FakeEnvironment(),
        FakeDocuments(),
        Folders(connect=lambda server, root: calendar),
        InlineScheduler(clock),
    )
    run = await Runs(world).start(str(SNIPPETS / "Invoices"), user="ann", tenant="acme")
    context = ContextSource(world.environment, world.documents)
    await Driver(world.stores, (clock, world.entropy), world.definitions, context).drive(run)
    assert calendar.calls == [("next_workday", {"day": "2026-11-13"})]
    assert (await store.log.read(run))[-1].kind == "run.finished"
