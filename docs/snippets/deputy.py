"""An AG2 agent takes a turn: it asks the user, and its tool's write decides the route."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from ag2 import Agent, Context
from ag2.config import OpenAIConfig

from turnloom import Answer, Loom, ToolCall
from turnloom.adapters.ag2 import AG2AgentEngine
from turnloom.testing import LoopbackModel

VARIABLES = """
definitions: {day: {type: string, source: {type: derived, default: none}}}
agents: {Host: {variables: [day]}}
"""
LINES = [Answer(calls=(ToolCall("book", {"guests": 2}),)), "See you on Friday."]


async def book(guests: int, context: Context) -> str:
    """Book a table."""
    context.variables["day"] = await context.input(f"Which day, for {guests}?")
    return f"a table for {guests}"


async def converse(folder: str, server: LoopbackModel) -> None:
    """Run a turn of the agent that asks a question."""

    def make() -> Agent:
        config = OpenAIConfig("any", api_key="none", base_url=server.url, streaming=True)
        return Agent("host", "You are the host.", config=config, tools=[book])

    async with Loom(store="memory", engine=AG2AgentEngine(make)) as app:
        run = await app.start(folder)
        async for event in run.events():
            if event.kind == "question.asked":
                print(event.data.tool, "asks:", event.data.prompt)
                await run.answer(event.data.question, "Friday")
        for event in await app.history.events(run.id):
            if event.kind == "context.changed":
                print(event.data.writer, "set", event.data.name, "to", event.data.value)
            if event.kind == "effect.done":
                print("on record:", event.data.name[:7])
            if event.kind == "agent.text":
                print(event.data.text)


async def main(folder: str) -> None:
    async with LoopbackModel(LINES) as server:
        await converse(folder, server)


with TemporaryDirectory() as folder:
    Path(folder, "orchestrator.yaml").write_text("initial_message: A table, please.\n", "utf-8")
    Path(folder, "agents.yaml").write_text("Host: {system_message: Book tables.}\n", "utf-8")
    Path(folder, "context_variables.yaml").write_text(VARIABLES, "utf-8")
    asyncio.run(main(folder))
