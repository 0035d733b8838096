"""Test a workflow with recorded answers of a model."""

from pathlib import Path

from turnloom import Loom
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.testing import RecordedEngine

TRIAGE = str(Path(__file__).parents[1] / "Triage")
TRAFFIC = Path(__file__).with_name("triage.json")


async def test_the_printer_goes_to_the_engineer() -> None:
    async with RecordedEngine(TRAFFIC, lambda: PydanticAIEngine("openai:gpt-5")) as engine:
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(TRIAGE)
            async for event in run.events():
                if event.kind == "question.asked":
                    await run.answer(event.data.question, "The printer is on fire.")
            events = await app.history.events(run.id)
        engine.assert_complete()
    routes = [event.data.target for event in events if event.kind == "route.decided"]
    assert routes[-2:] == ["Engineer", "terminate"]
