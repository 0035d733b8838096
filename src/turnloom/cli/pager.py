"""Show what is longer than a screen in the person's pager."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import IO, cast

from turnloom.cli.terminal import Terminal

# The default pager and its options: colours stay, and a single screen is not paged.
USUAL = "less"
HOW = "FRX"


@contextmanager
def paged(terminal: Terminal) -> Generator[None]:
    """Send standard output to a pager meanwhile, if a person reads it."""
    words = _pager() if terminal.out.file.isatty() else []
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        yield
        return
    terminal.out.file.flush()
    around = {"LESS": HOW, **os.environ}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=terminal.out.file, env=around)
    pipe = cast(IO[bytes], pager.stdin)
    # An interrupt belongs to the pager: it stops a search there.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError), terminal.diverted(pipe):  # quit by the reader
            yield
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, interrupt)


def _pager() -> list[str]:
    """The words that call the pager; none if `PAGER` cannot be parsed."""
    try:
        return shlex.split(os.environ.get("PAGER", USUAL))
    except ValueError:
        return []
