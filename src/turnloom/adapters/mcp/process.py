"""An MCP server as a child process: a JSON-RPC message per line, in and out.

The client of the package `mcp` for this keeps a line of any length in memory, and gives the server
our terminal to complain on. Here a line has a limit, and complaints are kept for error messages.
"""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from turnloom.adapters.mcp.faults import Ended, Misbehaved

# Bytes that one message may have.
MOST_BYTES = 4 * 1024 * 1024
# Seconds that a program is given to end after its input is closed, and again after it is asked to.
GRACE = 2.0
# Bytes of a program's complaints that are kept, and lines of them that a message shows.
KEPT_BYTES = 4096
SHOWN_LINES = 5
# Messages that wait for a program to read them, so that who gives up need not wait too.
WAITING = 100

_Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class Program:
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
        process = await anyio.open_process(
            self._command, env=environment, cwd=self._cwd, start_new_session=True
        )
        delivered, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, sent = anyio.create_memory_object_stream[SessionMessage](WAITING)
        async with delivered, incoming, outgoing, sent, anyio.create_task_group() as tasks:
            ended = Ended()
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
        ended: Ended,
    ) -> None:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        try:
            while True:
                line = await lines.receive_until(b"\n", MOST_BYTES)
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError:
                    # Many a program greets on the wrong channel.
                    self._hear(line + b"\n")
                    continue
                await delivered.send(SessionMessage(message))
        except anyio.IncompleteRead:
            raise ended from None
        except anyio.DelimiterNotFound:
            raise Misbehaved(f"a message has more than {MOST_BYTES} bytes") from None
        except anyio.BrokenResourceError:
            return  # The session is closed, and the program about to be.

    async def _write(
        self, process: Process, sent: MemoryObjectReceiveStream[SessionMessage], ended: Ended
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
