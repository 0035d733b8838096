"""Tools of MCP servers. Needs the extra `mcp`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.mcp.server import McpServer
except ImportError as error:
    # An older 'mcp' lacks imported names.
    if (error.name or "").partition(".")[0] not in ("mcp", "httpx2", "jsonschema"):
        raise
    raise UsageError(
        "MCP servers need the package 'mcp' 2.3 or newer, which is not installed. "
        'Install it with: pip install "turnloom[mcp]"'
    ) from error

__all__ = ["McpServer"]
