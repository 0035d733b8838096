"""The commands `worker`, `serve` and `store copy` as processes: started, stopped and killed."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from socket import create_server
from typing import Any

import psycopg
import pytest

from tests.flow.scenes import Work
from tests.support.serving import PATIENCE
from tests.upkeep.scenes import Order, cached, shop
from tests.upkeep.test_retention import failing
from turnloom import FlowFailed, Loom

pytestmark = pytest.mark.doors

COMMANDS = {"worker": ("worker",), "serve": ("serve", "--port", "0")}


def started(folder: Path, *words: str, store: str, **options: Any) -> "subprocess.Popen[str]":
    """A command in a folder; workers and servers use this store."""
    settings = {"TURNLOOM_STORE": store, "TURNLOOM_SCHEDULER": "procrastinate", "NO_COLOR": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "turnloom", *words],
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@asynccontextmanager
async def running(folder: Path, *words: str, store: str) -> AsyncGenerator[None]:
    """A command that runs until it is told to stop."""
    process = started(folder, *words, store=store)
    try:
        yield
    finally:
        process.terminate()
        _, said = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
    assert process.returncode == 0, said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_that_is_down_at_the_start(command: str, tmp_path: Path) -> None:
    with closing(create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    store = f"postgresql://ann:hunter2@127.0.0.1:{port}/shop"
    process = started(tmp_path, *COMMANDS[command], store=store)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("Error: ") and str(port) in line and "hunter2" not in line


@pytest.mark.parametrize("command", COMMANDS)
async def test_retention(command: str, tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "turnloom.toml").write_text('retention = "1h"\nkeep_failed = true\n')
    async with Loom(store=postgres_url) as app:
        for _ in range(2):
            await app.run(cached(), Work())
        with pytest.raises(FlowFailed):
            await app.run(failing, Work())
        with psycopg.connect(postgres_url) as server:
            server.execute(
                "UPDATE turnloom_runs SET ended = ended - 7200000000 "
                "WHERE n > (SELECT min(n) FROM turnloom_runs)"
            )
        async with running(tmp_path, *COMMANDS[command], store=postgres_url):
            async with asyncio.timeout(PATIENCE):
                while not (removals := await app.upkeep.removals()):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        assert sorted(each.status for each in await app.runs()) == ["failed", "finished"]
        assert [(each.by, each.runs) for each in removals] == [("retention", 1)]


async def test_a_copy_that_is_killed_is_repeated(tmp_path: Path, postgres_url: str) -> None:
    async with Loom(store=tmp_path / "a.db") as app:
        board = shop(app)
        await board.publish_many([Order(what=str(n)) for n in range(200)])
        await board.run_until_idle()
    copy = ("store", "copy", "a.db", postgres_url, "--json")
    async with Loom(store=postgres_url) as target:
        assert not await target.runs()
        process = started(tmp_path, *copy, store=postgres_url)
        try:
            async with asyncio.timeout(PATIENCE):
                while not await target.runs(1):
                    assert process.poll() is None
                    await asyncio.sleep(0)
        finally:
            process.kill()
            await asyncio.to_thread(process.communicate)
        before = len(await target.runs(300))
        assert 0 < before < 200
        assert not [each async for each in target.history.verify() if each.problems]
    again = started(tmp_path, *copy, store=postgres_url)
    out, err = await asyncio.to_thread(again.communicate, timeout=PATIENCE)
    assert again.returncode == 0, err
    found = json.loads(out)
    assert found["same"] == before and found["copied"] == 200 - before and not found["refused"]
    verify = started(tmp_path, "store", "verify", "--json", store=postgres_url)
    out, err = await asyncio.to_thread(verify.communicate, timeout=PATIENCE)
    assert (verify.returncode, json.loads(out)["runs"]) == (0, 200), err
