"""Tools of one MCP server, over stdio or streamable HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import Context
from importlib.metadata import version
from typing import Any, Protocol, TypeVar, cast

import anyio
import msgspec
from anyio import to_thread
from mcp import Client, ClientSession, MCPError
from mcp.client import Transport
from mcp.types import (
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
)
from pydantic import TypeAdapter, ValidationError

from turnloom.adapters.mcp import listing, results
from turnloom.adapters.mcp.faults import UNREADABLE, Faults, Misbehaved, hidden, secret_words
from turnloom.adapters.mcp.http import SESSION_LOST, Endpoint
from turnloom.adapters.mcp.process import ServerProcess
from turnloom.agents.spec import ToolSchema
from turnloom.errors import UsageError
from turnloom.kernel.values import Json, said
from turnloom.variables.logic.secrets import Secrets

# Seconds that leaving may take before it is forced; more than a stubborn program is given.
LEAVING = 6.0
_WHO = Implementation(name="turnloom", version=version("turnloom"))


class ServerAddress(Protocol):
    """Where a server is."""

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """What carries messages while it is entered; what it needs goes on the stack."""
        ...

    def last_words(self) -> str:
        """What the server complained about last."""
        ...


class Connection:
    """One connection, from the moment it is made; why it ended is told, never raised."""

    def __init__(self, place: ServerAddress, timeout: float) -> None:
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

    async def _hold(self, place: ServerAddress) -> None:
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


T = TypeVar("T")
_Given = CallToolResult | InputRequiredResult
_GIVEN: TypeAdapter[_Given] = TypeAdapter(_Given)


class McpServer:
    """Tools of one MCP server: a program that is started, or one behind a URL.

    The server is connected to when it is first needed, and again after the connection broke. All
    calls share one connection. A call takes at most `timeout` seconds, connecting included.
    """

    def __init__(
        self,
        name: str,
        *,
        command: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        if bool(command) == bool(url):
            raise UsageError(
                f"MCP server {name!r} needs either a `command` to start or a `url`, and not both."
            )
        env, headers = env or {}, headers or {}
        given = {**env, **headers}
        words = {f"{name}.{key}": secret_words([value]) for key, value in given.items()}
        self._secrets = Secrets({key: [*found] for key, found in words.items() if found}, hidden)
        self._place: ServerAddress = (
            ServerProcess(command, env, cwd) if command else Endpoint(url or "", headers, timeout)
        )
        secrets = secret_words([*env.values(), *headers.values()])
        self._faults = Faults(name, secrets, self._place.last_words)
        self._timeout = timeout
        self._connections: list[Connection] = []
        self._closed = False

    async def tools(self) -> Sequence[ToolSchema]:
        """What the server offers now.

        Raises:
            ToolServerError: it does not answer, in time or at all, or not in a way to be used.
            UsageError: the server was closed here.
        """
        what = "its tools"
        found = await self._ask(what, listing.fetch)
        try:
            return [*map(self._masked, await to_thread.run_sync(listing.check, found))]
        except Misbehaved as error:
            raise self._faults.misbehaved(what, error) from error

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """What a tool gives: a JSON value, a text, or a list of blocks; without what the server was
        given in confidence.

        Raises:
            ToolServerError: the tool reports an error, or the server gives no answer to be used.
            UsageError: the server was closed here.
        """
        try:
            plain = msgspec.json.decode(msgspec.json.encode(dict(arguments)))
        except (TypeError, ValueError, RecursionError) as error:
            # Found out on the way to the server, it would cost the others their connection.
            raise self._faults.failed(tool, f"its arguments are no JSON: {said(error)}") from error
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=plain))

        async def ask(session: ClientSession) -> _Given:
            return await _call(session, request)

        given = await self._ask(f"tool {tool!r}", ask)
        if isinstance(given, InputRequiredResult):
            raise self._faults.failed(tool, "it asks for more input, which a call cannot give")
        if given.is_error:
            raise self._faults.failed(tool, results.text_of(given))
        return self._secrets.masked_data(results.value_of(given))

    def _masked(self, tool: ToolSchema) -> ToolSchema:
        """A tool as models are told of it, without what the server was given in confidence."""
        if not self._secrets:
            return tool
        parameters: Any = self._secrets.masked_data(tool.parameters)
        return ToolSchema(tool.name, self._secrets.masked(tool.description), parameters)

    async def aclose(self) -> None:
        """End the connection and the program; calls in flight fail. Again changes nothing."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            for connection in self._connections:
                await connection.aclose()

    async def _ask(self, what: str, ask: Callable[[ClientSession], Awaitable[T]]) -> T:
        try:
            with anyio.fail_after(self._timeout):
                try:
                    return await self._attempt(what, ask)
                except MCPError as error:
                    if error.code != SESSION_LOST:
                        raise
                # The server was started again meanwhile, and has done nothing for us since.
                return await self._attempt(what, ask)
        except TimeoutError as error:
            raise self._faults.silent(what, self._timeout) from error
        except MCPError as error:
            fault = self._faults.misbehaved if error.code == UNREADABLE else self._faults.refused
            raise fault(what, error) from error
        except (Misbehaved, ValidationError) as error:
            raise self._faults.misbehaved(what, error) from error

    async def _attempt(self, what: str, ask: Callable[[ClientSession], Awaitable[T]]) -> T:
        connection, session = await self._connected()
        if session is not None:
            try:
                return await ask(session)
            except MCPError as error:
                if error.code == SESSION_LOST:
                    connection.leave()
                    raise
                if connection.usable:
                    raise
        reason = await connection.reason()
        raise self._faults.lost(what, self._timeout, reason) from reason

    async def _connected(self) -> tuple[Connection, ClientSession | None]:
        """A connection, and its session if one could be made."""
        connection = self._connection()
        session = await connection.session()
        if session is not None and not connection.usable:
            # It broke long ago, and we heard of it only while we waited.
            connection = self._connection()
            session = await connection.session()
        return connection, session

    def _connection(self) -> Connection:
        if self._closed:
            raise UsageError("The MCP server was closed, so it cannot be asked any more.")
        # One that is not usable any more may still have a program to end.
        self._connections = [each for each in self._connections if not each.ended]
        for connection in self._connections:
            if connection.usable:
                return connection
        connection = Connection(self._place, self._timeout)
        self._connections.append(connection)
        return connection


async def _call(session: ClientSession, request: CallToolRequest) -> _Given:
    """Ask for a tool without the check of its answer that `ClientSession.call_tool` makes.

    That one runs the server's own regular expressions over the server's own text, in our loop.
    """
    try:
        return await session.send_request(request, _GIVEN)
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
    # The server wants some arguments as headers too; which ones, the session learns by listing.
    await listing.fetch(session)
    return await session.send_request(request, _GIVEN)
