"""What the clients of the classic line say while a model answers."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from turnloom.errors import EngineError

# What the clients call a piece of an answer.
STREAM = "stream"


class Hearing:
    """A stream for what a client says in a thread; nobody types into it.

    Pieces are heard in the event loop, in their order, and before the answer; the thread does not
    wait for it. Those of a call that is over are not heard.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._said = deque[str]()
        self._is_over = False

    def end(self) -> None:
        """Hear nothing more."""
        self._is_over = True

    def send(self, message: Any) -> None:
        """Have a piece of an answer heard."""
        if message.type == STREAM:
            self._said.append(message.content.content)
            if len(self._said) == 1:  # else the loop has been woken, and is not through
                self._loop.call_soon_threadsafe(self._hear_all)

    def _hear_all(self) -> None:
        while self._said:
            words = self._said.popleft()
            if not self._is_over:
                self._hear(words)

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Print nothing: what is to be known of a call is on record."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """Refuse: a model client asks nobody.

        Raises:
            EngineError: always.
        """
        raise EngineError(f"A model client asked for input: {prompt!r}. Use another client.")
