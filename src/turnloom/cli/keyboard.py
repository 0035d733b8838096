"""Lines that a person types, awaited in a way that can be given up at any moment."""

import asyncio
import os
import sys


def is_attended() -> bool:
    """Whether a person sits at standard input."""
    # Without a standard input at all, Python has none here either.
    return bool(sys.stdin) and sys.stdin.isatty()


class Keyboard:
    """Standard input, line by line; what was typed ahead is kept for the next line."""

    def __init__(self, file: int = 0) -> None:
        self._file = file
        self._typed = b""

    async def line(self) -> str | None:
        """The next line without its end, or nothing when the person is done."""
        while b"\n" not in self._typed:
            more = await self._more()
            if not more:
                return None
            self._typed += more
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _more(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._file, _mark, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._file)
        return os.read(self._file, 4096)


def _mark(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
