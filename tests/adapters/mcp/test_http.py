"""MCP servers behind URLs that are gone, refuse, hang, forget, flood: a sentence in time."""

import gzip
import json
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from tests.adapters.mcp.servers import HttpServer, Reply, Stub, answering, used
from tests.support.loopback import listening, stay_silent
from tests.support.servers import free_port
from turnloom.adapters.mcp import McpServer
from turnloom.adapters.mcp.connection import LEAVING
from turnloom.errors import ToolServerError

TIMEOUT = 10.0
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


async def complaint(server: McpServer, tool: str = "say") -> str:
    """What a call is refused with."""
    with anyio.fail_after(TIMEOUT), pytest.raises(ToolServerError) as raised:
        await server.call(tool, {"text": "x"})
    return str(raised.value)


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Generator[HttpServer, None, None]:
    server = HttpServer(*getattr(request, "param", ()))
    try:
        server.start()
        yield server
    finally:
        server.discard()


async def restart(server: HttpServer, how: signal.Signals = signal.SIGKILL) -> None:
    await to_thread.run_sync(server.stop, how)
    await to_thread.run_sync(server.start)


async def test_nobody_is_there() -> None:
    async with at(f"http://127.0.0.1:{free_port()}/mcp") as server:
        for _ in range(2):
            assert await complaint(server) == (
                "MCP server 'far' cannot be reached: All connection attempts failed. "
                "Check that it runs, and that its `url` is right."
            )


@pytest.mark.parametrize("url", ["http://:x/", "ftp://127.0.0.1/mcp", "127.0.0.1:80", "http://"])
async def test_no_url(url: str) -> None:
    async with at(url) as server:
        assert "and that its `url` is right." in await complaint(server)


async def test_a_header_that_cannot_be_one() -> None:
    async with at("http://127.0.0.1:1/mcp", headers={"x-key": "ü😀"}) as server:
        assert "MCP server 'far' cannot be" in await complaint(server)


async def test_silence(strict_loop: None) -> None:
    async with listening(stay_silent) as port:
        async with at(f"http://127.0.0.1:{port}/mcp", 0.5) as server:
            for _ in range(2):
                assert "'far' did not answer within 0.5 s when asked for tool 'say'." in (
                    await complaint(server)
                )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"Oh.", 500, "text/plain"), "HTTP 500 Internal Server Error"),
        (Reply(b'{"detail": "Oh."}', 500), "HTTP 500 Internal Server Error"),
        (Reply(b"x" * 999_999, 401), "HTTP 401 Unauthorized"),
        (Reply(b"", 404), "HTTP 404 Not Found"),
    ],
)
async def test_a_refusal(reply: Reply, said: str) -> None:
    async with stubbed(lambda message: reply, greets=False) as (server, _):
        assert await complaint(server) == (
            f"MCP server 'far' refused the connection: {said}. "
            "Check where it is and what it is given."
        )


async def test_a_call_that_is_refused() -> None:
    replies = [Reply(b"Oh.", 503, "text/plain")]
    problem = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "No such tool."}}
    replies.append(Reply(json.dumps(problem).encode(), 400))
    async with stubbed(lambda message: replies.pop(0) if replies else fine(message)) as (server, _):
        assert "refused tool 'say': HTTP 503 Service Unavailable." in await complaint(server)
        assert "refused tool 'say': No such tool." in await complaint(server)
        assert await server.call("say", {}) == "fine"


