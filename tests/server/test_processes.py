"""Servers in processes: many streams, slow readers, kills, stops in order."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.serving import (
    PATIENCE,
    Connection,
    ServerProcess,
    call,
    connected,
    follow,
    server_process,
)
from turnloom import Loom

pytestmark = pytest.mark.doors

STREAM = {"Accept": "text/event-stream"}


async def start(server: ServerProcess, workflow: str) -> str:
    status, run = await call(server, "POST", "/runs", {"workflow": workflow})
    assert status == 201, run
    return run["run"]


def limited(folder: Path, **limits: float) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in limits.items())
    (folder / "turnloom.toml").write_text(f"[server]\n{lines}\n")


@pytest.mark.timeout(600)
async def test_many_streams_at_once(tmp_path: Path) -> None:
    limited(tmp_path, streams=2000, requests_per_minute=100_000, starts_per_minute=100_000)
    async with server_process(tmp_path, TURNS="5", PAUSE="0.3") as server:
        await server.start()
        run = await start(server, "Count")
        found = await asyncio.gather(*(follow(server, run) for _ in range(200)))
        seqs = [[frame.id for frame in frames if frame.event == "message"] for frames in found]
        assert all(each == seqs[0] for each in seqs) and len(seqs[0]) > 20
        chat = [await start(server, "Chat") for _ in range(1000)]
        async with AsyncExitStack() as opened, asyncio.timeout(5 * PATIENCE):
            connections: list[Connection] = []
            for run in chat:  # a client that opens a connection has some seconds to ask
                connections.append(await opened.enter_async_context(connected(server)))
                await connections[-1].ask("GET", f"/runs/{run}/events", headers=STREAM)
            firsts = [await connection.next() for connection in connections]
            assert all(frame is not None and frame.id == "1" for frame in firsts)
            assert (await call(server, "GET", "/me"))[0] == 200
        assert await server.stop() == 0


def sent_ahead() -> int:
    """The most bytes that the system takes from a server before its client reads them."""
    try:
        return int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
    except OSError:
        return 2**22


SIZE = 200_000


async def test_a_reader_that_stops_reading_slows_no_run(tmp_path: Path) -> None:
    """Its run is more than fits between the two, so that the server waits for it, and cuts it off
    before it reads again."""
    limited(tmp_path, slow_seconds=0.2, stalled_seconds=0.5, streams=2)
    turns = str(max(60, 4 * sent_ahead() // SIZE))
    async with server_process(tmp_path, TURNS=turns, SIZE=str(SIZE)) as server:
        await server.start()
        run, other = await start(server, "Count"), await start(server, "Chat")
        async with connected(server, limit=2**16, room=2**16) as slow:
            await slow.ask("GET", f"/runs/{run}/events", headers=STREAM)
            frames = await follow(server, run)
            assert frames[-1].event == "end"
            async with connected(server) as open_stream:
                await open_stream.ask("GET", f"/runs/{other}/events", headers=STREAM)
                assert open_stream.status == 200
                await until_cut_off(server, other)
            seen = []
            async with asyncio.timeout(PATIENCE):
                while (frame := await slow.next()) is not None:
                    seen.append(frame)
        total = [int(frame.id) for frame in frames if frame.id]
        last = max((int(frame.id or 0) for frame in seen), default=0)
        assert last < total[-1] and "end" not in {frame.event for frame in seen}
        rest = await follow(server, run, after=last)
        assert [int(frame.id) for frame in [*seen, *rest] if frame.id] == total


async def until_cut_off(server: ServerProcess, run: str) -> None:
    """Wait until another stream may be open beside one that is."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with connected(server) as connection:
                await connection.ask("GET", f"/runs/{run}/events", headers=STREAM)
                if connection.status == 200:
                    return
            assert connection.status == 429
            await asyncio.sleep(0.05)


@pytest.mark.timeout(600)
async def test_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    async with server_process(tmp_path, TURNS="12", PAUSE="0.05") as server:
        await server.start()
        run = await start(server, "Count")
        ids: list[int] = []
        kills = 0
        async with asyncio.timeout(3 * PATIENCE):
            while True:
                frames = []
                async with connected(server) as connection:
                    last = {**STREAM, "Last-Event-ID": str(ids[-1] if ids else 0)}
                    await connection.ask("GET", f"/runs/{run}/events", headers=last)
                    while (frame := await connection.next()) is not None:
                        frames.append(frame)
                        enough = sum(each.event == "message" for each in frames) >= 9 + kills
                        if kills < 5 and enough:
                            await server.kill()
                            kills += 1
                ids += [int(frame.id) for frame in frames if frame.id]
                if frames and frames[-1].event == "end":
                    break
                await server.start()
        assert kills == 5 and ids == [*range(1, len(ids) + 1)]
        _, read = await call(server, "GET", f"/runs/{run}")
        assert (read["status"], read["events"]) == ("finished", len(ids))
    async with Loom(store=tmp_path / ".turnloom" / "turnloom.db") as app:
        texts = [event for event in await app.history.events(run) if event.kind == "agent.text"]
        assert len(texts) == 12
        assert (await app.history.replay(run)).divergence is None


async def test_a_server_that_is_told_to_stop_drains(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with server_process(tmp_path, TURNS="1", GATE=str(gate)) as server:
        await server.start("--grace", str(PATIENCE))
        run = await start(server, "Count")
        async with connected(server) as connection:
            await connection.ask("GET", f"/runs/{run}/events", headers=STREAM)
            while (frame := await connection.next()) is not None:
                if frame.event == "message" and frame.data["event"]["kind"] == "model.called":
                    break
            server.send(signal.SIGTERM)
            while frame is not None and frame.event != "cut":
                frame = await connection.next()
            assert frame is not None and frame.data["reason"] == "stopping"
        gate.touch()
        assert await server.wait() == 0
    async with Loom(store=tmp_path / ".turnloom" / "turnloom.db") as app:
        assert (await app.handle(run).summary()).status == "finished"


async def test_a_server_continues_what_it_finds_and_what_gets_mail(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        store = tmp_path / ".turnloom" / "turnloom.db"
        async with Loom(store=store) as app:
            folder = str(tmp_path / "workflows" / "Chat")
            run = await app.start(folder, app_id="acme")
            async for event in run.events():
                if event.kind == "run.paused":
                    break
        await server.start()
        async with Loom(store=store) as app:
            other = app.handle(run.id, app_id="acme")
            await other.answer(None, "More.")
            async with asyncio.timeout(PATIENCE):
                texts = 0
                async for event in other.events():
                    texts += event.kind == "agent.text"
                    if texts == 2:
                        break
        assert await server.stop() == 0


async def test_a_client_that_sends_half_a_head_is_cut_off(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /api/v1/me HTTP/1.1\r\nHost: local")
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    "options",
    [
        ["--workflows", "nowhere"],
        ["--app", "nowhere:app"],
        ["--app", "served_app:nothing"],
        ["--app", "served_app"],
        ["--host", "0.0.0.0"],
        ["--host", "256.1.1.1"],
        ["--port", "taken"],
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, options: list[str]) -> None:
    ServerProcess(tmp_path)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        words = [port if each == "taken" else each for each in options]
        if "--port" not in words:
            words += ["--port", "0"]
        done = subprocess.run(
            [sys.executable, "-m", "turnloom", "serve", *words],
            cwd=tmp_path,
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 2 and done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
