"""MCP servers behind a URL: limits and errors of their HTTP responses."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import partial

import httpx2
from anyio import to_thread
from mcp.client import Transport
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

# The maximum sizes of a response and of an error response, in bytes.
MAX_BYTES = 4 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
# Our error code for a session that the server no longer knows; its request was not executed.
SESSION_LOST = -32097


class Endpoint:
    """An MCP server that is reached by a URL."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._url = url
        # Compressed, a small response may expand to any size.
        self._headers = {**headers, "accept-encoding": "identity"}
        # The caller enforces the read timeout, which differs between tools.
        self._timeout = httpx2.Timeout(timeout, read=None)

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """The transport to the URL."""
        create = partial(
            httpx2.AsyncClient,
            headers=self._headers,
            timeout=self._timeout,
            event_hooks={"request": [_refuse_listening], "response": [_explain, _limit]},
        )
        # Creating a client reads the machine's certificates.
        client = await stack.enter_async_context(await to_thread.run_sync(create))
        return streamable_http_client(self._url, http_client=client, max_sse_event_size=MAX_BYTES)

    def last_words(self) -> str:
        """Empty: the stderr of a remote server is not available."""
        return ""


class _LimitedBody(httpx2.AsyncByteStream):
    """A response body with a size limit."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > MAX_BYTES:
                raise httpx2.StreamError(f"it has more than {MAX_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


async def _refuse_listening(request: httpx2.Request) -> None:
    """Refuse requests for unsolicited messages and for endless resumption."""
    if request.method == "GET":
        raise httpx2.RequestError("Only responses to requests are read.", request=request)


async def _explain(response: httpx2.Response) -> None:
    """Turn an HTTP error into a JSON-RPC error with its status, which the client would drop."""
    if response.status_code < 400:
        return
    lost = response.status_code == 404 and MCP_SESSION_ID in response.request.headers
    refusal = None if lost else _refusal(await _read_limited(response))
    if refusal is None:
        text = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        code = SESSION_LOST if lost else INTERNAL_ERROR
        refusal = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=text))
    await _body(response).aclose()
    response.headers = httpx2.Headers({"content-type": "application/json"})
    response.stream = httpx2.ByteStream(refusal.model_dump_json(exclude_unset=True).encode())


async def _limit(response: httpx2.Response) -> None:
    """Limit the size of a response. Event streams are limited per event."""
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        # A body that is compressed nevertheless stays so, and is then rejected as invalid JSON.
        response.headers.pop("content-encoding", None)
        response.stream = _LimitedBody(_body(response))


async def _read_limited(response: httpx2.Response) -> bytes:
    read = b""
    async for chunk in _body(response):
        read += chunk
        if len(read) > MAX_ERROR_BYTES:
            break
    return read


def _refusal(body: bytes) -> JSONRPCError | None:
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        return None
    return message if isinstance(message, JSONRPCError) else None


def _body(response: httpx2.Response) -> httpx2.AsyncByteStream:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return response.stream
