"""Code of others that does what it should not: the run goes on, and its log can be read."""

import asyncio
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from tests.support.plays import call, lines, only, play, solo
from tests.support.world import PATIENCE
from turnloom import Board, ContextRequest, ContextSlice, Loom, artifact_type
from turnloom.agents.spec import Answer, Task
from turnloom.errors import UsageError
from turnloom.testing import ScriptedEngine


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


BLOCKS = """
    import asyncio
    async def block():
        over = asyncio.get_running_loop().time() + 0.1
        while asyncio.get_running_loop().time() < over: pass
        return "late"
    """


async def test_what_a_tool_gives_that_blocked_the_loop_is_too_late(tmp_path: Path) -> None:
    tool = {"function": "block", "timeout_s": 0.05}
    events = await play(tmp_path, solo(dedent(BLOCKS), tool, script=lines(call("block"), "Done.")))
    failed = only(events, "tool.failed")
    assert failed.error == "TimeoutError" and "0.05" in failed.message
    assert events[-1].kind == "run.finished"


@artifact_type
class Ping(BaseModel):
    text: str = "ping"


async def blocks(request: ContextRequest) -> ContextSlice:
    """Hold the event loop."""
    time = asyncio.get_running_loop().time
    over = time() + 0.1
    while time() < over:
        pass
    return ContextSlice([{"late": True}])


class Stubborn:
    """Does not let itself be cancelled until it may end."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.is_asked = asyncio.Event()
        self.cancelled = 0
        self._task: asyncio.Task[Any] | None = None

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        self._task = asyncio.current_task()
        self.is_asked.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        return ContextSlice([{"late": True}])

    async def let_go(self) -> None:
        """End it, at last."""
        self.may_end.set()
        assert self._task is not None
        await asyncio.wait({self._task})


async def pinged(app: Loom, provider: Any, seconds: float) -> Board:
    """A board whose agent is woken, and given context by the provider."""
    board = app.board()
    agent = board.agent("ann").consumes(Ping).with_engines(ScriptedEngine({"ann": ["Pong."]}))
    agent.with_context(provider, timeout=seconds)
    await board.publish(Ping())
    return board


async def test_what_a_provider_gives_that_blocked_the_loop_is_too_late() -> None:
    async with Loom(store="memory") as app:
        board = await pinged(app, blocks, 0.05)
        failed = await board.run_until_idle(raise_errors=False)
    assert failed is not None and "0.05 s" in str(failed.exceptions[0])


async def test_a_provider_that_swallows_its_cancellation_is_left_alone() -> None:
    stubborn = Stubborn()
    async with Loom(store="memory") as app:
        board = await pinged(app, stubborn, 0.05)
        failed = await board.run_until_idle(raise_errors=False)
    assert failed is not None and "0.05 s" in str(failed.exceptions[0])
    await stubborn.let_go()


async def test_an_app_closes_beside_such_a_provider() -> None:
    stubborn = Stubborn()
    async with Loom(store="memory") as app:
        board = await pinged(app, stubborn, 60)
        idle = asyncio.create_task(board.run_until_idle())
        await stubborn.is_asked.wait()
        with anyio.fail_after(PATIENCE):
            await app.aclose()
    await stubborn.let_go()
    with pytest.raises(UsageError):
        await idle
