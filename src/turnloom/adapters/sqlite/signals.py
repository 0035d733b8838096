"""Waking those who wait for something in the store, whichever process wrote it."""

import asyncio
import sqlite3
from collections.abc import Callable, Hashable

# Seconds between two looks at whether another process wrote, while somebody waits.
INTERVAL = 0.1


class Signals:
    """Who waits for which topic. Rung by this process's writes, and by others' through a look."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._seen: int | None = None
        self._waiting: dict[Hashable, list[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, topic: Hashable) -> None:
        """Wait until something may have come; call it straight after having looked in vain."""
        loop = asyncio.get_running_loop()
        bell: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(topic, []).append(bell)
        if self._timer is None or self._loop is not loop:
            self._arm(loop)
        try:
            await bell
        finally:
            self._forget(topic, bell)

    def ring(self, topic: Hashable) -> None:
        """Wake those who wait for a topic."""
        for bell in self._waiting.pop(topic, ()):
            if not bell.done():
                bell.set_result(None)

    def ring_all(self) -> None:
        """Wake everybody."""
        for topic in tuple(self._waiting):
            self.ring(topic)

    def stop(self) -> None:
        """Look no more."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer = loop.call_later(INTERVAL, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._waiting or self._loop is None:
            return
        try:
            version = self._version()
        except sqlite3.Error:
            version = None  # whoever waits looks for himself, and meets the error
        if version is None or version != self._seen:
            self._seen = version
            self.ring_all()
        self._arm(self._loop)

    def _forget(self, topic: Hashable, bell: asyncio.Future[None]) -> None:
        bells = self._waiting.get(topic)
        if bells and bell in bells:
            bells.remove(bell)
            if not bells:
                del self._waiting[topic]
