"""What servers answer: every kind of content, and what no server should send."""

from base64 import b64encode
from typing import Any

import pytest
from mcp import MCPError
from pydantic import ValidationError

from tests.adapters.mcp.servers import refusal
from tests.adapters.mcp.test_stdio import lives, pid_of, started
from turnloom.adapters.mcp.faults import UNREADABLE, ProtocolViolation
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
        said = {tool: str(await refusal(server, tool)) for tool in ("wrong", "silent", "long")}
    assert "'raw'" in said["wrong"] and "'wrong'" in said["wrong"] and "Hi.\nHi." in said["wrong"]
    assert "'silent'" in said["silent"]
    assert len(said["long"]) < 2000


async def test_an_error_that_looks_like_a_broken_connection() -> None:
    async with started(code=-32000) as server:
        pid = await pid_of(server)
        error = await refusal(server, "x")
        assert isinstance(error.__cause__, MCPError) and "What is 'x'?" in str(error)
        assert await pid_of(server) == pid


async def test_a_list_of_several_pages() -> None:
    pages = [[tool("a", description="A.")], [], [tool("b"), tool("c")]]
    async with started(pages=pages) as server:
        assert await server.tools() == [
            ToolSchema("a", "A.", OBJECT),
            ToolSchema("b", "", OBJECT),
            ToolSchema("c", "", OBJECT),
        ]


@pytest.mark.parametrize(
    ("pages", "value"),
    [
        ([[tool("a")], [tool("a")]], "'a'"),
        ([[tool("")]], "''"),
        ([[tool("a b\n")]], "'a b\\n'"),
        ([[tool("x" * 9999)]], "'xxx"),
        ([[tool("a", description="x" * 99_999)]], "65536"),
        ([[tool("a", inputSchema={"type": "string"})]], ""),
        ([[tool("a", inputSchema=[])]], ""),
        ([{"name": "a"}], ""),
        ([[tool("a", inputSchema=OBJECT | {"properties": {"x": {"type": "nil"}}})]], "'a'"),
        ([[tool("a", inputSchema=OBJECT | {"$schema": "http://["})]], "'a'"),
        ([[tool("a", inputSchema=OBJECT | {"$schema": {"a": 1}})]], ""),
    ],
)
async def test_a_list_that_cannot_be_used(pages: Any, value: str) -> None:
    await list_is_refused(value, pages=pages)


@pytest.mark.parametrize(
    ("page", "limit"), [([], "100"), ([tool(f"t{n}") for n in range(400)], "1000")]
)
async def test_a_list_without_an_end(page: Any, limit: str) -> None:
    await list_is_refused(limit, pages=[page], endless=True)


async def list_is_refused(value: str, **told: Any) -> None:
    async with started(**told) as server:
        with pytest.raises(ToolServerError) as raised:
            await server.tools()
        assert isinstance(raised.value.__cause__, ProtocolViolation | ValidationError)
        assert "'raw'" in str(raised.value) and value in str(raised.value)
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
        error = await refusal(server, "flood")
        assert isinstance(error.__cause__, ProtocolViolation) and "4194304" in str(error)
        assert not lives(pid)
        assert await pid_of(server)


async def test_a_schema_that_would_take_forever_to_check(strict_loop: None) -> None:
    evil = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    given = {"content": [], "structuredContent": {"x": "a" * 40 + "!"}}
    pages = [[tool("give", inputSchema=evil, outputSchema=evil)]]
    async with started(pages=pages, answers={"give": given}) as server:
        await server.tools()
        assert await server.call("give", {}) == given["structuredContent"]


async def test_an_answer_that_is_none() -> None:
    nothing: dict[str, Any] = {"content": "Hi."}
    async with started(answers={"give": nothing}) as server:
        error = await refusal(server, "give")
    assert isinstance(error.__cause__, ValidationError) and "'give'" in str(error)


TEXTED = '"result": {"content": [{"type": "text", "text": "%s"}]}}'


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": ID, ' + TEXTED % "\\ud800",
        '{"jsonrpc": "2.0", "id": ID, ' + TEXTED % "\xff",
        '{"jsonrpc": "1.0", "id": ID, ' + TEXTED % "Hi.",
        '{"jsonrpc": "2.0", "id": ID, "error": "no"}',
        '{"id": ID}',
    ],
)
async def test_a_reply_that_cannot_be_read_is_told_at_once(line: str) -> None:
    async with started(timeout=5.0, lines={"odd": line}) as server:
        pid = await pid_of(server)
        error = await refusal(server, "odd")
        assert isinstance(error.__cause__, MCPError) and error.__cause__.code == UNREADABLE
        assert "'raw'" in str(error) and "'odd'" in str(error)
        assert await pid_of(server) == pid


@pytest.mark.parametrize("argument", ["\ud800", object(), 1j])
async def test_arguments_that_are_no_json(argument: Any) -> None:
    async with started() as server:
        pid = await pid_of(server)
        error = await refusal(server, "pid", x=[argument])
        assert isinstance(error.__cause__, TypeError | ValueError) and "'pid'" in str(error)
        assert await pid_of(server) == pid
