"""A replay asks no engine, so none has to be there."""

from pathlib import Path

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task

TALK = {
    "orchestrator.yaml": "{initial_agent: A, max_turns: 2}",
    "agents.yaml": "{A: {system_message: Hi., model: 'openai:gpt-5'}}",
}


async def test_a_run_is_replayed_without_its_engine(tmp_path: Path) -> None:
    async def answer(task: Task) -> Answer:
        return Answer("Hello.")

    store, folder = str(tmp_path / "runs.db"), write_folder(tmp_path, TALK)
    async with Loom(store=store, engine=answer) as app:
        run = await app.start(folder)
        assert (await run.finished()).kind == "run.finished"
    async with Loom(store=store) as app:
        replay = await app.history.replay(run.id)
    assert replay.divergence is None and replay.same == replay.events
