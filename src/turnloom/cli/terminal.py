"""Output: standard output for results, standard error for everything else."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TextIO, TypeGuard

from rich.console import Console, RenderableType
from rich.text import Text

from turnloom.kernel.markup import visible, visible_json

# The width of tables in files: wide enough to cut little.
UNSEEN_WIDTH = 160


def safe(text: str, style: str = "") -> Text:
    """A text that neither the terminal nor rich interprets."""
    return Text(visible(text), style)


def joined(*parts: str | Text | tuple[str, str]) -> Text:
    """Texts and styled texts in a row, all of them safe."""
    line = Text()
    for part in parts:
        match part:
            case Text():
                line.append_text(part)
            case str():
                line.append_text(safe(part))
            case (text, style):
                line.append_text(safe(text, style))
    return line


class _Screen(TextIOWrapper):
    """A pipe to a pager at the terminal, colours included."""

    def isatty(self) -> bool:
        return True


class Terminal:
    """The two streams of this process."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    def reserve(self) -> None:
        """Reserve standard output for the program: what workflow code and its child processes print
        goes to standard error."""
        if not _is_open(sys.stdout) or not _is_open(sys.stderr):
            return
        sys.stdout.flush()
        self.out.file = os.fdopen(
            os.dup(1), "w", encoding=sys.stdout.encoding, errors="backslashreplace"
        )
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    @contextmanager
    def diverted(self, pipe: IO[bytes]) -> Generator[None]:
        """Send output for the terminal into a pipe, which is closed at the end."""
        own = self.out.file
        with _Screen(pipe, self.out.encoding, errors="backslashreplace") as screen:
            self.out.file = screen
            try:
                yield
            finally:
                self.out.file = own

    def show(self, what: RenderableType, *, end: str = "\n") -> None:
        """Print on standard output."""
        _put(self.out, what, end)

    def write(self, piece: Text) -> None:
        """Print part of a line on standard output."""
        self.out.print(piece, end="", soft_wrap=True)
        self.out.file.flush()

    def tell(self, what: RenderableType, *, end: str = "\n") -> None:
        """Print on standard error."""
        _put(self.err, what, end)

    def emit(self, line: bytes) -> None:
        """Print a line of JSON on standard output, with control characters escaped."""
        text = visible_json(line.decode())
        self.out.file.write(f"{text}\n")
        self.out.file.flush()

    def fail(self, message: str, *more: str) -> None:
        """Print an error on standard error."""
        self.tell(joined(("Error: ", "bold red"), message))
        for each in more:
            self.tell(safe(each))


def _is_open(stream: TextIO | None) -> TypeGuard[TextIOWrapper]:
    """Whether a standard stream exists, and is a file of the process."""
    return isinstance(stream, TextIOWrapper) and not stream.closed


def _console(*, stderr: bool) -> Console:
    plain = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if plain.no_color:
        plain = Console(
            stderr=stderr, highlight=False, markup=False, emoji=False, color_system=None
        )
    if not plain.is_terminal:
        plain.width = max(plain.width, UNSEEN_WIDTH)
    return plain


def _put(console: Console, what: RenderableType, end: str) -> None:
    """Wrap text for people only: a program that reads it gets whole lines."""
    whole = isinstance(what, Text) and not console.is_terminal
    console.print(what, end=end, soft_wrap=whole)
    console.file.flush()
