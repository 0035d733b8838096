"""Servers of tools that workflows declare."""

from collections.abc import Callable, Mapping

from turnloom.agents.spec import DeclaredServer, ToolServer
from turnloom.wiring.adapters import adapter

# Makes what reaches a server of tools that a workflow in a folder declares.
Connect = Callable[[DeclaredServer, str], ToolServer]


def connect(server: DeclaredServer, root: str) -> ToolServer:
    """The server that is declared; it is started in the folder, or reached, when first used."""
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
