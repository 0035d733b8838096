"""An MCP server with one tool, which tells what it was started or reached with.

python mcp_program.py            over stdio
python mcp_program.py PORT       over HTTP, on loopback
"""

import os
import sys
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

TOLD = types.Tool(name="told", input_schema={"type": "object", "properties": {}})


async def list_tools(
    context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[TOLD])


async def call_tool(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    request = getattr(context, "request", None)
    header = request.headers.get("x-token", "") if request is not None else ""
    text = f"{os.environ.get('TOKEN', '')} {header} {os.path.basename(os.getcwd())}"
    return types.CallToolResult(content=[types.TextContent(text=text)])


def made() -> Server[Any]:
    return Server("program", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    server = made()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        app = made().streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
    else:
        anyio.run(over_stdio)
