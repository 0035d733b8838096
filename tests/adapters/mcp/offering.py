"""An MCP server of the official package that offers the tools of the contract.

python offering.py stdio
python offering.py http PORT    each of KINDS, at /KIND/mcp
"""

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from turnloom.errors import ToolServerError
from turnloom.testing.contracts.tools import TOOLS, SampleTools

# Events without sessions; sessions, which begin with a handshake; those in JSON without events; and
# events from a server that wants an argument as a header.
KINDS = ("events", "sessions", "json", "mirrored")
PAGE = 2
LISTED = [
    types.Tool(name=each.name, description=each.description, input_schema=each.parameters)
    for each in TOOLS
]
MIRRORED = types.Tool(
    name="mirrored",
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
)


class Offering:
    """The tools of the contract. Not listed: `ask`, which asks back, and `waiting`, which says how
    many calls of `wait` are under way."""

    def __init__(self, kind: str = "") -> None:
        self._behind = SampleTools()
        self._waiting = 0
        self._listed = LISTED + ([MIRRORED] if kind == "mirrored" else [])

    async def list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        end = start + PAGE
        following = str(end) if end < len(self._listed) else None
        return types.ListToolsResult(tools=self._listed[start:end], next_cursor=following)

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        match params.name:
            case "ask":
                return types.InputRequiredResult(request_state="state")
            case "mirrored":
                return types.CallToolResult(content=[types.TextContent(text="mirrored")])
            case "waiting":
                return types.CallToolResult(content=[types.TextContent(text=f"{self._waiting}")])
            case "wait":
                self._waiting += 1
        try:
            value = await self._behind.answer(params.name, params.arguments or {})
        except ToolServerError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        if isinstance(value, str):
            return types.CallToolResult(content=[types.TextContent(text=value)])
        return types.CallToolResult(content=[], structured_content=value)

    def server(self) -> Server[Any]:
        """What speaks MCP."""
        return Server(
            "offering",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            get_tool_input_schema=lambda name: (
                MIRRORED.input_schema if name == "mirrored" else None
            ),
        )


def without_discovery(app: ASGIApp) -> ASGIApp:
    """The app as it was when every client shook hands first."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-method") != b"server/discover":
            return await app(scope, receive, send)
        await send({"type": "http.response.start", "status": 400, "headers": []})
        await send({"type": "http.response.body", "body": b"Who are you?"})

    return answer


async def serve_stdio() -> None:
    server = Offering().server()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def all_kinds() -> Starlette:
    """One app for all kinds, as a process costs more than the tests of a kind."""
    apps = {
        kind: Offering(kind).server().streamable_http_app(json_response=kind == "json")
        for kind in KINDS
    }

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    with_handshake = {kind: without_discovery(apps[kind]) for kind in ("sessions", "json")}
    mounted = {**apps, **with_handshake}
    return Starlette(routes=[Mount(f"/{kind}", mounted[kind]) for kind in KINDS], lifespan=lifespan)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        uvicorn.run(all_kinds(), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
