"""Run work in a separate process, which may exit, crash or hang."""

import faulthandler
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from tempfile import TemporaryFile
from typing import IO, Any

# Polling interval of a silent process: a child of it may hold its end of the pipe open.
INTERVAL = 0.05
# Seconds after its limit in which a process can exit by itself and write its traceback.
GRACE = 2.0

_FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
_OUT_OF_TIME = "Timeout ("

# Work receives a function that sends values to the caller.
Send = Callable[[Any], None]
Work = Callable[[Send], None]


@dataclass(frozen=True)
class ProcessEnding:
    """How a process ended before its work was done.

    `code` is its exit code, the negative number of a signal, or None after a timeout. `frames` are
    the files and lines of its traceback, innermost first, if known.
    """

    code: int | None
    frames: tuple[tuple[str, int], ...] = ()


# Sent after the last value of the work.
_DONE = "done"


def run_in_process(work: Work, limit: float) -> Iterator[Any]:
    """Yield what work sends from a separate process, and a `ProcessEnding` if it ends early.

    The process has `limit` seconds for each value. Its child processes are killed with it.
    """
    # A fork takes milliseconds, and all modules are imported already.
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    with ours, TemporaryFile() as trace:
        process = context.Process(target=_perform, args=(work, limit, theirs, trace))
        process.start()
        try:
            theirs.close()
            while received := _next(process, ours, limit + GRACE):
                if received == (_DONE,):
                    return
                yield received[0]
            yield _ending(process, trace)
        finally:
            _end(process)


def _next(process: BaseProcess, ours: Connection, limit: float) -> tuple[Any] | None:
    """The next value in a tuple; None if the process has ended or is out of time."""
    for _ in range(ceil(limit / INTERVAL)):
        if ours.poll(INTERVAL) or not process.is_alive():
            break
    try:
        return (ours.recv(),) if ours.poll() else None
    except EOFError:
        return None


def _ending(process: BaseProcess, trace: IO[bytes]) -> ProcessEnding:
    process.join(GRACE)
    trace.seek(0)
    text = trace.read().decode("utf-8", "replace")
    frames = tuple((file, int(line)) for file, line in _FRAME.findall(text))
    return ProcessEnding(None if text.startswith(_OUT_OF_TIME) else process.exitcode, frames)


def _end(process: BaseProcess) -> None:
    assert process.pid is not None
    process.kill()
    with suppress(ProcessLookupError, PermissionError):  # its group is gone
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    process.close()


def _perform(work: Work, limit: float, theirs: Connection, trace: IO[bytes]) -> None:
    """In the process: do the work, and exit without waiting for its threads."""
    os.setpgrp()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable(trace, all_threads=False)

    def send(value: Any) -> None:
        _limit(limit, trace)
        try:
            theirs.send(value)
        except BrokenPipeError:  # the parent process is gone
            os._exit(1)

    _limit(limit, trace)
    work(send)
    send(_DONE)
    os._exit(0)


def _limit(limit: float, trace: IO[bytes]) -> None:
    """Exit after the limit, even if the parent process is gone."""
    faulthandler.dump_traceback_later(limit, file=trace, exit=True)
