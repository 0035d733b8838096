"""MCP servers behind URLs that are gone, refuse, hang, forget, flood: a sentence in time."""

import gzip
import json
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from anyio import to_thread
from mcp import MCPError

from tests.adapters.mcp.servers import (
    PATIENCE,
    HttpServer,
    Reply,
    Stub,
    answering,
    refusal,
    used,
)
from tests.support.loopback import listening, stay_silent
from tests.support.servers import free_port
from turnloom.adapters.mcp import McpServer
from turnloom.errors import ToolServerError

TIMEOUT = 30.0
SECRET = "a-secret-of-ours"
FINE = {"content": [{"type": "text", "text": "fine"}]}


def fine(message: Any) -> Reply:
    return Reply(answering(message, FINE))


def at(url: str, timeout: float = TIMEOUT, **more: Any) -> AbstractAsyncContextManager[McpServer]:
    return used(McpServer("far", url=url, timeout=timeout, **more))


@asynccontextmanager
async def stubbed(
    answer: Callable[[Any], Reply | None], **more: Any
) -> AsyncGenerator[tuple[McpServer, Stub], None]:
    stub = Stub(answer, **more)
    async with listening(stub) as port:
        headers = {"Authorization": f"Bearer {SECRET}"}
        async with at(f"http://127.0.0.1:{port}/mcp", headers=headers) as server:
            yield server, stub


@pytest.fixture
def own_server() -> Generator[HttpServer, None, None]:
    server = HttpServer()
    try:
        server.start()
        yield server
    finally:
        server.discard()


async def restart(server: HttpServer) -> None:
    await to_thread.run_sync(server.stop, signal.SIGKILL)
    await to_thread.run_sync(server.start)


async def test_nobody_is_there() -> None:
    async with at(f"http://127.0.0.1:{free_port()}/mcp") as server:
        for _ in range(2):
            error = await refusal(server, "say")
            assert isinstance(error.__cause__, httpx2.ConnectError)
            assert "'far'" in str(error) and "`url`" in str(error)


@pytest.mark.parametrize("url", ["http://:x/", "ftp://127.0.0.1/mcp", "127.0.0.1:80", "http://"])
async def test_no_url(url: str) -> None:
    async with at(url) as server:
        assert "`url`" in str(await refusal(server, "say"))


async def test_a_header_that_cannot_be_one() -> None:
    async with at("http://127.0.0.1:1/mcp", headers={"x-key": "ü😀"}) as server:
        error = await refusal(server, "say")
    assert isinstance(error.__cause__, UnicodeEncodeError) and "'far'" in str(error)


async def test_silence(strict_loop: None) -> None:
    async with listening(stay_silent) as port:
        async with at(f"http://127.0.0.1:{port}/mcp", 0.5) as server:
            for _ in range(2):
                error = await refusal(server, "say")
                assert isinstance(error.__cause__, TimeoutError)
                for value in ("'far'", "0.5 s", "'say'"):
                    assert value in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"Oh.", 500, "text/plain"),
        Reply(b'{"detail": "Oh."}', 500),
        Reply(b"x" * 999_999, 401),
        Reply(b"", 404),
    ],
)
async def test_a_refusal(reply: Reply) -> None:
    async with stubbed(lambda message: reply, greets=False) as (server, _):
        error = await refusal(server, "say")
    assert isinstance(error.__cause__, MCPError)
    assert "'far'" in str(error) and f"HTTP {reply.status}" in str(error)
    assert len(str(error)) < 300


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_leads_to_no_other_host(status: int) -> None:
    """A server of tools cannot have us ask another address, nor send our headers there."""
    other = Stub(fine)
    async with listening(other) as port:
        there = Reply(b"", status, headers=f"Location: http://127.0.0.1:{port}/mcp\r\n")
        async with stubbed(lambda _: there) as (server, stub):
            await refusal(server, "say")
        assert "tools/call" in stub.seen and other.seen == []


async def test_a_call_that_is_refused() -> None:
    replies = [Reply(b"Oh.", 503, "text/plain")]
    problem = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "No such tool."}}
    replies.append(Reply(json.dumps(problem).encode(), 400))
    async with stubbed(lambda message: replies.pop(0) if replies else fine(message)) as (server, _):
        for reason in ("HTTP 503", "No such tool."):
            error = await refusal(server, "say")
            assert isinstance(error.__cause__, MCPError)
            assert "'say'" in str(error) and reason in str(error)
        assert await server.call("say", {}) == "fine"


