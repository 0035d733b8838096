"""One connection to an MCP server, entered and left by one task.

The client's cancel scopes must be left by the task that entered them, and whoever needs a
connection first may be gone before it ends. So a task of its own holds it; calls are made from any
task.
"""

import asyncio
from contextlib import AsyncExitStack
from contextvars import Context
from importlib.metadata import version
from typing import Protocol, cast

from mcp import Client, ClientSession
from mcp.client import Transport
from mcp.types import Implementation

# Seconds that leaving may take before it is forced; more than a stubborn program is given.
LEAVING = 6.0
_WHO = Implementation(name="turnloom", version=version("turnloom"))


class Place(Protocol):
    """Where a server is."""

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """What carries messages while it is entered; what it needs goes on the stack."""
        ...

    def last_words(self) -> str:
        """What the server complained about last."""
        ...


class Connection:
    """One connection, from the moment it is made; why it ended is told, never raised."""

    def __init__(self, place: Place, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[ClientSession] = loop.create_future()
        self._left = asyncio.Event()
        self._late = False
        self._over = False
        self._timer = loop.call_later(timeout, self._expire)
        # The first caller's context is not that of the others.
        self._holder = asyncio.create_task(self._hold(place), name=__name__, context=Context())
        self._holder.add_done_callback(self._note)

    @property
    def usable(self) -> bool:
        """Whether it can be asked, now or once it is made."""
        return not self._over and not self.ended

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._holder.done()

    async def session(self) -> ClientSession | None:
        """The session, once there is one; nothing if there will be none."""
        await asyncio.wait({self._ready, self._holder}, return_when=asyncio.FIRST_COMPLETED)
        return self._ready.result() if self._ready.done() else None

    async def reason(self) -> BaseException | None:
        """Why it ended, once it has; nothing if we ended it."""
        await asyncio.wait({self._holder})
        if self._holder.cancelled():
            return TimeoutError() if self._late else None
        return _innermost(self._holder.exception())

    def leave(self) -> None:
        """Begin to end it."""
        if self._over:
            return  # A second cancellation would break into the cleaning up after the first.
        self._over = True
        self._left.set()
        if not self._ready.done():
            self._holder.cancel()

    async def aclose(self) -> None:
        """End it, and wait until nothing of it is left."""
        self.leave()
        await asyncio.wait({self._holder}, timeout=LEAVING)
        if not self.ended:
            self._holder.cancel()
            await asyncio.wait({self._holder})

    def _expire(self) -> None:
        self._late = True
        self.leave()

    async def _hold(self, place: Place) -> None:
        async with AsyncExitStack() as stack:
            transport = await place.transport(stack)
            client = Client(transport, client_info=_WHO, cache=None)
            await stack.enter_async_context(client)
            self._timer.cancel()
            self._ready.set_result(client.session)
            try:
                await self._left.wait()
            finally:
                # Before the session ends, so that whoever is told of its end can see it.
                self._over = True

    def _note(self, holder: asyncio.Task[None]) -> None:
        """Take note of the end: an error that nobody has looked at, asyncio prints."""
        self._timer.cancel()
        if not holder.cancelled():
            holder.exception()


def _innermost(error: BaseException | None) -> BaseException | None:
    """The error itself, where task groups have wrapped it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
