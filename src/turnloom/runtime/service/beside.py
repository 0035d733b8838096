"""Calls that go on at the same time."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from turnloom.runtime.service.journal import Journal

J = TypeVar("J")
T = TypeVar("T")


async def side_by_side(
    jobs: Sequence[J], call: Callable[[J], Awaitable[T]]
) -> AsyncGenerator[tuple[J, T]]:
    """Each job with what its call gave, as soon as it is there.

    What one of them raises comes as it is, and none is left behind. Those that are done at the
    same time come in their order.
    """
    going = {asyncio.ensure_future(call(job)): job for job in jobs}
    left = set(going)
    try:
        while left:
            await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in going if task in left and task.done()]:
                left.discard(task)
                yield going[task], task.result()
    finally:
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Abreast:
    """The calls of one answer: a call that asked a person waits for the answer here as long as
    other calls go on, which may take long."""

    def __init__(self, journal: Journal, calls: int) -> None:
        self._journal = journal
        self._going = calls
        self._changed = asyncio.Event()

    @contextmanager
    def going(self) -> Generator[None]:
        """One of the calls, from its beginning to its end."""
        try:
            yield
        finally:
            self._going -= 1
            self._tell()

    async def is_answered(self, question: str) -> bool:
        """Whether a question is closed by the time at which no other call goes on."""
        self._going -= 1
        self._tell()
        try:
            if self._going:
                await self._until_closed(question)
        finally:
            self._going += 1
        return question not in self._journal.state.questions

    async def _until_closed(self, question: str) -> None:
        journal = self._journal
        await journal.commit()  # that it is asked
        journal.on_closed.append(self._tell)
        try:
            while self._going and question in journal.state.questions:
                await self._changed.wait()
        finally:
            journal.on_closed.remove(self._tell)
        await journal.commit()  # that it is answered, before the call acts on that

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
