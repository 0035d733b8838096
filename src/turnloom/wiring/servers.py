"""Connections to tool servers that workflows declare."""

from collections.abc import Callable, Mapping

from turnloom.agents.spec import DeclaredServer, ToolServer
from turnloom.wiring.adapters import adapter

# Creates the connection to a tool server, which a workflow folder declares.
Connect = Callable[[DeclaredServer, str], ToolServer]


def connect(server: DeclaredServer, root: str) -> ToolServer:
    """Return a connection to a declared server. The server is started in the folder, or contacted,
    on first use."""
    environment = adapter("system").SystemEnvironment()

    def values(names: Mapping[str, str]) -> dict[str, str]:
        return {key: environment.get(name) or "" for key, name in names.items()}

    return adapter("mcp").McpServer(
        server.name,
        command=server.command or None,
        env=values(server.env),
        cwd=root,
        url=server.url,
        headers=values(server.headers),
        timeout=server.timeout_s,
    )
