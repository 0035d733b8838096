"""The API in an app of a user, which another server serves and stops."""

import asyncio
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.support.servers import free_port
from tests.support.serving import PATIENCE, Connection, ServerProcess, connected

pytestmark = pytest.mark.doors

STREAM = {"Accept": "text/event-stream"}

# A site of a user: its lifespan is the only one that runs. It works on a job that does not end.
SITE = """
import asyncio
import sys
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from turnloom import Loom
from turnloom.server import asgi

app = Loom()
app.workflows.add("workflows")
api = asgi(app)

@asynccontextmanager
async def lifespan(site):
    async with app:
        await app.serving.pick_up()
        forever = lambda run: asyncio.Event().wait()
        await api.state.served.jobs.start("local", "retry", "local", ["run"], work=forever)
        print("serves", flush=True)
        yield
    print("closed", flush=True)

site = FastAPI(lifespan=lifespan)
site.mount("/agents", api)
uvicorn.run(site, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_site_with_open_streams_and_jobs_stops(tmp_path: Path, how: signal.Signals) -> None:
    """Its server waits for open requests before it ends any lifespan."""
    server = ServerProcess(tmp_path)
    server.port = free_port()
    (tmp_path / "site_of_a_user.py").write_text(SITE)
    site = await asyncio.create_subprocess_exec(
        sys.executable,
        "site_of_a_user.py",
        str(server.port),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    assert site.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            assert await site.stdout.readline() == b"serves\n"
            run = await started(server)
            async with followed(server, run):
                pass  # the site is as before once no stream is open
            async with followed(server, run) as stream:
                site.send_signal(how)
                while (frame := await stream.next()) is not None and frame.event != "cut":
                    continue
                assert frame is not None and frame.data["reason"] == "stopping"
            assert await site.stdout.read() == b"closed\n"
            assert await site.wait() in (0, -how)
    finally:
        if site.returncode is None:
            site.kill()
            await site.wait()
    with closing(sqlite3.connect(tmp_path / ".turnloom" / "turnloom.db")) as store:
        assert store.execute("SELECT status FROM jobs").fetchall() == [("interrupted",)]


@asynccontextmanager
async def followed(server: ServerProcess, run: str) -> AsyncGenerator[Connection]:
    """A stream of a run that has begun."""
    async with connected(server) as stream:
        await stream.ask("GET", f"/runs/{run}/events", headers=STREAM, root="/agents")
        frame = await stream.next()
        assert stream.status == 200 and frame is not None and frame.id == "1"
        yield stream


async def started(server: ServerProcess) -> str:
    """The id of a run that waits for a person, once the site listens."""
    while True:
        try:
            async with connected(server) as connection:
                await connection.ask("POST", "/runs", {"workflow": "Chat"}, root="/agents")
                return (await connection.body())["run"]
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
