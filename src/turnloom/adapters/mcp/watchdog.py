"""A program that ends a group of processes when the process that started it is gone.

It is told the group on its input, and that it is over by another line. It needs nothing but Python.
"""

import os
import select
import signal
import sys
from contextlib import suppress

# Seconds after which it looks again: a child of the starter may hold the other end of the input.
INTERVAL = 1.0


def watch(starter: int) -> None:
    """Wait until the starter says that it is over, or is gone, and end the group in that case."""
    group, *over = _told(starter)
    if group and not over:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(int(group), signal.SIGKILL)


def _told(starter: int) -> list[bytes]:
    """What the starter said, by the time that it is gone or has said it all."""
    words: list[bytes] = []
    while len(words) < 2:
        is_gone = os.getppid() != starter
        ready, _, _ = select.select([0], [], [], 0 if is_gone else INTERVAL)
        said = os.read(0, 64) if ready else b""
        words += said.split()
        if is_gone or (ready and not said):
            break
    return words or [b""]


if __name__ == "__main__":
    watch(int(sys.argv[1]))
