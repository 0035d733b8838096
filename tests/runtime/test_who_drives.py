"""A process drives what it started, resumed or serves, and nothing else."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.runtime.strangers import Clerk, desk
from tests.support.folders import write_folder
from tests.support.plays import call, every, lines, solo, until
from tests.support.world import PATIENCE
from turnloom import Delivery, FilterConfig, Loom

CHILD = """
import asyncio, sys
from tests.runtime.strangers import drive

asyncio.run(drive(sys.argv[1]))
"""
ASK = """
    from turnloom import use_ui_tool

    async def plan(context_variables):
        return await use_ui_tool("plan", {"title": "Mine"})
    """
PLAN = {"function": "plan", "tool_type": "UI_Tool"}


def asking(where: Path) -> str:
    return write_folder(where, solo(ASK, PLAN, script=lines(call("plan"), "Done.")))


@asynccontextmanager
async def stranger(file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another program on the same file, which is driving a run of its own."""
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(file), env=env, **pipes
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            assert await child.stdout.readline() == b"driving\n"
            yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_another_program_neither_takes_a_run_nor_keeps_what_it_gives_back(
    tmp_path: Path,
) -> None:
    """An answer is on record and drives nothing; a board that is served goes on with what the
    other program leaves."""
    file = tmp_path / "runs.db"
    async with Loom(store=str(file)) as app:
        parked = await app.start(asking(tmp_path / "flow"))
        await until(parked, "run.paused")
    async with Loom(store=str(file)) as app:
        board = desk(app, Clerk())
        assert await board.resume() == []
        async with stranger(file) as child:
            assert await app.handle(parked.id).answer(None, "yes") is Delivery.RECORDED
            child.stdin.write(b"\n")  # pyright: ignore[reportOptionalMemberAccess]
            assert await child.wait() == 0

        async def has_receipt() -> bool:
            items, _ = await board.query_artifacts(FilterConfig(types={"Receipt"}))
            return bool(items)

        await board.run_until(has_receipt, PATIENCE)
        events = await app.history.events(parked.id)
        assert every(events, "question.answered")
        assert not every(events, "run.resumed") and not every(events, "tool.returned")
        resumed = await app.resume(parked.id)
        assert (await resumed.finished()).kind == "run.finished"
