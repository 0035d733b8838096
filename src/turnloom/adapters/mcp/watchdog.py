"""Program that kills a process group when the process that started it is gone.

It reads the group from its input. A second line ends it. It needs only Python.
"""

import os
import select
import signal
import sys
from contextlib import suppress

# Polling interval in seconds: a child of the starter may keep the input open.
INTERVAL = 1.0


def watch(starter: int) -> None:
    """Wait until the starter writes the second line or is gone; kill the group if it is gone."""
    group, *over = _read_input(starter)
    if group and not over:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(int(group), signal.SIGKILL)


def _read_input(starter: int) -> list[bytes]:
    """The words that the starter wrote, up to two or until it is gone."""
    words: list[bytes] = []
    while len(words) < 2:
        is_gone = os.getppid() != starter
        ready, _, _ = select.select([0], [], [], 0 if is_gone else INTERVAL)
        data = os.read(0, 64) if ready else b""
        words += data.split()
        if is_gone or (ready and not data):
            break
    return words or [b""]


if __name__ == "__main__":
    watch(int(sys.argv[1]))
