"""A server on loopback that speaks OpenAI's protocols and replies from a script."""

import inspect
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import ByteStream, SocketAttribute

from turnloom.agents.spec import Answer
from turnloom.errors import EngineError
from turnloom.kernel.values import as_object, error_text
from turnloom.testing.loopback import chat, http, protocol, responses
from turnloom.testing.loopback.protocol import ProtocolReply
from turnloom.testing.loopback.script import (
    BrokenReply,
    EmptyReply,
    HttpRefusal,
    InvalidReply,
    Line,
    Lines,
    LingeringReply,
    ModelRequest,
    SlowReply,
    StalledReply,
    UnfinishedReply,
)


class LoopbackModel:
    """A scripted model behind a real server on loopback, for every client of OpenAI's protocols.

    It replies with one line for each request, in order, or with the result of a function of the
    request. `url` is its base URL, `requests` lists the requests in order, and `abandoned` counts
    the clients that left before the end of a reply.
    """

    def __init__(self, lines: Lines, *, name: str = "loopback") -> None:
        self.name = name
        self._lines = lines
        self.requests: list[ModelRequest] = []
        self.abandoned = 0
        self._port = 0
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            opening = anyio.create_tcp_listener(local_host="127.0.0.1")
            listener = await stack.enter_async_context(await opening)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            tasks.start_soon(listener.serve, self._serve)
            self._port = listener.listeners[0].extra(SocketAttribute.local_port)
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self._open.aclose()  # an error of the block is not passed to the server's task group

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self._port}/v1"

    def assert_complete(self) -> None:
        """Fail unless every line was used.

        Raises:
            EngineError: some were not.
        """
        if not callable(self._lines) and len(self.requests) < len(self._lines):
            left = len(self._lines) - len(self.requests)
            raise EngineError(f"Unused lines of the loopback model: {left}.")

    async def _serve(self, stream: ByteStream) -> None:
        """Answer the only request of a connection."""
        async with stream:
            request = await http.read_request(stream)
            if request is None:
                return
            try:
                await self._respond(request, stream)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.abandoned += 1

    async def _respond(self, request: http.HttpRequest, stream: ByteStream) -> None:
        match request.method, request.path:
            case "GET", "/v1/models":
                await stream.send(_json(200, protocol.models(self.name)))
            case "POST", chat.PATH | responses.PATH:
                asked = ModelRequest(request.path, request.headers, _body(request.body))
                self.requests.append(asked)
                await self._answer(asked, len(self.requests), stream)
            case method, path:
                served = f"{chat.PATH} and {responses.PATH}"
                message = f"Unknown endpoint {method} {path}. The loopback model serves {served}."
                await stream.send(_refused(HttpRefusal(404, message)))

    async def _answer(self, asked: ModelRequest, number: int, stream: ByteStream) -> None:
        wrong = _problem_with(asked)
        line = HttpRefusal(400, wrong) if wrong else await self._line(asked, number)
        match line:
            case HttpRefusal():
                await stream.send(_refused(line))
            case InvalidReply(body) if not asked.body.get("stream"):
                await stream.send(http.whole(200, body.encode()))
            case InvalidReply(body):
                await stream.send(http.STREAM + http.event(body) + http.event("[DONE]") + http.END)
            case _ if asked.body.get("stream"):
                await self._stream(line, _reply(line, asked, number), stream)
            case _:
                await self._send_whole(line, _reply(line, asked, number), stream)

    async def _line(self, asked: ModelRequest, number: int) -> Line:
        """The reply to a request."""
        if not callable(self._lines):
            if number <= len(self._lines):
                return self._lines[number - 1]
            return HttpRefusal(
                400,
                f"The loopback model has {len(self._lines)} lines, but this is request {number}. "
                "Add a line.",
            )
        try:
            line = self._lines(asked)
            return await line if inspect.isawaitable(line) else line
        except Exception as error:  # noqa: BLE001 - the error goes to the client
            return HttpRefusal(400, f"The script function of the test failed: {error_text(error)}")

    async def _send_whole(self, line: Line, reply: ProtocolReply, stream: ByteStream) -> None:
        body = json.dumps(reply.whole()).encode()
        response = http.whole(200, body)
        match line:
            case BrokenReply():
                await stream.send(response[: len(response) - len(body) // 2])
            case StalledReply():
                await self._stall(stream)
            case UnfinishedReply():
                await stream.send(_json(200, reply.unfinished()))
            case EmptyReply():
                await stream.send(_json(200, reply.empty()))
            case SlowReply(_, seconds):
                await anyio.sleep(seconds)
                await stream.send(response)
            case _:
                await stream.send(response)

    async def _stream(self, line: Line, reply: ProtocolReply, stream: ByteStream) -> None:
        await stream.send(http.STREAM)
        for chunk in _chunks(line, reply):
            await anyio.sleep(line.seconds if isinstance(line, SlowReply) else 0)
            await stream.send(http.event(json.dumps(chunk)))
        match line:
            case BrokenReply():
                return
            case StalledReply():
                await self._stall(stream)
            case UnfinishedReply(is_closed=False):
                await stream.send(http.END)
            case LingeringReply():
                await stream.send(http.event("[DONE]"))
                await http.wait_closed(stream)
            case _:
                await stream.send(http.event("[DONE]") + http.END)

    async def _stall(self, stream: ByteStream) -> None:
        await http.wait_closed(stream)
        self.abandoned += 1


def _body(data: bytes) -> dict[str, Any]:
    """The JSON object in the body of a request; empty if the body is invalid."""
    try:
        return as_object(json.loads(data)) or {}
    except ValueError:
        return {}


def _problem_with(asked: ModelRequest) -> str | None:
    """Why a provider would reject the request; None if it is valid."""
    check = chat.problem_with if asked.path == chat.PATH else responses.problem_with
    try:
        return check(asked.body)
    except (AttributeError, LookupError, TypeError) as error:
        return f"The request violates the protocol: {error_text(error)}"


def _chunks(line: Line, reply: ProtocolReply) -> Iterator[dict[str, Any]]:
    """The chunks to stream for a line."""
    match line:
        case BrokenReply() | StalledReply():
            return reply.text_chunks()
        case UnfinishedReply():
            return reply.unfinished_chunks()
        case EmptyReply():
            return reply.empty_chunks()
        case _:
            return reply.chunks()


def _reply(line: Line, asked: ModelRequest, number: int) -> ProtocolReply:
    match line:
        case SlowReply(answer, _) | UnfinishedReply(answer, _) | LingeringReply(answer):
            given = answer
        case EmptyReply():
            given = ""
        case BrokenReply(text) | StalledReply(text) | str(text):
            given = text
        case Answer():
            given = line
        case _:
            raise AssertionError(f"Expected an answer, got {line!r}.")
    answer = Answer(given) if isinstance(given, str) else given
    make = chat.ChatReply if asked.path == chat.PATH else responses.ResponsesReply
    return make(answer, asked.body, number)


def _json(status: int, body: dict[str, Any]) -> bytes:
    return http.whole(status, json.dumps(body).encode())


def _refused(line: HttpRefusal) -> bytes:
    pause = (
        f"{line.retry_after:g}" if isinstance(line.retry_after, float | int) else line.retry_after
    )
    headers = {} if pause is None else {"Retry-After": pause}
    if line.is_page:
        page = headers | {"Content-Type": "text/html"}
        return http.whole(line.status, line.message.encode(), page)
    body = json.dumps(protocol.error(line.status, line.message)).encode()
    return http.whole(line.status, body, headers)
