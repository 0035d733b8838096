"""Code of others that does what it should not: the run goes on, and its log can be read."""

import asyncio
from pathlib import Path

import pytest

from tests.support.plays import call, lines, only, play, solo
from turnloom.agents.spec import Answer, Task


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


ASKS = """
    from turnloom import use_ui_tool
    async def ask(of: str): return await use_ui_tool(of, {"prompt": "Well?"})
    """


@pytest.mark.parametrize("of", ["", "selector"])
async def test_a_tool_cannot_ask_as_if_it_were_the_run(of: str, tmp_path: Path) -> None:
    files = solo(ASKS, "ask", script=lines(call("ask", of=of), "Done."))
    events = await play(tmp_path, files)
    assert f"{of!r}" in only(events, "tool.failed").message
    assert events[-1].kind == "run.finished"


LIKE = lines(call("transfer_to_B_1"), call("transfer_to_B_1_2"))["agents"]


async def test_a_tool_that_is_called_like_a_handoff_is_still_called(tmp_path: Path) -> None:
    like = {"agent": "A", "file": "code.py", "function": "f", "name": "transfer_to_B_1"}
    rule = {"source_agent": "A", "target_agent": "B", "handoff_type": "condition"}
    files = solo(
        "def f(): return 'called'",
        agents={name: {"system_message": "Speak."} for name in "AB"},
        tools={"tools": [like]},
        handoffs=[{**rule, "condition_type": "string_llm", "condition": "B is wanted"}],
        script={"agents": {**LIKE, "B": ["Here."]}},
    )
    events = await play(tmp_path, files)
    assert only(events, "tool.returned").result == "called"
    assert only(events, "transfer.chosen").target == "B"
