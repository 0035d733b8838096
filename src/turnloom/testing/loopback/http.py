"""A minimal HTTP server protocol for the clients of model libraries, which can break off
responses."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

# Maximum size of a request's head, in bytes.
HEAD = 65_536

_PHRASES = {int(each): each.phrase for each in HTTPStatus}


class HttpRequest(NamedTuple):
    """A request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


async def read_request(stream: ByteStream) -> HttpRequest | None:
    """The next request on a connection; None if the connection ends first."""
    buffered = BufferedByteReceiveStream(stream)
    try:
        head = await buffered.receive_until(b"\r\n\r\n", HEAD)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in map(_header, lines)}
        body = await buffered.receive_exactly(int(headers.get("content-length", "0")))
    except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
        return None
    method, path, _ = first.split(" ", 2)
    return HttpRequest(method, path.partition("?")[0], headers, body)


def _header(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """The head of a response; the connection is closed after it."""
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def whole(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A JSON response with its length."""
    kind = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return head(status, kind | dict(headers or {})) + body


STREAM = head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
END = b"0\r\n\r\n"


def event(data: str) -> bytes:
    """One server-sent event, as a chunk of a streamed response."""
    line = f"data: {data}\n\n".encode()
    return f"{len(line):x}\r\n".encode() + line + b"\r\n"


async def wait_closed(stream: ByteStream) -> None:
    """Wait until the client closes the connection."""
    try:
        while True:
            await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return
