"""The way of a client that runs in a thread to its provider: through the event loop."""

from collections.abc import Iterator
from typing import cast

import httpx2
from anyio import from_thread


class LoopTransport(httpx2.BaseTransport):
    """Sends what a client in a worker thread asks by the event loop that the thread belongs to.

    A thread cannot be stopped, but what it waits for can: whoever cancels the call lets go of the
    connection at once.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self._begun: list[httpx2.AsyncByteStream] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request, as soon as it begins."""
        response = from_thread.run(self._inner.handle_async_request, request)
        body = cast("httpx2.AsyncByteStream", response.stream)
        self._begun.append(body)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Body(body),
            extensions=response.extensions,
        )

    async def release(self) -> None:
        """Let go of the connections of all responses.

        The loop does it when the thread is done: the client would do it where the call may be
        cancelled, or, if it forgets a response, in no thread of the loop.
        """
        while self._begun:
            await self._begun.pop().aclose()


class _Body(httpx2.SyncByteStream):
    """The body of a response, read piece by piece in the event loop."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        pieces = aiter(self._inner)

        async def read() -> bytes | None:
            return await anext(pieces, None)

        while (piece := from_thread.run(read)) is not None:
            yield piece
