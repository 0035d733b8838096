"""Whether a server is ready: its store is reached, with the schema of this release."""

import asyncio
import signal
import sqlite3
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from tests.support.servers import PostgresServer
from tests.support.serving import PATIENCE, ServerProcess, server_process

pytestmark = pytest.mark.doors

READY = {"store": "ok", "schema": "ok", "scheduler": "ok"}
OTHER = {**READY, "schema": "of another release"}


class Probe:
    """Asks a server how it is, as an orchestrator does."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server

    async def ready(self) -> tuple[int, dict[str, str]]:
        """The status and the checks; nothing else is said, and the server lives."""
        assert await asyncio.to_thread(self._get, "live") == (200, {"status": "ok", "checks": {}})
        status, said = await asyncio.to_thread(self._get, "ready")
        assert said.keys() == {"status", "checks"}
        return status, said["checks"]

    async def until(self, status: int) -> dict[str, str]:
        """The checks, once they have a status."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found, checks = await self.ready()
                if found == status:
                    return checks
                await asyncio.sleep(0.05)

    def _get(self, what: str) -> tuple[int, Any]:
        try:
            found = urllib.request.urlopen(f"{self.server.url}/health/{what}", timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            found = error
        with closing(found):
            return found.status or 0, msgspec.json.decode(found.read())


@asynccontextmanager
async def probed(folder: Path, **environment: str) -> AsyncGenerator[Probe]:
    async with server_process(folder, **environment) as server:
        await server.start()
        yield Probe(server)


async def test_a_file_of_another_release(tmp_path: Path) -> None:
    async with probed(tmp_path) as probe:
        assert await probe.until(200) == READY
        path = tmp_path / ".turnloom" / "turnloom.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            ((version,),) = file.execute("PRAGMA user_version")
            for other in (version + 1, version - 1, 1):
                file.execute(f"PRAGMA user_version = {other}")
                assert await probe.ready() == (503, OTHER)
            file.execute(f"PRAGMA user_version = {version}")
            assert await probe.ready() == (200, READY)
        path.rename(tmp_path / "elsewhere")
        assert (await probe.until(503))["store"] == "TURNLOOM-STORE"


def change(url: str, part: str, by: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        statement = "UPDATE turnloom_schema SET version = version + %s WHERE part = %s"
        assert connection.execute(statement, (by, part)).rowcount == 1


@pytest.mark.parametrize("scheduler", ["inline", "procrastinate"])
async def test_tables_of_another_release_and_a_server_that_is_down(
    tmp_path: Path, own_server: PostgresServer, scheduler: str
) -> None:
    url = own_server.url()
    parts = ["store"] if scheduler == "inline" else ["store", "scheduler"]
    settings = {"TURNLOOM_STORE": url, "TURNLOOM_SCHEDULER": scheduler}
    async with probed(tmp_path, **settings) as probe:
        assert await probe.until(200) == READY
        for part in parts:
            for by in (1, -2):
                await asyncio.to_thread(change, url, part, by)
                assert await probe.ready() == (503, OTHER)
            await asyncio.to_thread(change, url, part, 1)
            assert await probe.ready() == (200, READY)
        await asyncio.to_thread(own_server.stop, signal.SIGINT)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        status, checks = await probe.ready()
        assert (status, checks["store"]) == (503, "TURNLOOM-STORE")
        assert loop.time() - begun < 15  # a probe does not wait as long as a write does
        await asyncio.to_thread(own_server.start)
        assert await probe.until(200) == READY
