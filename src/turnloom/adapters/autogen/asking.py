"""Ask models of the classic line in threads, with patience and streaming."""

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

from turnloom.agents.logic.trouble import failure, may_pass
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Patience, Task
from turnloom.errors import EngineError
from turnloom.kernel.threads import in_thread, threads

# What the clients call a piece of an answer.
STREAM = "stream"


class Hearing:
    """A stream for what a client says in a thread; nobody types into it.

    Pieces are heard in the event loop, in their order, and before the answer; the thread does not
    wait for it. Those of a call that is over are not heard.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._said = deque[str]()
        self._is_over = False

    def end(self) -> None:
        """Hear nothing more."""
        self._is_over = True

    def send(self, message: Any) -> None:
        """Have a piece of an answer heard."""
        if message.type == STREAM:
            self._said.append(message.content.content)
            if len(self._said) == 1:  # else the loop has been woken, and is not through
                self._loop.call_soon_threadsafe(self._hear_all)

    def _hear_all(self) -> None:
        while self._said:
            words = self._said.popleft()
            if not self._is_over:
                self._hear(words)

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Print nothing: what is to be known of a call is on record."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """Refuse: a model client asks nobody.

        Raises:
            EngineError: always.
        """
        raise EngineError(f"A model client asked for input: {prompt!r}. Use another client.")


# What comes back of a request, in a row: the response, the pieces of its body, and what ended it:
# trouble, or nothing.
Arrived = SimpleQueue[httpx2.Response | bytes | Exception | None]


class CallTransport:
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

    way: CallTransport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request, as soon as it begins."""
        return self.way.fetch(request)


# How many models are asked at a time for a tenant: each holds a thread, as the clients block.
THREADS = 256

T = TypeVar("T")


class ModelAsker:
    """How one engine asks; with `keep_open`, its connections stay open until `aclose`."""

    def __init__(self, patience: Patience, keep_open: bool) -> None:
        self._patience = patience
        self._trusted = httpx2.create_ssl_context()  # which takes longer than most calls
        self._kept = self._transport() if keep_open else None

    async def __call__(
        self,
        task: Task,
        model: str,
        ask: Callable[[CallTransport, Hearing], T],
    ) -> T:
        """What `ask` gives in a thread, called again after trouble that may pass.

        Raises:
            ContextTooLarge: the request does not fit into the window of the model.
            EngineError: the model does not answer, or refuses to.
        """
        trying = attempts(task, self._patience, may_pass)
        try:
            given: T = await trying(partial(self._ask, ask, task.say))
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            raise failure(error, model, tried, self._patience) from error
        return given

    async def aclose(self) -> None:
        """Part from the providers."""
        if self._kept is not None:
            await self._kept.aclose()

    async def _ask(
        self, ask: Callable[[CallTransport, Hearing], T], say: Callable[[str | None], None]
    ) -> T:
        """One request, heard while it is answered."""
        say(None)
        inner = self._kept or self._transport()
        way = CallTransport(inner)
        now = asyncio.get_running_loop().time
        with anyio.fail_after(self._patience.timeout) as waiting:

            def hear(words: str) -> None:
                waiting.deadline = now() + self._patience.timeout
                say(words)

            hearing = Hearing(hear)
            try:
                # A thread that is left alone ends by itself: at once, if it goes by the way.
                call = partial(ask, way, hearing)
                return await in_thread(call, threads("autogen", THREADS))
            finally:
                hearing.end()
                with anyio.CancelScope(shield=True):
                    await way.end()
                    if inner is not self._kept:
                        await inner.aclose()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        """What opens connections, and closes them."""
        return httpx2.AsyncHTTPTransport(verify=self._trusted)
