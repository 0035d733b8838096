"""Listeners on loopback that behave badly."""

import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import bson
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013


@asynccontextmanager
async def listening(handle: Callable[[ByteStream], Awaitable[None]]) -> AsyncGenerator[int, None]:
    """The port of a listener that gives each connection to `handle`."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, handle)
        yield listener.listeners[0].extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


async def stay_silent(stream: ByteStream) -> None:
    """Accept, and never say a word."""
    async with stream:
        await anyio.sleep_forever()


class Relay:
    """Passes everything on to a port, until it is muted."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.muted = False

    async def __call__(self, stream: ByteStream) -> None:
        async with (
            stream,
            await anyio.connect_tcp("127.0.0.1", self.port) as target,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._pump, stream, target)
            await self._pump(target, stream)
            tasks.cancel_scope.cancel()

    async def _pump(self, source: ByteStream, target: ByteStream) -> None:
        try:
            async for data in source:
                if not self.muted:
                    await target.send(data)
            if not self.muted:
                await target.send_eof()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def refuse_passwords(stream: ByteStream) -> None:
    """Greet as MongoDB does, and believe nobody."""
    buffered = BufferedByteReceiveStream(stream)
    async with stream:
        while True:
            try:
                header = await buffered.receive_exactly(16)
            except (anyio.IncompleteRead, anyio.BrokenResourceError):
                return
            length, request, _, kind = struct.unpack("<iiii", header)
            body = await buffered.receive_exactly(length - 16)
            await stream.send(_answer(kind, request, body))


def _answer(kind: int, request: int, body: bytes) -> bytes:
    if kind == OP_QUERY:
        start = body.index(b"\0", 4) + 1 + 8
        head, answer_kind = struct.pack("<iqii", 8, 0, 0, 1), OP_REPLY
    else:
        start = 5
        head, answer_kind = struct.pack("<ib", 0, 0), OP_MSG
    size = struct.unpack_from("<i", body, start)[0]
    command = next(iter(bson.decode(body[start : start + size])))
    document = bson.encode(_REFUSAL if command.startswith("sasl") else _GREETING)
    total = 16 + len(head) + len(document)
    return struct.pack("<iiii", total, 0, request, answer_kind) + head + document


_GREETING = {
    "ok": 1.0,
    "ismaster": True,
    "isWritablePrimary": True,
    "helloOk": True,
    "minWireVersion": 0,
    "maxWireVersion": 21,
    "maxBsonObjectSize": 16_777_216,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
    "saslSupportedMechs": ["SCRAM-SHA-256"],
}
_REFUSAL = {
    "ok": 0.0,
    "code": 18,
    "codeName": "AuthenticationFailed",
    "errmsg": "Authentication failed.",
}
