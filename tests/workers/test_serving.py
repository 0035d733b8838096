"""With workers, a server only serves: it starts and follows what they drive."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.support.serving import PATIENCE, call, follow, server_process

pytestmark = pytest.mark.doors


async def test_a_server_beside_a_worker_drives_nothing(tmp_path: Path, postgres_url: str) -> None:
    settings = {"TURNLOOM_STORE": postgres_url, "TURNLOOM_SCHEDULER": "procrastinate"}
    async with server_process(tmp_path, **settings) as server, asyncio.timeout(3 * PATIENCE):
        await server.start()
        _, begun = await call(server, "POST", "/runs", {"workflow": "Short"})
        before = (await call(server, "GET", f"/runs/{begun['run']}"))[1]
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "turnloom", "worker", "--workflows", "workflows"),
            cwd=tmp_path,
            env={**os.environ, **settings},
        )
        try:
            frames = await follow(server, begun["run"])
        finally:
            worker.terminate()
            await worker.wait()
        kinds = [each.data["event"]["kind"] for each in frames if each.event == "message"]
        assert before["status"] == "unfinished" and "turn.started" in kinds[before["events"] :]
        assert (kinds[0], kinds[-1], frames[-1].event) == ("run.started", "run.finished", "end")
