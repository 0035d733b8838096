"""What is longer than a screen, shown by the pager of the person at the terminal."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import IO, cast

from turnloom.cli.terminal import Terminal

# What pages where `PAGER` does not say it, and how: colours stay, and one screen is no page.
USUAL = "less"
HOW = "FRX"


@contextmanager
def paged(terminal: Terminal) -> Generator[None]:
    """Show what is put on standard output meanwhile in a pager, if a person reads it there."""
    words = _pager() if terminal.out.file.isatty() else []
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        yield
        return
    terminal.out.file.flush()
    around = {"LESS": HOW, **os.environ}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=terminal.out.file, env=around)
    pipe = cast(IO[bytes], pager.stdin)
    # An interruption is the pager's: it stops a search there, and the pager keeps the terminal.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError), terminal.diverted(pipe):  # read as far as wanted
            yield
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, interrupt)


def _pager() -> list[str]:
    """The words that call the pager; none if `PAGER` cannot be read."""
    try:
        return shlex.split(os.environ.get("PAGER", USUAL))
    except ValueError:
        return []