async def test_headers_are_sent_and_secrets_kept() -> None:
    def tell(message: Any) -> Reply:
        text = {"type": "text", "text": f"Unknown token {SECRET}"}
        return Reply(answering(message, {"content": [text], "isError": True}))

    async with stubbed(tell) as (server, stub):
        assert "failed: Unknown token … Check its arguments." in await complaint(server)
    assert all(f"bearer {SECRET}" in head.lower() for head in stub.heads)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"<html>", kind="text/html"), "refused tool 'say': Unexpected content type"),
        (Reply(b"{"), "refused tool 'say': Failed to parse JSON response"),
        (Reply(b'"' + b"x" * 5_000_000 + b'"'), "it has more than 4194304 bytes"),
        (Reply(status=202), "refused tool 'say': server answered a request with 202 Accepted"),
        (Reply(b"data: {}\n\n", kind="text/event-stream"), "refused tool 'say': "),
        (Reply(b"", kind="text/event-stream"), "SSE stream ended without a response"),
        (
            Reply(b"data: " + b"x" * 5_000_000 + b"\n\n", kind="text/event-stream"),
            "SSE stream failed: ",
        ),
        (
            Reply(gzip.compress(b" " * 9_000_000), headers="content-encoding: gzip\r\n"),
            "Failed to parse JSON response",
        ),
    ],
)
async def test_an_answer_that_cannot_be_used(reply: Reply, said: str) -> None:
    given = [reply]
    async with stubbed(lambda message: given.pop() if given else fine(message)) as (server, stub):
        assert said in await complaint(server)
        assert await server.call("say", {}) == "fine"
        assert stub.seen.count("initialize") == 1
    assert "GET" not in stub.seen


async def test_a_connection_that_breaks() -> None:
    given: list[Reply | None] = [None]
    async with stubbed(lambda message: given.pop() if given else fine(message)) as (server, _):
        assert "'far' cannot be reached: Server disconnected" in await complaint(server)
        assert await server.call("say", {}) == "fine"


async def test_a_session_that_was_forgotten() -> None:
    gone = [Reply(b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "?"}}', 404)]

    def forget(message: Any) -> Reply:
        return gone.pop() if gone else fine(message)

    async with stubbed(forget, session="s1") as (server, stub):
        assert await server.call("say", {}) == "fine"
    assert stub.seen.count("initialize") == 2
    assert stub.seen[-1] == "DELETE"


async def test_a_server_that_does_not_let_go() -> None:
    async with stubbed(fine, session="s1") as (server, stub):
        assert await server.call("say", {}) == "fine"
        stub.slow = 60
        with anyio.fail_after(LEAVING + 2):
            await server.aclose()
    assert stub.seen[-1] == "DELETE"


async def test_sessions_that_are_always_forgotten() -> None:
    async with stubbed(lambda message: Reply(b"", 404), session="s1") as (server, stub):
        assert "refused tool 'say': HTTP 404 Not Found." in await complaint(server)
    assert stub.seen.count("tools/call") == 2


@pytest.mark.parametrize("own_server", [(), ("handshake",), ("handshake", "json")], indirect=True)
async def test_a_server_that_is_started_again(own_server: HttpServer) -> None:
    async with at(own_server.url, 20.0) as server:
        assert await server.call("say", {"text": "x"}) == "x"
        await restart(own_server)
        assert await server.call("say", {"text": "y"}) == "y"


@pytest.mark.parametrize("own_server", [(), ("handshake",), ("handshake", "json")], indirect=True)
async def test_killed_during_a_call(own_server: HttpServer) -> None:
    async with at(own_server.url, 20.0) as server, anyio.create_task_group() as tasks:
        await server.tools()
        said: list[str] = []

        async def wait() -> None:
            said.append(await complaint(server, "wait"))

        tasks.start_soon(wait)
        await anyio.sleep(0.3)
        await restart(own_server)
        assert await server.call("say", {"text": "y"}) == "y"
    assert len(said) == 1


@pytest.mark.parametrize("own_server", [(), ("handshake", "json")], indirect=True)
async def test_a_tool_that_hangs(own_server: HttpServer) -> None:
    async with at(own_server.url, 1.0) as server:
        assert await server.call("say", {"text": "x"}) == "x"
        assert "did not answer within 1 s when asked for tool 'wait'" in await complaint(
            server, "wait"
        )
        assert await server.call("say", {"text": "y"}) == "y"


@pytest.mark.parametrize("own_server", [("mirrored",)], indirect=True)
async def test_a_tool_that_wants_arguments_as_headers(own_server: HttpServer) -> None:
    async with at(own_server.url, 20.0) as server:
        assert await server.call("mirrored", {"region": "north"}) == "mirrored"
