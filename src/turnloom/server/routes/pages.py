"""The web UI, or a page that says what there is instead."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from turnloom.server.gate import path_of

STATIC = Path(__file__).parent.parent / "static"

# The UI loads its own files, talks to its own server, and nothing else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'"
)

_PLAIN = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Turnloom</title>
<h1>Turnloom</h1>
<p>This server has no web UI: its files were not built. In a checkout, build them with
<code>make web</code>.</p>
<p><a href="{root}/docs">This page</a> describes the API, and
<a href="{root}/health/ready">this one</a> says
whether the server works.</p>
</html>
"""

# Files whose names contain a digest of their content.
_HASHED = "assets/"


class Pages:
    """The files of the web UI, for every path that is not the API's; a path that names no file is a
    view of the UI."""

    def __init__(self, static: Path = STATIC) -> None:
        self._static = static
        self._files = StaticFiles(directory=static) if static.is_dir() else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that no route answers."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        path = path_of(scope).lstrip("/")
        if path.startswith(("api/", "health/")):
            raise HTTPException(404)
        response = await self._file(path, scope)
        response.headers["Content-Security-Policy"] = POLICY
        await response(scope, receive, send)

    async def _file(self, path: str, scope: Mapping[str, Any]) -> Response:
        if self._files is None:
            root = escape(str(scope.get("root_path", "")))
            return Response(_PLAIN.format(root=root), media_type="text/html")
        try:
            found = await self._files.get_response(path or "index.html", dict(scope))
        except HTTPException:
            found = await self._files.get_response("index.html", dict(scope))
        lasts = "public, max-age=31536000, immutable" if path.startswith(_HASHED) else "no-cache"
        found.headers["Cache-Control"] = lasts
        return found