async def test_headers_are_sent_and_secrets_kept() -> None:
    def tell(message: Any) -> Reply:
        text = {"type": "text", "text": f"Unknown token {SECRET}"}
        return Reply(answering(message, {"content": [text], "isError": True}))

    async with stubbed(tell) as (server, stub):
        error = str(await refusal(server, "say"))
    assert "Unknown token …" in error and SECRET not in error
    assert all(f"bearer {SECRET}" in head.lower() for head in stub.heads)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"<html>", kind="text/html"), "text/html"),
        (Reply(b"{"), "JSON"),
        (Reply(b'"' + b"x" * 5_000_000 + b'"'), "4194304"),
        (Reply(status=202), "202"),
        (Reply(b"data: {}\n\n", kind="text/event-stream"), ""),
        (Reply(b"", kind="text/event-stream"), "SSE"),
        (Reply(b"data: " + b"x" * 5_000_000 + b"\n\n", kind="text/event-stream"), "SSE"),
        (
            Reply(gzip.compress(b" " * 9_000_000), headers="content-encoding: gzip\r\n"),
            "JSON",
        ),
    ],
)
async def test_an_answer_that_cannot_be_used(reply: Reply, said: str) -> None:
    given = [reply]
    async with stubbed(lambda message: given.pop() if given else fine(message)) as (server, stub):
        error = await refusal(server, "say")
        assert isinstance(error.__cause__, MCPError)
        assert "'say'" in str(error) and said in str(error)
        assert await server.call("say", {}) == "fine"
        assert stub.seen.count("initialize") == 1
    assert "GET" not in stub.seen


async def test_a_connection_that_breaks() -> None:
    given: list[Reply | None] = [None]
    async with stubbed(lambda message: given.pop() if given else fine(message)) as (server, _):
        error = await refusal(server, "say")
        assert isinstance(error.__cause__, httpx2.RemoteProtocolError)
        assert await server.call("say", {}) == "fine"


async def test_a_session_that_was_forgotten() -> None:
    gone = [Reply(b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "?"}}', 404)]

    def forget(message: Any) -> Reply:
        return gone.pop() if gone else fine(message)

    async with stubbed(forget, session="s1") as (server, stub):
        assert await server.call("say", {}) == "fine"
    assert stub.seen.count("initialize") == 2
    assert stub.seen[-1] == "DELETE"


@pytest.mark.doors
async def test_a_server_that_does_not_let_go() -> None:
    async with stubbed(fine, session="s1") as (server, stub):
        assert await server.call("say", {}) == "fine"
        stub.clings = True
        with anyio.fail_after(PATIENCE):
            await server.aclose()
    assert stub.seen[-1] == "DELETE"


async def test_sessions_that_are_always_forgotten() -> None:
    async with stubbed(lambda message: Reply(b"", 404), session="s1") as (server, stub):
        error = await refusal(server, "say")
    assert isinstance(error.__cause__, MCPError) and "HTTP 404" in str(error)
    assert stub.seen.count("tools/call") == 2


async def test_killed_during_a_call_and_between_calls(own_server: HttpServer) -> None:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(aclosing(McpServer(kind, url=own_server.url(kind))))
            for kind in ("events", "sessions", "json")
        ]
        refused: list[ToolServerError] = []

        async def wait(server: McpServer) -> None:
            refused.append(await refusal(server, "wait"))

        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(wait, server)
                while await server.call("waiting", {}) != "1":
                    await anyio.lowlevel.checkpoint()
            await restart(own_server)
            for server in servers:
                assert await server.call("say", {"text": "x"}) == "x"
        assert len(refused) == 3
        await restart(own_server)
        for server in servers:
            assert await server.call("say", {"text": "y"}) == "y"


@pytest.mark.parametrize("kind", ["events", "json"])
async def test_a_tool_that_hangs(kind: str, http_server: HttpServer) -> None:
    async with at(http_server.url(kind), 2.0) as server:
        assert await server.call("say", {"text": "x"}) == "x"
        error = await refusal(server, "wait")
        assert isinstance(error.__cause__, TimeoutError)
        assert "2 s" in str(error) and "'wait'" in str(error)
        assert await server.call("say", {"text": "y"}) == "y"


async def test_a_tool_that_wants_arguments_as_headers(http_server: HttpServer) -> None:
    async with at(http_server.url("mirrored")) as server:
        assert await server.call("mirrored", {"region": "north"}) == "mirrored"


async def test_a_tool_that_asks_back(http_server: HttpServer) -> None:
    async with at(http_server.url("events")) as server:
        error = await refusal(server, "ask")
    assert error.__cause__ is None and "'ask'" in str(error)
