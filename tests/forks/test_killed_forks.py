"""Processes that are killed while they begin a fork, or drive it."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forks.test_forks import DESK, clerk, sold
from tests.support.folders import write_folder
from tests.support.world import at_rest
from turnloom import Loom

CHILD = "from tests.forks.killed_child import main; main({store!r}, {run!r}, {at}, {numbers})"


async def check_kills(path: Path, numbers: range) -> None:
    """Whatever is left of a fork is all of it, and another process continues it to its end."""
    store = str(path / "desk.db")
    async with Loom(store=store, engine=clerk) as app:
        run = await app.start(write_folder(path, DESK))
        at = (await at_rest(run)).seq
        await run.answer(None, "tea")
        await run.finished()
        original = await app.history.events(run.id)
    code = CHILD.format(store=store, run=run.id, at=at, numbers=numbers)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert int(done.stdout) > len(numbers) // 2
    async with Loom(store=store, engine=clerk) as app:
        forks = [each.run for each in await app.runs() if each.run != run.id]
        assert 0 < len(forks) < len(numbers)
        for fork in forks:
            assert (await (await app.resume(fork)).finished()).kind == "run.finished"
            assert (await app.history.events(fork))[:at] == original[:at]
            assert (await app.explain.variable(fork, "tone")).value == "cool"
            assert (await app.history.replay(fork)).divergence is None
        assert await app.history.events(run.id) == original
    assert sold == {"tea": 1}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    sold.clear()
    monkeypatch.setenv("DESK_KEY", "s3cr3t")


async def test_kills(tmp_path: Path) -> None:
    await check_kills(tmp_path, range(8, 38, 10))


@pytest.mark.doors
async def test_kills_before_every_statement(tmp_path: Path) -> None:
    await check_kills(tmp_path, range(8, 50))
