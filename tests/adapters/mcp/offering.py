"""An MCP server of the official package that offers the tools of the contract.

python offering.py stdio
python offering.py http PORT [handshake]    `handshake`: it knows sessions only
"""

import logging
import sys
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp, Receive, Scope, Send

from turnloom.errors import ToolServerError
from turnloom.testing.contracts.tools import TOOLS, Tools

PAGE = 2
behind = Tools()
LISTED = [
    types.Tool(name=each.name, description=each.description, input_schema=each.parameters)
    for each in TOOLS
]
# Not listed to the contract: what needs an argument as a header, and what asks back.
MIRRORED = types.Tool(
    name="mirrored",
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
)


async def list_tools(
    context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    listed = LISTED + ([MIRRORED] if "mirrored" in sys.argv else [])
    end = start + PAGE
    following = str(end) if end < len(listed) else None
    return types.ListToolsResult(tools=listed[start:end], next_cursor=following)


async def call_tool(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name == "ask":
        return types.InputRequiredResult(request_state="state")
    if params.name == "mirrored":
        return types.CallToolResult(content=[types.TextContent(text="mirrored")])
    try:
        value = await behind.answer(params.name, params.arguments or {})
    except ToolServerError as error:
        return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
    if isinstance(value, str):
        return types.CallToolResult(content=[types.TextContent(text=value)])
    return types.CallToolResult(content=[], structured_content=value)


server = Server(
    "offering",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    get_tool_input_schema=lambda name: MIRRORED.input_schema if name == "mirrored" else None,
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
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def serve_http(port: int) -> None:
    app: ASGIApp = server.streamable_http_app(json_response="json" in sys.argv)
    if "handshake" in sys.argv:
        app = without_discovery(app)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http(int(sys.argv[2]))
