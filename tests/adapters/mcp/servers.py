"""MCP servers to talk to."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.servers import Server
from turnloom.adapters.mcp import McpServer
from turnloom.errors import ToolServerError

HERE = Path(__file__).parent
PATIENCE = 60.0
# A server inherits little; what it imports is where the tests find it.
ENV = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@asynccontextmanager
async def used(server: McpServer) -> AsyncGenerator[McpServer, None]:
    """A server that is closed in the end, without leaving a task behind."""
    before = asyncio.all_tasks()
    try:
        yield server
    finally:
        with anyio.fail_after(PATIENCE):
            await server.aclose()
        left = [task.get_name() for task in asyncio.all_tasks() - before]
        # Some tests serve in the same loop.
        assert not [name for name in left if name.startswith(("turnloom.", "mcp."))]


async def refusal(server: McpServer, tool: str, **arguments: Any) -> ToolServerError:
    """What a call is refused with."""
    with anyio.fail_after(PATIENCE), pytest.raises(ToolServerError) as raised:
        await server.call(tool, arguments)
    return raised.value


async def settle() -> None:
    """Let the loop act on everything that has arrived."""
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


def offering() -> dict[str, Any]:
    """How to start a server of the official package over stdio."""
    return {"command": [sys.executable, str(HERE / "offering.py"), "stdio"], "env": ENV}


def raw(**told: Any) -> list[str]:
    """The command of a program that misbehaves as it is told."""
    return [sys.executable, "-S", str(HERE / "raw.py"), json.dumps(told)]


class HttpServer(Server):
    """Servers of the official package over HTTP, of all kinds, in one process."""

    def url(self, kind: str) -> str:
        return f"http://127.0.0.1:{self.port}/{kind}/mcp"

    def command(self) -> list[str]:
        return [sys.executable, str(HERE / "offering.py"), "http", str(self.port)]

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
        except OSError:
            return False
        return True


class Reply(NamedTuple):
    """An HTTP answer, or none at all."""

    body: bytes = b""
    status: int = 200
    kind: str = "application/json"
    headers: str = ""


class Stub:
    """An HTTP server by hand: greets as MCP servers do, and answers tools as it is told."""

    def __init__(
        self, answer: Callable[[Any], Reply | None], *, session: str = "", greets: bool = True
    ) -> None:
        self.answer = answer
        self.greets = greets
        # Whether it never answers that somebody parts.
        self.clings = False
        self.session = session
        self.seen: list[str] = []
        self.heads: list[str] = []

    async def __call__(self, stream: ByteStream) -> None:
        incoming = BufferedByteReceiveStream(stream)
        async with stream:
            while True:
                try:
                    head = (await incoming.receive_until(b"\r\n\r\n", 65536)).decode()
                except (anyio.IncompleteRead, anyio.BrokenResourceError):
                    return
                length = head.lower().partition("content-length: ")[2].partition("\r")[0]
                body = await incoming.receive_exactly(int(length or 0))
                self.heads.append(head)
                reply = await self._reply(head.partition(" ")[0], json.loads(body or b"{}"))
                if reply is None:
                    return
                await stream.send(_response(reply))

    async def _reply(self, verb: str, message: Any) -> Reply | None:
        method = message.get("method", verb)
        self.seen.append(method)
        match method:
            case _ if not self.greets:
                return self.answer(message)
            case "server/discover":
                return Reply(b"What?", 400, "text/plain")
            case "initialize":
                greeting = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                result = greeting | {"serverInfo": {"name": "stub", "version": "1"}}
                session = f"mcp-session-id: {self.session}\r\n" if self.session else ""
                return Reply(answering(message, result), headers=session)
            case "notifications/initialized" | "notifications/cancelled":
                return Reply(status=202)
            case "DELETE" if self.session:
                if self.clings:
                    await anyio.sleep_forever()
                return Reply()
            case _:
                return self.answer(message)


def answering(message: Any, result: Any) -> bytes:
    """The answer to a message."""
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def _response(reply: Reply) -> bytes:
    status = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n"
    about = f"content-type: {reply.kind}\r\ncontent-length: {len(reply.body)}\r\n"
    return f"{status}{about}{reply.headers}\r\n".encode() + reply.body
