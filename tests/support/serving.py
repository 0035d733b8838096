"""`turnloom serve` in a process of its own, and clients with sockets."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from tests.support.folders import as_json, write_folder
from tests.support.served import CHAT, SHORT, Frame
from turnloom import Loom

PATIENCE = 60.0
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")

# Speaks as often as `TURNS` says, each time after `PAUSE` seconds (and once there is a file `GATE`,
# if one is named), with texts of `SIZE` characters.
COUNT = as_json(
    {
        "orchestrator.yaml": "{initial_agent: Counter}",
        "agents.yaml": """
            agents:
              Counter:
                system_message: Count.
                engine: {type: functions, file: counting.py, function: count}
            """,
        "context_variables.yaml": """
            definitions:
              done:
                type: boolean
                source:
                  type: derived
                  default: false
                  triggers: [{type: agent_text, agent: Counter, match: {contains: END}}]
            agents: {Counter: {variables: [done]}}
            """,
        "handoffs.yaml": """
            handoff_rules:
              - source_agent: Counter
                target_agent: terminate
                handoff_type: condition
                condition: ${done} == True
              - {source_agent: Counter, target_agent: Counter, handoff_type: after_work}
            """,
        "counting.py": """
            import asyncio
            import os

            async def count(task):
                gate = os.environ.get("GATE")
                while gate and not os.path.exists(gate):
                    await asyncio.sleep(0.02)
                await asyncio.sleep(float(os.environ.get("PAUSE", "0")))
                last = task.number >= int(os.environ.get("TURNS", "3"))
                task.say("some ")
                text = "x" * int(os.environ.get("SIZE", "1"))
                return f"{'END' if last else 'more'} {task.number} {text}"
            """,
    }
)

APP = """
from pydantic import BaseModel, ConfigDict
from turnloom import Flow, artifact_type

class Sum(BaseModel):
    model_config = ConfigDict(frozen=True)
    numbers: list[int] = []
    total: int = 0

async def check(state):
    return {}

async def add(state):
    return {"total": sum(state.numbers)}

@artifact_type
class Note(BaseModel):
    text: str

def declare(app):
    app.register_flow(Flow("adding", Sum).start_with(check).finally_(add))
    for tenant in ("local", "acme"):
        app.board(f"notes-{tenant}", app_id=tenant).register(Note)
"""


class ServerProcess:
    """A server in a folder; it may be killed and started again at the same port."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.port = 0
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        for name, files in (("Chat", CHAT), ("Short", SHORT), ("Count", COUNT)):
            write_folder(folder / "workflows", files, name)
        (folder / "served_app.py").write_text(APP)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, *options: str, app: str = "served_app:declare") -> None:
        words = ["-m", "turnloom", "serve", "--port", str(self.port), *options]
        inherited = {name: value for name, value in os.environ.items() if name[:3] != "COV"}
        with (self.folder / "errors").open("a") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *words,
                "--app",
                app,
                cwd=self.folder,
                env={**inherited, **self._environment, "PYTHONUNBUFFERED": "1"},
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await self._process.stdout.readline()).decode()
        found = ADDRESS.search(line)
        assert found, line + (self.folder / "errors").read_text()
        self.port = int(found[1])

    async def kill(self) -> None:
        """End the process at once."""
        await self.stop(signal.SIGKILL)

    def send(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the process; its exit code."""
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.send_signal(how)
        return await self.wait()

    async def wait(self) -> int:
        """Wait for the end of the process; its exit code."""
        assert self._process is not None
        async with asyncio.timeout(PATIENCE):
            await self._process.communicate()
        code = self._process.returncode
        self._process = None
        assert code is not None
        return code

    async def keys(self, **who: str) -> dict[str, str]:
        """Tokens by name, of persons written as `tenant:user:role`."""
        found: dict[str, str] = {}
        async with Loom(store=self.folder / ".turnloom" / "turnloom.db") as app:
            for name, said in who.items():
                tenant, user, role = said.split(":")
                made = await app.keys.create(user, role=role, app_id=tenant)  # type: ignore[arg-type]
                found[name] = made.token
        return found


@asynccontextmanager
async def server_process(folder: Path, **environment: str) -> AsyncGenerator[ServerProcess]:
    """A server that is stopped in the end."""
    server = ServerProcess(folder, **environment)
    try:
        yield server
    finally:
        await server.kill()


class Connection:
    """A connection to a server: one request at a time, or a stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self._left = b""

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        root: str = "",
    ) -> None:
        """Send a request to the API, which is mounted at `root`, and read the head of its
        response."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {root}/api/v1{path} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        await self.writer.drain()
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split()[1])
        pairs = (line.partition(": ") for line in head[1:] if line)
        self.headers = {name.lower(): value for name, _, value in pairs}

    async def body(self) -> Any:
        """The body of a response, as JSON."""
        size = int(self.headers.get("content-length", "0"))
        data = await self.reader.readexactly(size)
        return json.loads(data) if data else None

    async def next(self) -> Frame | None:
        """The next frame of a stream; None at its end, also when the connection breaks."""
        while b"\n\n" not in self._left:
            try:
                size = int(await self.reader.readuntil(b"\r\n"), 16)
                chunk = await self.reader.readexactly(size + 2)
            except (asyncio.IncompleteReadError, ConnectionError, ValueError):
                return None
            if not size:
                return None
            self._left += chunk[:-2]
        block, _, self._left = self._left.partition(b"\n\n")
        fields = dict(line.partition(": ")[::2] for line in block.decode().split("\n"))
        if "data" not in fields:
            return await self.next()
        return Frame(**{**fields, "data": json.loads(fields["data"])})  # type: ignore[arg-type]

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def connected(
    server: ServerProcess, limit: int = 2**24, room: int | None = None
) -> AsyncGenerator[Connection]:
    """A connection that is closed in the end, and reads `limit` bytes ahead. The system keeps
    `room` bytes that were not read yet, or as many as it likes."""
    with closing(socket.socket()) as peer:
        if room is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_connect(peer, ("127.0.0.1", server.port))
        connection = Connection(*await asyncio.open_connection(sock=peer, limit=limit))
        try:
            yield connection
        finally:
            connection.close()


async def call(
    server: ServerProcess,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """The status and the body of a response."""
    async with asyncio.timeout(PATIENCE), connected(server) as connection:
        await connection.ask(method, path, body, headers)
        return connection.status, await connection.body()


async def follow(
    server: ServerProcess, run: str, *, after: int = 0, headers: Mapping[str, str] | None = None
) -> list[Frame]:
    """The frames of a stream up to its end."""
    frames: list[Frame] = []
    asks = {"Accept": "text/event-stream", "Last-Event-ID": str(after), **(headers or {})}
    async with asyncio.timeout(PATIENCE), connected(server) as connection:
        await connection.ask("GET", f"/runs/{run}/events", headers=asks)
        while (frame := await connection.next()) is not None:
            frames.append(frame)
    return frames
