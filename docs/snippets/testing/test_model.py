"""Test a workflow with the client of a real model library: the model is on loopback."""

from pathlib import Path

from turnloom import Answer, Loom, ToolCall
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.testing import BrokenReply, HttpRefusal, LoopbackModel, ModelRequest

BOOKING = str(Path(__file__).parents[1] / "Booking")


async def said(model: LoopbackModel) -> list[str]:
    """Return the clerk's message in a run with this model."""
    engine = PydanticAIEngine("any", base_url=model.url)
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(BOOKING)
        async for event in run.events():
            if event.kind == "question.asked":
                await run.answer(event.data.question, {"confirmed": True})
        return [
            event.data.text
            for event in await app.history.events(run.id)
            if event.kind == "agent.text"
        ]


async def test_errors_of_the_provider_are_retried() -> None:
    calls = Answer(calls=(ToolCall("confirm", {"table": 7}),))
    lines = [HttpRefusal(503), calls, BrokenReply("Table 7 is"), "Table 7 is yours."]
    async with LoopbackModel(lines) as model:
        assert await said(model) == ["Table 7 is yours."]
        model.assert_complete()


async def test_the_model_is_offered_the_tools() -> None:
    def answer(request: ModelRequest) -> Answer:
        if request.results:
            return Answer(f"You said {request.results[0]}.")
        assert request.tools == ["free_tables", "confirm"]
        return Answer(calls=(ToolCall("confirm", {"table": 4}),))

    async with LoopbackModel(answer) as model:
        assert await said(model) == ["You said true."]
