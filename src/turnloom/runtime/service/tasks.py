"""The tasks of one drive: turns and steps that are taken side by side."""

import asyncio
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any


class TaskSet:
    """Tasks by the key of their work. On leaving it, none is left behind."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_changed = False
        self._waiter: asyncio.Future[None] | None = None
        self._roused = True

    async def __aenter__(self) -> "TaskSet":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.stop()

    def __contains__(self, key: str) -> bool:
        return key in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside the others."""
        task = asyncio.create_task(work)
        self._tasks[key] = task
        task.add_done_callback(self._wake)

    async def stop(self) -> None:
        """Interrupt all of them, and wait for their end."""
        await self.drop([*self._tasks])

    async def drop(self, keys: Iterable[str]) -> None:
        """Interrupt some of them, all before any continues, and wait for their end."""
        tasks = [self._tasks.pop(key) for key in keys if key in self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # it was to end; how it did does not matter any more

    async def _change(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._wake) if seconds is not None else None
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self, task: object = None) -> None:
        self._is_changed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def rouse(self) -> None:
        """Say that something came from outside."""
        self._roused = True
        self._wake()

    def take_roused(self) -> bool:
        """Whether something may have come from outside since this was last asked."""
        roused, self._roused = self._roused, False
        return roused

    async def wait(self, seconds: float | None) -> None:
        """Wait until a task ends or something comes, for so many seconds at most.

        Raises:
            Exception: whatever a task raised that is not on record.
        """
        if not self._is_changed:
            await self._change(seconds)
        self._is_changed = False
        for key, task in [*self._tasks.items()]:
            if task.done():
                del self._tasks[key]
                task.result()
