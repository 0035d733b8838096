"""A process that is killed while a model answers."""

import sys
from pathlib import Path

import anyio
import pytest

from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.testing import LoopbackModel, StalledReply
from turnloom.testing.contracts.facts import until

FILES = {
    "orchestrator.yaml": "{initial_message: Hi., model: openai-chat:any}",
    "agents.yaml": "A: {system_message: Greet.}",
}
CHILD = """
import asyncio, sys
from turnloom import Loom

async def main(folder, store):
    async with Loom(store=store) as app:
        await (await app.start(folder)).finished()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_run_that_was_killed_in_the_middle_of_an_answer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = write_folder(tmp_path, FILES), str(tmp_path / "turnloom.db")
    child = [sys.executable, "-c", CHILD, folder, store]
    async with LoopbackModel([StalledReply("Good "), "Good morning."]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        async with await anyio.open_process(child) as process:
            await until(lambda: bool(model.requests))
            process.kill()
            await process.wait()
        await until(lambda: model.abandoned == 1)
        async with Loom(store=store) as app:
            (summary,) = await app.runs()
            await (await app.resume(summary.run)).finished()
            events = await app.history.events(summary.run)
    assert [event.data.text for event in events if event.kind == "agent.text"] == ["Good morning."]
    first, second = model.requests
    assert first.body == second.body
