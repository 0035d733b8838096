"""Processes that learn at the same time do not overwrite each other."""

import os
import sys
from pathlib import Path

import anyio

from tests.guards.desks import POOL
from turnloom.adapters.sqlite import SqliteStore
from turnloom.guards.spec import Belief
from turnloom.runtime.logic import codec

LEARNER = Path(__file__).with_name("learner.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


async def learn(path: Path, first: int) -> None:
    """Let another process add sixty outcomes."""
    command = [sys.executable, str(LEARNER), str(path), str(first), str(first + 60)]
    await anyio.run_process(command, env=ENVIRONMENT, stderr=None)


async def test_processes_on_one_file_lose_and_double_nothing(tmp_path: Path) -> None:
    """Half of what each knows, the next one knows too."""
    path = tmp_path / "turnloom.db"
    with anyio.fail_after(50):
        async with anyio.create_task_group() as processes:
            for first in (0, 30):
                processes.start_soon(learn, path, first)
    store = SqliteStore(path, codec())
    assert await store.beliefs.beliefs(POOL, ["Ann"]) == {"Ann": Belief(22.5, 67.5)}
    await store.aclose()
