"""An MCP server as a child process: a JSON-RPC message per line, in and out.

The client of the package `mcp` for this keeps a line of any length in memory, and gives the server
our terminal to complain on. Here a line has a limit, complaints are kept for error messages, and a
watchdog ends the server when this process is killed.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from turnloom.adapters.mcp.faults import UNREADABLE, Misbehaved, ServerEnded
from turnloom.kernel.values import as_object

# Bytes that one message may have.
MOST_BYTES = 4 * 1024 * 1024
# Seconds that a program is given to end after its input is closed, and again after it is asked to.
GRACE = 2.0
# Bytes of a program's complaints that are kept, and lines of them that a message shows.
KEPT_BYTES = 4096
SHOWN_LINES = 5
# Messages that wait for a program to read them, so that who gives up need not wait too.
WAITING = 100
# What ends a server whose starter was killed; there is no such thing on Windows.
WATCHDOG = str(Path(__file__).with_name("watchdog.py"))

_Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerProcess:
    """A server that is started by us and ends with the connection."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        self._command = list(command)
        self._env = dict(env)
        self._cwd = cwd
        self._heard = b""

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """What starts the program when entered, and ends it when left."""
        return self._run()

    def last_words(self) -> str:
        """The last lines that the program wrote beside its answers, on one line."""
        lines = self._heard.decode(errors="replace").split("\n")
        words = " / ".join(line.strip() for line in lines[-SHOWN_LINES - 1 :] if line.strip())
        return "".join(char if char.isprintable() else " " for char in words)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[_Streams]:
        self._heard = b""
        # Whom we start gets no more of our environment than it needs, so none of our secrets.
        environment = get_default_environment() | self._env
        async with _watchdog() as watch:
            process = await anyio.open_process(
                self._command, env=environment, cwd=self._cwd, start_new_session=True
            )
            await watch(process)
            async with self._connected(process) as streams:
                yield streams

    @asynccontextmanager
    async def _connected(self, process: Process) -> AsyncGenerator[_Streams]:
        """The messages of a program that runs, until it is ended here."""
        delivered, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, sent = anyio.create_memory_object_stream[SessionMessage](WAITING)
        async with delivered, incoming, outgoing, sent, anyio.create_task_group() as tasks:
            ended = ServerEnded()
            tasks.start_soon(self._read, process, delivered, ended)
            tasks.start_soon(self._write, process, sent, ended)
            tasks.start_soon(self._overhear, process)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    ended.code = await _stop(process)

    async def _read(
        self,
        process: Process,
        delivered: MemoryObjectSendStream[SessionMessage | Exception],
        ended: ServerEnded,
    ) -> None:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        try:
            while True:
                line = await lines.receive_until(b"\n", MOST_BYTES)
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError:
                    unreadable = _unreadable(line)
                    if unreadable is None:
                        # Many a program greets on the wrong channel.
                        self._hear(line + b"\n")
                        continue
                    message = unreadable
                await delivered.send(SessionMessage(message))
        except anyio.IncompleteRead:
            raise ended from None
        except anyio.DelimiterNotFound:
            raise Misbehaved(f"a message has more than {MOST_BYTES} bytes") from None
        except anyio.BrokenResourceError:
            return  # The session is closed, and the program about to be.

    async def _write(
        self, process: Process, sent: MemoryObjectReceiveStream[SessionMessage], ended: ServerEnded
    ) -> None:
        assert process.stdin is not None
        try:
            async for each in sent:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
        except (anyio.BrokenResourceError, OSError) as error:
            raise ended from error

    async def _overhear(self, process: Process) -> None:
        assert process.stderr is not None
        async for words in process.stderr:
            self._hear(words)

    def _hear(self, words: bytes) -> None:
        self._heard = (self._heard + words[-KEPT_BYTES:])[-KEPT_BYTES:]


def _unreadable(line: bytes) -> JSONRPCError | None:
    """An error in the place of a reply that cannot be read, so that nobody waits for it; nothing if
    the line is no reply."""
    try:
        said = as_object(json.loads(line.decode(errors="replace")))
    except (ValueError, RecursionError):
        return None
    id = (said or {}).get("id")
    if said is None or "method" in said or isinstance(id, bool) or not isinstance(id, int | str):
        return None
    error = ErrorData(code=UNREADABLE, message="the reply is no message of the protocol")
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)


@asynccontextmanager
async def _watchdog() -> AsyncGenerator[Callable[[Process], Awaitable[None]]]:
    """What is told of a program that is to end with this process, even if it is killed."""
    if sys.platform == "win32" or not sys.executable:
        yield _unwatched
        return
    dog = await anyio.open_process(
        [sys.executable, "-I", "-S", WATCHDOG, str(os.getpid())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    async def tell(words: str) -> None:
        assert dog.stdin is not None
        with suppress(anyio.BrokenResourceError, OSError):
            await dog.stdin.send(f"{words}\n".encode())

    async def watch(process: Process) -> None:
        await tell(str(process.pid))

    try:
        yield watch
    finally:
        with anyio.CancelScope(shield=True):
            await tell("over")
            dog.kill()
            await dog.aclose()


async def _unwatched(process: Process) -> None:
    """Leave a program alone: here, it ends with its input."""


async def _stop(process: Process) -> int | None:
    """Close its input, then ask, then force, also what it has started in turn.

    Gives the exit code if it ended by itself.
    """
    assert process.stdin is not None
    await process.stdin.aclose()
    code = await _exit_code(process)
    if code is None:
        _signal(process, force=False)
        await _exit_code(process)
    _signal(process, force=True)
    await process.aclose()
    return code


async def _exit_code(process: Process) -> int | None:
    with anyio.move_on_after(GRACE):
        return await process.wait()
    return None


def _signal(process: Process, *, force: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if force else signal.SIGTERM)
