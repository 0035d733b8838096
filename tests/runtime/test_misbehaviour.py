"""Code of others that does what it should not: the run goes on, and its log can be read."""

import asyncio
from pathlib import Path

import pytest

from tests.support.plays import only, play, solo
from weft.agents.spec import Answer, Task


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("whose", ["A", "selector"])
async def test_an_engine_that_wants_to_end_the_program_fails_its_call(
    whose: str, error: type[BaseException], tmp_path: Path
) -> None:
    async def engine(task: Task) -> Answer:
        if task.agent == whose:
            raise error
        return Answer("Hm.")

    setup = {"orchestration_pattern": "AutoPattern", "initial_agent": "A"}
    agents = {name: {"system_message": "Speak."} for name in "ABC"}
    files = solo("", orchestrator=setup, agents=agents)
    events = await play(tmp_path, files, engine=engine)
    failed = only(events, "model.failed")
    assert (failed.agent, failed.error) == (whose, error.__name__)
    assert events[-1].kind == "run.failed"
