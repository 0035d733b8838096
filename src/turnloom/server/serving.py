"""Serve an app over HTTP in this process, until it is told to stop."""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from turnloom.errors import UsageError
from turnloom.server.context import Served

# Seconds that a client has to send the head of a request, and that an idle connection stays open.
HEAD, IDLE = 10.0, 15

# The most bytes of the head of a request.
HEAD_SIZE = 65_536

# Seconds after which a connection is closed whose client takes in nothing, where the system can.
STALLED = 60.0
UNREAD: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)

# Connections that wait to be accepted.
BACKLOG = 2_048


class PatientProtocol(H11Protocol):
    """HTTP/1.1; closes connections whose client does not send the head of a request in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Give the client some seconds for its first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take in data; the beginning of a further request starts the time again."""
        before = cast("RequestResponseCycle | None", self.cycle)
        if self._timer is None and (before is None or before.response_complete):
            self._timer = self.loop.call_later(HEAD, self._give_up)
        super().data_received(data)
        if self.cycle is not before:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def bind(self) -> socket.socket:
        """A socket that listens there.

        Raises:
            UsageError: the port is taken, or the address is not this machine's.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if UNREAD is not None:  # connections have it from their listener
            listener.setsockopt(socket.IPPROTO_TCP, UNREAD, round(STALLED * 1000))
        try:
            listener.bind((self.host, self.port))
            listener.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            listener.close()
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(
                f"The server cannot listen at {self.host}:{self.port}: {why}. Stop what listens "
                "there, or choose another: `--port PORT`, `--host HOST`."
            ) from None
        listener.setblocking(False)
        return listener


class _Server(uvicorn.Server):
    """Ends streams before it waits for requests, and ends by signals without raising them again."""

    def __init__(self, config: uvicorn.Config, served: Served) -> None:
        super().__init__(config)
        self._served = served

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop in order at the first signal, and at once at the second."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(each)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop, or stop at once."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, and wait for the requests."""
        self._served.streams.stop()
        await super().shutdown(sockets)


async def serve(
    api: FastAPI, listener: socket.socket, *, grace: float = 10.0, ready: Callable[[], None]
) -> None:
    """Serve an app on a socket until this process is told to stop; requests then have `grace`
    seconds to end. Calls `ready` once requests are answered."""
    config = uvicorn.Config(
        api,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=max(1, round(grace)),
        h11_max_incomplete_event_size=HEAD_SIZE,
    )
    server = _Server(config, api.state.served)
    telling = asyncio.ensure_future(_tell(server, ready))
    try:
        await server.serve([listener])
    finally:
        telling.cancel()
        await asyncio.wait({telling})


async def _tell(server: uvicorn.Server, ready: Callable[[], None]) -> None:
    while not server.started:  # noqa: ASYNC110 - the library has no event for it
        await asyncio.sleep(0.005)
    ready()
