"""MCP servers of the official package over HTTP, in one process."""

import pytest

from tests.adapters.mcp.servers import HttpServer
from tests.support.servers import shared


@pytest.fixture(scope="session")
def http_server(pytestconfig: pytest.Config) -> HttpServer:
    return shared(HttpServer, pytestconfig)
