"""MCP servers of the official package, over stdio and HTTP, do what every tool server does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.adapters.mcp.servers import HttpServer, offering, used
from turnloom.adapters.mcp import McpServer
from turnloom.agents.spec import ToolServer
from turnloom.testing.contracts import ToolServerContract

# What a program stays for; the others end it.
STAYING = [
    name for name in dir(ToolServerContract) if name.startswith("test_") and "clos" not in name
]


class Used(ToolServerContract):
    """The suite against a server that is there."""

    def __init__(self, server: ToolServer) -> None:
        self._server = server

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ToolServer, None]:
        yield self._server


async def test_one_program_does_everything_over_stdio() -> None:
    async with used(McpServer("offering", **offering())) as server:
        for name in STAYING:
            await getattr(Used(server), name)()


async def test_a_program_is_closed() -> None:
    for close in (ToolServerContract.test_closing_before_use, Used.test_closing):
        async with used(McpServer("offering", **offering())) as server:
            await close(Used(server))


class HttpContract(ToolServerContract):
    kind: str
    url: str

    @pytest.fixture(autouse=True)
    def _server(self, http_server: HttpServer) -> None:
        self.url = http_server.url(self.kind)

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ToolServer, None]:
        async with used(McpServer("offering", url=self.url)) as server:
            yield server


class TestHttp(HttpContract):
    kind = "events"


class TestHttpWithSessions(HttpContract):
    kind = "sessions"


class TestHttpWithSessionsInJson(HttpContract):
    kind = "json"
