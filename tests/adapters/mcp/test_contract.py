"""MCP servers of the official package, over stdio and HTTP, do what every tool server does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.adapters.mcp.servers import HttpServer, offering, used
from turnloom.adapters.mcp import McpServer
from turnloom.agents.spec import ToolServer
from turnloom.testing.contracts import ToolServerContract

TIMEOUT = 30.0


class TestStdio(ToolServerContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ToolServer, None]:
        async with used(McpServer("offering", **offering(), timeout=TIMEOUT)) as server:
            yield server


class HttpContract(ToolServerContract):
    """The suite against one HTTP server that is started once; `url` is where it is."""

    kind: tuple[str, ...] = ()
    url = ""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def running(cls, request: pytest.FixtureRequest) -> None:
        behind = HttpServer(*cls.kind)
        request.addfinalizer(behind.discard)
        behind.start()
        cls.url = behind.url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ToolServer, None]:
        async with used(McpServer("offering", url=self.url, timeout=TIMEOUT)) as server:
            yield server


class TestHttp(HttpContract):
    """Streams of events."""


class TestHttpWithSessions(HttpContract):
    kind = ("handshake",)


class TestHttpWithSessionsInJson(HttpContract):
    kind = ("handshake", "json")
