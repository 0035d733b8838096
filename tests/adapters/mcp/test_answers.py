"""What servers answer: every kind of content, and what no server should send."""

from base64 import b64encode
from typing import Any

import anyio
import pytest

from tests.adapters.mcp.servers import offering, used
from tests.adapters.mcp.test_stdio import complaint, lives, pid_of, started
from turnloom.adapters.mcp import McpServer
from turnloom.agents.spec import ToolSchema
from turnloom.errors import ToolServerError

OBJECT = {"type": "object"}
PICTURE = {"type": "image", "mimeType": "image/png", "data": b64encode(b"x" * 60_000).decode()}
SOUND = {"type": "audio", "mimeType": "audio/wav", "data": b64encode(b"xy").decode()}
TEXT = {"type": "text", "text": "Hi."}
PAGE = {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "A"}
BLOB = {"uri": "file:///a.bin", "blob": b64encode(b"abc").decode()}
LINK = {"type": "resource_link", "uri": "file:///b", "name": "b"}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **more}


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ([], None),
        ([TEXT], "Hi."),
        ([TEXT, TEXT], ["Hi.", "Hi."]),
        ([PICTURE], {"type": "image", "mimeType": "image/png", "bytes": 60_000}),
        ([TEXT, SOUND], ["Hi.", {"type": "audio", "mimeType": "audio/wav", "bytes": 2}]),
        ([{"type": "resource", "resource": PAGE}], {"type": "resource", **PAGE}),
        (
            [{"type": "resource", "resource": BLOB}],
            {"type": "resource", "uri": "file:///a.bin", "mimeType": None, "bytes": 3},
        ),
        ([LINK], LINK | {"mimeType": None, "description": None}),
    ],
)
async def test_content(content: list[Any], value: Any) -> None:
    async with started(answers={"give": {"content": content}}) as server:
        assert await server.call("give", {}) == value


async def test_structured_content_comes_first() -> None:
    given = {"content": [TEXT], "structuredContent": {"a": [1, None], "b": float("nan")}}
    async with started(answers={"give": given}) as server:
        assert await server.call("give", {}) == {"a": [1, None], "b": None}


async def test_an_error_of_a_tool() -> None:
    wrong = {"content": [TEXT, SOUND, TEXT], "isError": True}
    silent = {"content": [], "structuredContent": {"a": 1}, "isError": True}
    long = {"content": [{"type": "text", "text": "x" * 60_000}], "isError": True}
    async with started(answers={"wrong": wrong, "silent": silent, "long": long}) as server:
        assert await complaint(server, "wrong") == (
            "Tool 'wrong' of MCP server 'raw' failed: Hi.\nHi. Check its arguments."
        )
        assert "failed: it does not say why. Check" in await complaint(server, "silent")
        assert len(await complaint(server, "long")) < 2000


async def test_an_error_that_looks_like_a_broken_connection() -> None:
    async with started(code=-32000) as server:
        pid = await pid_of(server)
        assert "refused tool 'x': What is 'x'?" in await complaint(server, "x")
        assert await pid_of(server) == pid


async def test_a_tool_that_asks_back() -> None:
    async with used(McpServer("offering", **offering())) as server:
        assert "'ask' of MCP server 'offering' failed: it asks for more" in (
            await complaint(server, "ask")
        )


async def test_a_list_of_several_pages() -> None:
    pages = [[tool("a", description="A.")], [], [tool("b"), tool("c")]]
    async with started(pages=pages) as server:
        assert await server.tools() == [
            ToolSchema("a", "A.", OBJECT),
            ToolSchema("b", "", OBJECT),
            ToolSchema("c", "", OBJECT),
        ]


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"pages": [[tool("a")], [tool("a")]]}, "it lists two tools 'a'"),
        ({"pages": [[]], "endless": True}, "its list of tools has more than 100 pages"),
        (
            {"pages": [[tool(f"t{n}") for n in range(400)]], "endless": True},
            "it lists more than 1000 tools",
        ),
        ({"pages": [[tool("")]]}, "it calls a tool '', which is no name for one"),
        ({"pages": [[tool("a b\n")]]}, "it calls a tool 'a b\\n', which is no name for one"),
        ({"pages": [[tool("x" * 9999)]]}, "it calls a tool 'xxx"),
        (
            {"pages": [[tool("a", description="x" * 99_999)]]},
            "tool 'a' is described in more than 65536 bytes",
        ),
        ({"pages": [[tool("a", inputSchema={"type": "string"})]]}, ""),
        ({"pages": [[tool("a", inputSchema=[])]]}, ""),
        ({"pages": [{"name": "a"}]}, ""),
        (
            {"pages": [[tool("a", inputSchema=OBJECT | {"properties": {"x": {"type": "nil"}}})]]},
            "the parameters of tool 'a' are no JSON Schema of an object: ",
        ),
        (
            {"pages": [[tool("a", inputSchema=OBJECT | {"$schema": "http://["})]]},
            "the parameters of tool 'a' are no JSON Schema of an object",
        ),
        ({"pages": [[tool("a", inputSchema=OBJECT | {"$schema": {"a": 1}})]]}, ""),
    ],
)
async def test_a_list_that_cannot_be_used(told: dict[str, Any], problem: str) -> None:
    async with started(**told) as server:
        with pytest.raises(ToolServerError) as raised:
            await server.tools()
        start = "MCP server 'raw' answered its tools in a way that cannot be used: "
        assert str(raised.value).startswith(start + problem)
        assert len(str(raised.value)) < 2000
        assert await pid_of(server)


async def test_schemas_of_older_drafts_are_schemas() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    schema = OBJECT | draft | {"properties": {"pair": pair}}
    unknown = OBJECT | {"$schema": "https://example.org/mine"}
    pages = [[tool("a", inputSchema=schema), tool("b", inputSchema=unknown)]]
    async with started(pages=pages) as server:
        assert [each.parameters for each in await server.tools()] == [schema, unknown]


async def test_a_flood() -> None:
    async with started() as server:
        pid = await pid_of(server)
        assert "a message has more than 4194304 bytes" in await complaint(server, "flood")
        assert not lives(pid)
        assert await pid_of(server)


async def test_a_schema_that_would_take_forever_to_check(strict_loop: None) -> None:
    evil = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    given = {"content": [], "structuredContent": {"x": "a" * 40 + "!"}}
    pages = [[tool("give", inputSchema=evil, outputSchema=evil)]]
    async with started(pages=pages, answers={"give": given}) as server:
        with anyio.fail_after(5):
            await server.tools()
            assert await server.call("give", {}) == given["structuredContent"]


async def test_an_answer_that_is_none() -> None:
    nothing: dict[str, Any] = {"content": "Hi."}
    async with started(answers={"give": nothing}) as server:
        assert "answered tool 'give' in a way that cannot be used" in await complaint(
            server, "give"
        )


@pytest.mark.parametrize("argument", ["\ud800", object(), 1j])
async def test_arguments_that_are_no_json(argument: Any) -> None:
    async with started() as server:
        pid = await pid_of(server)
        with pytest.raises(ToolServerError, match="'pid' .* failed: its arguments are no JSON"):
            await server.call("pid", {"x": [argument]})
        assert await pid_of(server) == pid
