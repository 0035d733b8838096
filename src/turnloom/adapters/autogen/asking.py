"""Call AutoGen's models in threads, with retries and streaming."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import anyio
import httpx2
from anyio import from_thread

from turnloom.agents.logic.model_errors import failure, may_pass
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Patience, Task
from turnloom.errors import EngineError
from turnloom.kernel.threads import in_thread, threads

# The type of a client's message that contains a text delta.
STREAM = "stream"


class DeltaStream:
    """I/O stream of a client in a thread, which forwards text deltas.

    Deltas are delivered in the event loop, in order and before the answer, without blocking the
    thread. Deltas of an ended call are dropped.
    """

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self._listener = on_delta
        self._loop = asyncio.get_running_loop()
        self._pending = deque[str]()
        self._is_closed = False

    def end(self) -> None:
        """Drop later deltas."""
        self._is_closed = True

    def send(self, message: Any) -> None:
        """Queue a text delta."""
        if message.type == STREAM:
            self._pending.append(message.content.content)
            if len(self._pending) == 1:  # otherwise the loop is already notified
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        while self._pending:
            words = self._pending.popleft()
            if not self._is_closed:
                self._listener(words)

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Discard the output: the log records what matters."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """Refuse: a model client cannot ask for input.

        Raises:
            EngineError: always.
        """
        raise EngineError(f"A model client asked for input: {prompt!r}. Use another client.")


# The response to a request, then the pieces of its body, and at last the error or None.
ResponseQueue = SimpleQueue[httpx2.Response | bytes | Exception | None]


class CallTransport:
    """The HTTP transport of one call: its thread makes requests, and tasks of the event loop send
    them.

    A thread cannot be stopped, but its requests can: when the call ends, its connections are closed
    at once. Received data is queued for the thread.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closed = False

    def fetch(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request from the thread, as soon as its headers arrive."""
        queue = ResponseQueue()
        from_thread.run_sync(self._start, request, queue)
        begun = queue.get()
        if isinstance(begun, Exception):
            raise begun
        assert isinstance(begun, httpx2.Response)
        return httpx2.Response(
            begun.status_code,
            headers=begun.headers,
            stream=_Body(queue),
            extensions=begun.extensions,
        )

    def _start(self, request: httpx2.Request, queue: ResponseQueue) -> None:
        if self._is_closed:  # the call ended before its thread got here
            raise CancelledError
        self._tasks.append(asyncio.create_task(self._forward(request, queue)))

    async def _forward(self, request: httpx2.Request, queue: ResponseQueue) -> None:
        """Send a request, and queue its response as it arrives."""
        end: Exception | None = CancelledError()
        try:
            response = await self._inner.handle_async_request(request)
            body = cast("httpx2.AsyncByteStream", response.stream)
            try:
                queue.put(response)
                async for piece in body:
                    queue.put(piece)
            finally:
                await body.aclose()
            end = None
        except Exception as error:  # noqa: BLE001 - raised in the waiting thread
            end = error
        finally:
            queue.put(end)

    async def end(self) -> None:
        """Close all connections; waiting threads get an error."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class _Body(httpx2.SyncByteStream):
    """A response body that a thread reads."""

    def __init__(self, queue: ResponseQueue) -> None:
        self._queue = queue

    def __iter__(self) -> Iterator[bytes]:
        while isinstance(piece := self._queue.get(), bytes):
            yield piece
        if isinstance(piece, Exception):
            raise piece


class LoopTransport(httpx2.BaseTransport):
    """Sends a client's requests through the transport of the current call."""

    transport: CallTransport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request, as soon as its headers arrive."""
        return self.transport.fetch(request)


# How many models are called at once per tenant: each needs a thread, since the clients block.
THREADS = 256

T = TypeVar("T")


class ModelAsker:
    """Calls models for one engine. With `keep_open`, connections stay open until `aclose`."""

    def __init__(self, patience: Patience, keep_open: bool) -> None:
        self._patience = patience
        self._trusted = httpx2.create_ssl_context()  # slower than most calls
        self._shared_transport = self._transport() if keep_open else None

    async def __call__(
        self,
        task: Task,
        model: str,
        ask: Callable[[CallTransport, DeltaStream], T],
    ) -> T:
        """The result of `ask` in a thread; transient failures are retried.

        Raises:
            ContextTooLarge: the request exceeds the model's context window.
            EngineError: the model fails or refuses the request.
        """
        trying = attempts(task, self._patience, may_pass)
        try:
            given: T = await trying(partial(self._ask, ask, task.say))
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            raise failure(error, model, tried, self._patience) from error
        return given

    async def aclose(self) -> None:
        """Close the connections to providers."""
        if self._shared_transport is not None:
            await self._shared_transport.aclose()

    async def _ask(
        self, ask: Callable[[CallTransport, DeltaStream], T], say: Callable[[str | None], None]
    ) -> T:
        """Send one request and stream its answer."""
        say(None)
        inner = self._shared_transport or self._transport()
        transport = CallTransport(inner)
        now = asyncio.get_running_loop().time
        with anyio.fail_after(self._patience.timeout) as waiting:

            def on_delta(words: str) -> None:
                waiting.deadline = now() + self._patience.timeout
                say(words)

            deltas = DeltaStream(on_delta)
            try:
                # An abandoned thread ends at once, because its transport is closed.
                call = partial(ask, transport, deltas)
                return await in_thread(call, threads("autogen", THREADS))
            finally:
                deltas.end()
                with anyio.CancelScope(shield=True):
                    await transport.end()
                    if inner is not self._shared_transport:
                        await inner.aclose()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        """A new connection pool."""
        return httpx2.AsyncHTTPTransport(verify=self._trusted)
