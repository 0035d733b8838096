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
from turnloom.adapters.mcp.faults import UNREADABLE, Faults, ProtocolViolation, hidden, secret_words
from turnloom.adapters.mcp.http import SESSION_LOST, Endpoint
from turnloom.adapters.mcp.process import ServerProcess
from turnloom.agents.spec import ToolSchema
from turnloom.errors import UsageError
from turnloom.kernel.values import Json, error_text
from turnloom.variables.logic.secrets import Secrets

# Seconds until closing is forced; longer than the grace periods of a program.
CLOSE_TIMEOUT = 6.0
_CLIENT = Implementation(name="turnloom", version=version("turnloom"))


class ServerAddress(Protocol):
    """How to reach a server."""

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """A transport for messages; its resources go on the stack."""
        ...

    def last_words(self) -> str:
        """The last output of the server on stderr."""
        ...


class Connection:
    """One connection. It reports why it ended, and never raises it."""

    def __init__(self, address: ServerAddress, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[ClientSession] = loop.create_future()
        self._leaving = asyncio.Event()
        self._timed_out = False
        self._is_closing = False
        self._timer = loop.call_later(timeout, self._expire)
        # An empty context, so that the first caller's context does not leak into later calls.
        self._holder = asyncio.create_task(self._hold(address), name=__name__, context=Context())
        self._holder.add_done_callback(self._note)

    @property
    def usable(self) -> bool:
        """Whether requests can be sent, now or once it is established."""
        return not self._is_closing and not self.ended

    @property
    def ended(self) -> bool:
        """Whether the connection is completely closed."""
        return self._holder.done()

    async def session(self) -> ClientSession | None:
        """The session once it is established; None if that fails."""
        await asyncio.wait({self._ready, self._holder}, return_when=asyncio.FIRST_COMPLETED)
        return self._ready.result() if self._ready.done() else None

    async def reason(self) -> BaseException | None:
        """Why the connection ended, once it has; None if we closed it."""
        await asyncio.wait({self._holder})
        if self._holder.cancelled():
            return TimeoutError() if self._timed_out else None
        return _innermost(self._holder.exception())

    def leave(self) -> None:
        """Start closing."""
        if self._is_closing:
            return  # A second cancellation would interrupt the cleanup after the first.
        self._is_closing = True
        self._leaving.set()
        if not self._ready.done():
            self._holder.cancel()

    async def aclose(self) -> None:
        """Close, and wait until it is done."""
        self.leave()
        await asyncio.wait({self._holder}, timeout=CLOSE_TIMEOUT)
        if not self.ended:
            self._holder.cancel()
            await asyncio.wait({self._holder})

    def _expire(self) -> None:
        self._timed_out = True
        self.leave()

    async def _hold(self, address: ServerAddress) -> None:
        async with AsyncExitStack() as stack:
            transport = await address.transport(stack)
            client = Client(transport, client_info=_CLIENT, cache=None)
            await stack.enter_async_context(client)
            self._timer.cancel()
            self._ready.set_result(client.session)
            try:
                await self._leaving.wait()
            finally:
                # Set before the session ends, so that callers whose requests fail can see it.
                self._is_closing = True

    def _note(self, holder: asyncio.Task[None]) -> None:
        """Retrieve the exception: asyncio logs those that are never retrieved."""
        self._timer.cancel()
        if not holder.cancelled():
            holder.exception()


def _innermost(error: BaseException | None) -> BaseException | None:
    """The error itself, unwrapped from exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


T = TypeVar("T")
_Result = CallToolResult | InputRequiredResult
_RESULT: TypeAdapter[_Result] = TypeAdapter(_Result)


class McpServer:
    """Tools of one MCP server: a program to start, or a URL.

    It connects on first use, and again after the connection breaks. All calls share one connection.
    A call takes at most `timeout` seconds, including connecting.
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
                f"MCP server {name!r} needs a `command` or a `url`. Set exactly one of them."
            )
        env, headers = env or {}, headers or {}
        given = {**env, **headers}
        words = {f"{name}.{key}": secret_words([value]) for key, value in given.items()}
        self._secrets = Secrets({key: [*found] for key, found in words.items() if found}, hidden)
        self._address: ServerAddress = (
            ServerProcess(command, env, cwd) if command else Endpoint(url or "", headers, timeout)
        )
        secrets = secret_words([*env.values(), *headers.values()])
        self._faults = Faults(name, secrets, self._address.last_words)
        self._timeout = timeout
        self._connections: list[Connection] = []
        self._closed = False

    async def tools(self) -> Sequence[ToolSchema]:
        """The tools that the server offers now.

        Raises:
            ToolServerError: the server does not answer in time, or its answer is unusable.
            UsageError: the connection was closed by `aclose`.
        """
        what = "its tools"
        found = await self._ask(what, listing.fetch)
        try:
            return [*map(self._masked, await to_thread.run_sync(listing.check, found))]
        except ProtocolViolation as error:
            raise self._faults.unusable(what, error) from error

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """The result of a tool: a JSON value, a text, or a list of blocks, with secrets masked.

        Raises:
            ToolServerError: the tool reports an error, or the server gives no usable answer.
            UsageError: the connection was closed by `aclose`.
        """
        try:
            plain = msgspec.json.decode(msgspec.json.encode(dict(arguments)))
        except (TypeError, ValueError, RecursionError) as error:
            # Failing in the transport would break the connection for all callers.
            raise self._faults.failed(
                tool, f"its arguments are not JSON: {error_text(error)}"
            ) from error
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=plain))

        async def ask(session: ClientSession) -> _Result:
            return await _call(session, request)

        given = await self._ask(f"tool {tool!r}", ask)
        if isinstance(given, InputRequiredResult):
            raise self._faults.failed(tool, "it requires more input, which a call cannot provide")
        if given.is_error:
            raise self._faults.failed(tool, results.text_of(given))
        return self._secrets.masked_data(results.value_of(given))

    def _masked(self, tool: ToolSchema) -> ToolSchema:
        """A tool with secrets masked."""
        if not self._secrets:
            return tool
        parameters: Any = self._secrets.masked_data(tool.parameters)
        return ToolSchema(tool.name, self._secrets.masked(tool.description), parameters)

    async def aclose(self) -> None:
        """Close the connection and stop the program. Running calls fail. Idempotent."""
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
                # The server was restarted, and has not executed the request.
                return await self._attempt(what, ask)
        except TimeoutError as error:
            raise self._faults.timed_out(what, self._timeout) from error
        except MCPError as error:
            fault = self._faults.unusable if error.code == UNREADABLE else self._faults.refused
            raise fault(what, error) from error
        except (ProtocolViolation, ValidationError) as error:
            raise self._faults.unusable(what, error) from error

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
        """A connection, and its session if it could be established."""
        connection = self._connection()
        session = await connection.session()
        if session is not None and not connection.usable:
            # It had broken earlier, and we learned of it only while waiting.
            connection = self._connection()
            session = await connection.session()
        return connection, session

    def _connection(self) -> Connection:
        if self._closed:
            raise UsageError("The MCP server is closed. Create a new `McpServer`.")
        # A connection that is no longer usable may still have a program to stop.
        self._connections = [each for each in self._connections if not each.ended]
        for connection in self._connections:
            if connection.usable:
                return connection
        connection = Connection(self._address, self._timeout)
        self._connections.append(connection)
        return connection


async def _call(session: ClientSession, request: CallToolRequest) -> _Result:
    """Call a tool without the validation of `ClientSession.call_tool`.

    That would run the server's regular expressions on the server's text in our event loop.
    """
    try:
        return await session.send_request(request, _RESULT)
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
    # The server expects some arguments as headers; the session learns which by listing the tools.
    await listing.fetch(session)
    return await session.send_request(request, _RESULT)
