"""A pooler in front of PostgreSQL that lends a session for one transaction only, as PgBouncer does
in its transaction mode."""

import os
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import psycopg
from anyio.abc import ByteStream, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.loopback import listening

SSL, CANCEL = 80877103, 80877102
SESSIONS = 3
TOLD = ("server_version", "client_encoding", "standard_conforming_strings", "integer_datetimes")


class Message:
    """A message of PostgreSQL's protocol."""

    def __init__(self, kind: bytes, body: bytes) -> None:
        self.kind = kind
        self.body = body

    @property
    def raw(self) -> bytes:
        return self.kind + struct.pack("!i", len(self.body) + 4) + self.body


async def receive(stream: BufferedByteReceiveStream) -> Message:
    kind = await stream.receive_exactly(1)
    (length,) = struct.unpack("!i", await stream.receive_exactly(4))
    return Message(kind, await stream.receive_exactly(length - 4) if length > 4 else b"")


class Pooler:
    """Lends its sessions in turns, so that a client meets another one each time."""

    def __init__(self, url: str) -> None:
        self._owners = [psycopg.connect(url, autocommit=True) for _ in range(SESSIONS)]
        self._free, self._lent = anyio.create_memory_object_stream[SocketStream](SESSIONS)
        self._sessions: list[SocketStream] = []
        self.transactions = 0

    async def open(self) -> None:
        for owner in self._owners:
            own = socket.socket(fileno=os.dup(owner.pgconn.socket))
            session = await SocketStream.from_socket(own)
            self._sessions.append(session)
            await self._free.send(session)

    async def close(self) -> None:
        for session in self._sessions:
            await session.aclose()
        for owner in self._owners:
            owner.close()
        self._free.close()
        self._lent.close()

    async def __call__(self, client: ByteStream) -> None:
        try:
            async with client:
                await self._serve(client)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return

    async def _serve(self, client: ByteStream) -> None:
        incoming = BufferedByteReceiveStream(client)
        if not await self._greet(client, incoming):
            return
        while True:
            message = await receive(incoming)
            if message.kind == b"X":
                return
            session = await self._lent.receive()
            try:
                await self._transact(client, incoming, session, message)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._free.send(session)

    async def _greet(self, client: ByteStream, incoming: BufferedByteReceiveStream) -> bool:
        while True:
            length, code = struct.unpack("!ii", await incoming.receive_exactly(8))
            if length > 8:
                await incoming.receive_exactly(length - 8)
            if code == CANCEL:
                return False
            if code != SSL:
                break
            await client.send(b"N")
        info = self._owners[0].info
        told = [(name, info.parameter_status(name) or "") for name in TOLD]
        await client.send(
            Message(b"R", struct.pack("!i", 0)).raw
            + b"".join(Message(b"S", f"{name}\0{value}\0".encode()).raw for name, value in told)
            + Message(b"K", struct.pack("!ii", 1, 1)).raw
            + Message(b"Z", b"I").raw
        )
        return True

    async def _transact(
        self,
        client: ByteStream,
        incoming: BufferedByteReceiveStream,
        session: SocketStream,
        message: Message,
    ) -> None:
        self.transactions += 1
        answers = BufferedByteReceiveStream(session)
        while True:
            await session.send(message.raw)
            if message.kind in (b"Q", b"S"):
                answer = await receive(answers)
                while answer.kind != b"Z":
                    await client.send(answer.raw)
                    answer = await receive(answers)
                await client.send(answer.raw)
                if answer.body == b"I":
                    return
            message = await receive(incoming)


@asynccontextmanager
async def pooled(url: str) -> AsyncGenerator[tuple[str, Pooler], None]:
    """The URL of a pooler in front of a server, and the pooler."""
    pooler = Pooler(url)
    try:
        await pooler.open()
        async with listening(pooler) as port:
            database = url.rpartition("/")[2]
            yield f"postgresql://anyone@127.0.0.1:{port}/{database}", pooler
    finally:
        await pooler.close()
