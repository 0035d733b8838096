"""Turns of one run that are taken side by side."""

import asyncio
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any


class Crew:
    """The tasks of one drive. On leaving it, none is left behind."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self.is_stopping = False

    async def __aenter__(self) -> "Crew":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Interrupt the turns that are being taken, and wait for their end."""
        self.is_stopping = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    def __contains__(self, number: int) -> bool:
        return number in self._tasks

    @property
    def size(self) -> int:
        """How many turns are being taken."""
        return len(self._tasks)

    @property
    def is_busy(self) -> bool:
        """Whether a turn is being taken."""
        return bool(self._tasks)

    def begin(self, number: int, turn: Coroutine[Any, Any, None]) -> None:
        """Let a turn be taken beside the others."""
        task = asyncio.create_task(turn)
        self._tasks[number] = task
        task.add_done_callback(lambda ended: self.rouse())

    async def drop(self, numbers: Iterable[int]) -> None:
        """Interrupt some that are being taken, all of them before any goes on, and wait for their
        end."""
        tasks = [self._tasks.pop(number) for number in numbers if number in self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    def rouse(self) -> None:
        """Say that something changed: a turn ended, or something came from outside."""
        self._changed.set()

    async def wait(self, seconds: float | None) -> None:
        """Wait until something changes, but no longer than that.

        Raises:
            Exception: whatever a turn raised that is not on record.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()
        for number, task in [*self._tasks.items()]:
            if task.done():
                del self._tasks[number]
                task.result()
