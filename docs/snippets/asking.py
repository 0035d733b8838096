"""A model behind a server with OpenAI's protocol; here it is a server for tests."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from turnloom import Loom
from turnloom.adapters.pydantic_ai import Patience, PydanticAIEngine
from turnloom.testing import HttpRefusal, LoopbackModel

BUSY = HttpRefusal(429, "Too many requests.", retry_after=0.2)


async def converse(folder: str) -> None:
    """A turn of a model, after a rate limit."""
    async with LoopbackModel([BUSY, "Good morning, Ann."]) as server:
        patience = Patience(timeout=30, retries=5, pause=0.1)
        engine = PydanticAIEngine("llama3.2", base_url=server.url, patience=patience)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(folder)
            with run.listening(lambda piece: print(piece.offset, repr(piece.text))):
                await run.finished()
            asked, _ = server.requests
            print(asked.body["model"], [message["role"] for message in asked.messages])
            (answered,) = [
                e.data for e in await app.history.events(run.id) if e.kind == "model.answered"
            ]
            print(len(server.requests), "requests, one answer on record, of", answered.model)


with TemporaryDirectory() as folder:
    Path(folder, "orchestrator.yaml").write_text("initial_message: I am Ann.\n", "utf-8")
    Path(folder, "agents.yaml").write_text("Host: {system_message: Greet people.}\n", "utf-8")
    asyncio.run(converse(folder))
