"""MCP servers as child processes, with one JSON-RPC message per line.

The client in the package `mcp` buffers lines of any length, and lets the server write to our
terminal. Here lines have a limit, stderr is kept for error messages, and a watchdog kills the
server when this process is killed.
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

from turnloom.adapters.mcp.faults import UNREADABLE, ProtocolViolation, ServerEnded
from turnloom.kernel.values import as_object

# The maximum size of a message.
MAX_BYTES = 4 * 1024 * 1024
# Seconds for a program to exit after its input is closed, and again after SIGTERM.
GRACE = 2.0
# Bytes of stderr that are kept, and lines of it that an error shows.
KEPT_BYTES = 4096
SHOWN_LINES = 5
# The number of messages that can be queued for a program, so that callers that time out do not
# block.
MAX_PENDING = 100
# Kills a server whose parent process was killed; not available on Windows.
WATCHDOG = str(Path(__file__).with_name("watchdog.py"))

_Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerProcess:
    """A server that runs as a child process as long as the connection is open."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        self._command = list(command)
        self._env = dict(env)
        self._cwd = cwd
        self._output = b""

    async def transport(self, stack: AsyncExitStack) -> Transport:
        """A transport that starts the program when entered, and stops it when left."""
        return self._run()

    def last_words(self) -> str:
        """The last lines of the program's stderr, joined into one."""
        lines = self._output.decode(errors="replace").split("\n")
        words = " / ".join(line.strip() for line in lines[-SHOWN_LINES - 1 :] if line.strip())
        return "".join(char if char.isprintable() else " " for char in words)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[_Streams]:
        self._output = b""
        # The program gets only the environment that it needs, without our secrets.
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
        """The message streams of a running program, which is stopped at the end."""
        delivered, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, sent = anyio.create_memory_object_stream[SessionMessage](MAX_PENDING)
        async with delivered, incoming, outgoing, sent, anyio.create_task_group() as tasks:
            ended = ServerEnded()
            tasks.start_soon(self._read, process, delivered, ended)
            tasks.start_soon(self._write, process, sent, ended)
            tasks.start_soon(self._read_stderr, process)
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
                line = await lines.receive_until(b"\n", MAX_BYTES)
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError:
                    unreadable = _unreadable_reply(line)
                    if unreadable is None:
                        # Many programs print a greeting on stdout.
                        self._keep_output(line + b"\n")
                        continue
                    message = unreadable
                await delivered.send(SessionMessage(message))
        except anyio.IncompleteRead:
            raise ended from None
        except anyio.DelimiterNotFound:
            raise ProtocolViolation(f"a message has more than {MAX_BYTES} bytes") from None
        except anyio.BrokenResourceError:
            return  # The session is closed, and the program is about to be stopped.

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

    async def _read_stderr(self, process: Process) -> None:
        assert process.stderr is not None
        async for words in process.stderr:
            self._keep_output(words)

    def _keep_output(self, words: bytes) -> None:
        self._output = (self._output + words[-KEPT_BYTES:])[-KEPT_BYTES:]


def _unreadable_reply(line: bytes) -> JSONRPCError | None:
    """An error in place of a reply that cannot be parsed, so that its caller does not wait; None if
    the line is not a reply."""
    try:
        reply = as_object(json.loads(line.decode(errors="replace")))
    except (ValueError, RecursionError):
        return None
    id = (reply or {}).get("id")
    if reply is None or "method" in reply or isinstance(id, bool) or not isinstance(id, int | str):
        return None
    error = ErrorData(code=UNREADABLE, message="the reply is not a JSON-RPC message")
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)


@asynccontextmanager
async def _watchdog() -> AsyncGenerator[Callable[[Process], Awaitable[None]]]:
    """Start a watchdog; yields a function that registers a program to end with this process."""
    if sys.platform == "win32" or not sys.executable:
        yield _unwatched
        return
    guardian = await anyio.open_process(
        [sys.executable, "-I", "-S", WATCHDOG, str(os.getpid())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    async def write(words: str) -> None:
        assert guardian.stdin is not None
        with suppress(anyio.BrokenResourceError, OSError):
            await guardian.stdin.send(f"{words}\n".encode())

    async def watch(process: Process) -> None:
        await write(str(process.pid))

    try:
        yield watch
    finally:
        with anyio.CancelScope(shield=True):
            await write("over")
            guardian.kill()
            await guardian.aclose()


async def _unwatched(process: Process) -> None:
    """Do nothing: here the program ends with its input."""


async def _stop(process: Process) -> int | None:
    """Close its input, then send SIGTERM, then SIGKILL to its whole process group.

    Returns the exit code if it exited by itself.
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
