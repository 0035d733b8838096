"""The server: a REST API, live streams and the web UI over one app. Needs the extra `server`."""

from turnloom.errors import UsageError

try:
    import fastapi as _fastapi
except ModuleNotFoundError as error:
    if error.name not in ("fastapi", "starlette"):
        raise
    raise UsageError(
        "The server needs the package 'fastapi', which is not installed. "
        'Install it with: pip install "turnloom[server]"'
    ) from error

from turnloom.server.api import asgi, openapi
from turnloom.server.gate import Authenticate, Identity
from turnloom.server.limits import Limits

assert _fastapi

__all__ = ["Authenticate", "Identity", "Limits", "asgi", "openapi"]
