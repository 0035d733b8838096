"""A program that starts a server which then reads nothing, and waits to be killed.

python starter.py FORKS        FORKS is 1 if it is to have a child that holds what it has open

It says on one line the ids of the server, of a child of the server, and of its own child, or 0.
"""

import asyncio
import os
import sys
import time

from tests.adapters.mcp.servers import raw
from turnloom.adapters.mcp import McpServer


def fork() -> int:
    """A child that holds all that is open here, but for the output."""
    own = os.fork()
    if not own:
        os.close(1)
        time.sleep(600)
    return own


async def start(forks: bool) -> None:
    server = McpServer("raw", command=raw(stubborn=True), timeout=600)
    pid, child = await server.call("pid", {}), await server.call("child", {})
    deaf = asyncio.create_task(server.call("deaf", {}))
    await asyncio.sleep(0)
    print(pid, child, fork() if forks else 0, flush=True)
    await deaf


if __name__ == "__main__":
    asyncio.run(start(sys.argv[1] == "1"))
