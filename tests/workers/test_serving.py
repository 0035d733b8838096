"""With workers, a server only serves: it starts and follows what they drive."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.support.folders import as_json, write_folder
from tests.support.serving import PATIENCE, call, follow, server_process

pytestmark = pytest.mark.doors

# Says which process drives it.
WHO = as_json(
    {
        "orchestrator.yaml": "{initial_agent: Driver}",
        "agents.yaml": """
            agents:
              Driver:
                system_message: Say who drives.
                engine: {type: functions, file: driving.py, function: process}
            """,
        "driving.py": """
            import os

            async def process(task):
                return f"process {os.getpid()}"
            """,
    }
)


async def test_a_server_beside_a_worker_drives_nothing(tmp_path: Path, postgres_url: str) -> None:
    settings = {"TURNLOOM_STORE": postgres_url, "TURNLOOM_SCHEDULER": "procrastinate"}
    async with server_process(tmp_path, **settings) as server, asyncio.timeout(3 * PATIENCE):
        write_folder(tmp_path / "workflows", WHO, "Who")
        await server.start()
        _, begun = await call(server, "POST", "/runs", {"workflow": "Who"})
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
        events = [each.data["event"] for each in frames if each.event == "message"]
        kinds = [each["kind"] for each in events]
        texts = [each["data"]["text"] for each in events if each["kind"] == "agent.text"]
        assert before["status"] == "unfinished" and texts == [f"process {worker.pid}"]
        assert (kinds[0], kinds[-1], frames[-1].event) == ("run.started", "run.finished", "end")
