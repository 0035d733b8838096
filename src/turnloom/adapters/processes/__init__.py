"""Work in a process of its own, which may end, crash or hang."""

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

# How often a silent process is looked at: one that it started may hold its end of the pipe open.
INTERVAL = 0.05
# Seconds that a process has beyond its limit to end by itself, and say where it stood.
GRACE = 2.0

_FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
_OUT_OF_TIME = "Timeout ("

# Work that is given a function to say things with.
Say = Callable[[Any], None]
Work = Callable[[Say], None]


@dataclass(frozen=True)
class ProcessEnding:
    """How a process ended before its work was done.

    `code` is its exit code, minus the signal that ended it, or None if it was out of time. `frames`
    are the files and lines where it stood, innermost first, as far as they are known.
    """

    code: int | None
    frames: tuple[tuple[str, int], ...] = ()


# Said after the last thing that the work says.
_DONE = "done"


def apart(work: Work, limit: float) -> Iterator[Any]:
    """What work says in a process of its own; at last an `Ending` if the process ends early.

    The process has `limit` seconds until it says the next thing. It ends with everything that it
    started.
    """
    # A fork takes milliseconds, and has imported everything already.
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    with ours, TemporaryFile() as trace:
        process = context.Process(target=_perform, args=(work, limit, theirs, trace))
        process.start()
        try:
            theirs.close()
            while said := _next(process, ours, limit + GRACE):
                if said == (_DONE,):
                    return
                yield said[0]
            yield _ending(process, trace)
        finally:
            _end(process)


def _next(process: BaseProcess, ours: Connection, limit: float) -> tuple[Any] | None:
    """What the process says next; nothing if it has ended or is out of time."""
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
    with suppress(ProcessLookupError, PermissionError):  # nothing of its group is left
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    process.close()


def _perform(work: Work, limit: float, theirs: Connection, trace: IO[bytes]) -> None:
    """In the process: do the work, and end without waiting for the threads that it leaves."""
    os.setpgrp()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable(trace, all_threads=False)

    def say(value: Any) -> None:
        _limit(limit, trace)
        try:
            theirs.send(value)
        except BrokenPipeError:  # the process that asked is gone
            os._exit(1)

    _limit(limit, trace)
    work(say)
    say(_DONE)
    os._exit(0)


def _limit(limit: float, trace: IO[bytes]) -> None:
    """End this process after the limit, also if the process that asked is gone by then."""
    faulthandler.dump_traceback_later(limit, file=trace, exit=True)
