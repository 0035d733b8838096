"""The way of a client that runs in a thread to its provider: through the event loop."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import cast

import httpx2
from anyio import from_thread

# What comes back of a request, in a row: the response, the pieces of its body, and what ended it:
# trouble, or nothing.
Arrived = SimpleQueue[httpx2.Response | bytes | Exception | None]


class Way:
    """The way of one call: what its thread asks, tasks of the event loop send and receive.

    A thread cannot be stopped, but what it waits for can: when the call ends, its connections are
    let go at once. What has arrived waits for the thread, which is woken for no more than that.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def fetch(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request of the thread, as soon as it begins."""
        arrived = Arrived()
        from_thread.run_sync(self._start, request, arrived)
        begun = arrived.get()
        if isinstance(begun, Exception):
            raise begun
        assert isinstance(begun, httpx2.Response)
        return httpx2.Response(
            begun.status_code,
            headers=begun.headers,
            stream=_Body(arrived),
            extensions=begun.extensions,
        )

    def _start(self, request: httpx2.Request, arrived: Arrived) -> None:
        if self._is_over:  # before its thread got so far
            raise CancelledError
        self._tasks.append(asyncio.create_task(self._carry(request, arrived)))

    async def _carry(self, request: httpx2.Request, arrived: Arrived) -> None:
        """Send a request, and hand over what comes back as it arrives."""
        end: Exception | None = CancelledError()
        try:
            response = await self._inner.handle_async_request(request)
            body = cast("httpx2.AsyncByteStream", response.stream)
            try:
                arrived.put(response)
                async for piece in body:
                    arrived.put(piece)
            finally:
                await body.aclose()
            end = None
        except Exception as error:  # noqa: BLE001 - raised where the thread waits
            end = error
        finally:
            arrived.put(end)

    async def end(self) -> None:
        """Let go of all connections; whoever still waits is told."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class _Body(httpx2.SyncByteStream):
    """The body of a response, as a thread reads it."""

    def __init__(self, arrived: Arrived) -> None:
        self._arrived = arrived

    def __iter__(self) -> Iterator[bytes]:
        while isinstance(piece := self._arrived.get(), bytes):
            yield piece
        if isinstance(piece, Exception):
            raise piece


class LoopTransport(httpx2.BaseTransport):
    """Sends what a client asks by the way of the call that the client is lent to."""

    way: Way

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request, as soon as it begins."""
        return self.way.fetch(request)
