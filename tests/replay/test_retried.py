"""A run that was retried is replayed in all its lives."""

from pathlib import Path

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task

TALK = {
    "orchestrator.yaml": "{initial_agent: A, max_turns: 3}",
    "agents.yaml": "{A: {system_message: Hi.}, B: {system_message: Hm.}}",
    "handoffs.yaml": """
        - {source_agent: A, target_agent: B, handoff_type: after_work}
        - {source_agent: B, target_agent: A, handoff_type: after_work}
        """,
}


async def test_a_conversation_that_was_retried_is_replayed(tmp_path: Path) -> None:
    trouble = [True]

    async def answer(task: Task) -> Answer:
        if task.agent == "B" and trouble:
            raise ConnectionError("Not now.")
        return Answer(f"I am {task.agent}.")

    async with Loom(store="memory", engine=answer) as app:
        run = await app.start(write_folder(tmp_path, TALK))
        assert (await run.finished()).kind == "run.failed"
        trouble.clear()
        await run.retry()
        assert (await run.finished()).kind == "run.finished"
        replay = await app.history.replay(run.id)
    assert replay.divergence is None and replay.same == replay.events
