"""An MCP server behind a URL: what its HTTP answers may be, and what they mean."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import partial

import httpx2
from anyio import to_thread
from mcp.client import Transport
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

# Bytes that one answer may have, and one that only says no.
MOST_BYTES = 4 * 1024 * 1024
MOST_REFUSAL_BYTES = 64 * 1024
# Our code for "the server has forgotten the session"; what was asked in it was not done.
SESSION_LOST = -32097


class Endpoint:
    """A server that somebody else runs."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._url = url
        # Unpacked, a small answer may be of any size.
        self._headers = {**headers, "accept-encoding": "identity"}
        # Who asks also gives up: an answer may take its time for one tool and not for another.
        self._timeout = httpx2.Timeout(timeout, read=None)

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """What speaks to the URL while it is entered."""
        create = partial(
            httpx2.AsyncClient,
            headers=self._headers,
            timeout=self._timeout,
            event_hooks={"request": [_refuse_listening], "response": [_explain, _limit]},
        )
        # It reads the certificates of the machine.
        client = await stack.enter_async_context(await to_thread.run_sync(create))
        return streamable_http_client(self._url, http_client=client, max_sse_event_size=MOST_BYTES)

    def last_words(self) -> str:
        """Nothing: what such a server complains about is not for us to see."""
        return ""


class _Limited(httpx2.AsyncByteStream):
    """A body that breaks off where it gets too long."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > MOST_BYTES:
                raise httpx2.StreamError(f"it has more than {MOST_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


async def _refuse_listening(request: httpx2.Request) -> None:
    """Keep the client from listening for what nobody asked for, and from resuming without end."""
    if request.method == "GET":
        raise httpx2.RequestError("Answers come with the request that asks.", request=request)


async def _explain(response: httpx2.Response) -> None:
    """Let a refusal in plain HTTP say its status, where the client would drop it."""
    if response.status_code < 400:
        return
    lost = response.status_code == 404 and MCP_SESSION_ID in response.request.headers
    refusal = None if lost else _refusal(await _beginning(response))
    if refusal is None:
        text = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        code = SESSION_LOST if lost else INTERNAL_ERROR
        refusal = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=text))
    await _body(response).aclose()
    response.headers = httpx2.Headers({"content-type": "application/json"})
    response.stream = httpx2.ByteStream(refusal.model_dump_json(exclude_unset=True).encode())


async def _limit(response: httpx2.Response) -> None:
    """Bound what is read at once; a stream of events is bounded by the event."""
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        # What was packed all the same stays so, and is no JSON then.
        response.headers.pop("content-encoding", None)
        response.stream = _Limited(_body(response))


async def _beginning(response: httpx2.Response) -> bytes:
    read = b""
    async for chunk in _body(response):
        read += chunk
        if len(read) > MOST_REFUSAL_BYTES:
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
