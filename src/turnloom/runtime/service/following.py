"""Whoever watches runs: what is stored, what is said meanwhile, and what goes wrong."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager

from turnloom.agents.spec import RunState
from turnloom.errors import UsageError
from turnloom.log.events import ENDS
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import Delta

log = logging.getLogger("turnloom.runs")


class Following:
    """The watchers of the runs of a store."""

    def __init__(self, stored: EventLog) -> None:
        self._stored = stored
        self._listeners: dict[RunKey, set[Callable[[Delta], None]]] = {}
        self._spoken: dict[RunKey, list[Delta]] = {}
        self._followers: dict[RunKey, set[asyncio.Future[None]]] = {}
        self._troubles: dict[RunKey, Exception] = {}
        self._resting: dict[RunKey, asyncio.Future[RunState]] = {}

    def begin(self, run: RunKey) -> None:
        """Forget what went wrong with a run: it is driven again."""
        self._troubles.pop(run, None)

    def end(self, run: RunKey) -> None:
        """Forget what was said: the drive is over."""
        self._spoken.pop(run, None)

    def tell(self, run: RunKey, error: Exception, *, aloud: bool = True) -> None:
        """Let trouble reach whoever follows the run, now or later, or else the program's log."""
        self._troubles[run] = error
        self._fail_resting(run, error)
        followers = [each for each in self._followers.get(run, ()) if not each.done()]
        for follower in followers:
            follower.set_exception(error)
        if not followers and aloud:
            log.error("run %s cannot be driven: %s", run.id, error, exc_info=error)

    def rest(self, run: RunKey, state: RunState) -> None:
        """Say what a run knows whose drive is over."""
        resting = self._resting.pop(run, None)
        if resting is not None and not resting.done():
            resting.set_result(state)

    async def rested(self, run: RunKey) -> RunState:
        """What a run knows when a drive of it is over.

        Raises:
            TurnloomError: it cannot be driven here.
        """
        if run in self._troubles:
            raise self._troubles[run]
        if run not in self._resting:
            self._resting[run] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._resting[run])

    def stop(self) -> None:
        """Fail those who wait for drives: nothing is driven here any more."""
        for run in [*self._resting]:
            closed = UsageError("This app was closed while the run was open. Resume it in another.")
            self._fail_resting(run, closed)

    def _fail_resting(self, run: RunKey, error: Exception) -> None:
        resting = self._resting.pop(run, None)
        if resting is not None and not resting.done():
            resting.set_exception(error)
            resting.exception()  # it may be that nobody waits any more

    async def events(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """The events of a run from a position on, live, up to its end.

        Raises:
            TurnloomError: the run cannot be driven here, as when the disk is full.
        """
        trouble = self._follow(run)
        try:
            async with aclosing(self._stored.subscribe(run, after)) as events:
                while event := await _next(events, trouble):
                    after = event.seq
                    yield event
                    if event.kind in ENDS:
                        return
            for event in await self._stored.read(run, after):
                yield event
            trouble.result()
        finally:
            self._unfollow(run, trouble)

    def _follow(self, run: RunKey) -> "asyncio.Future[None]":
        """What fails when the run cannot be driven here, if that is not known already."""
        trouble: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers.setdefault(run, set()).add(trouble)
        if run in self._troubles:
            trouble.set_exception(self._troubles[run])
        return trouble

    def _unfollow(self, run: RunKey, trouble: "asyncio.Future[None]") -> None:
        followers = self._followers[run]
        followers.discard(trouble)
        if trouble.done():
            trouble.exception()
        if not followers:
            del self._followers[run]

    def spread(self, run: RunKey, delta: Delta) -> None:
        """Let listeners hear a piece of an answer."""
        if delta.offset == 0:
            self._spoken[run] = []
        self._spoken[run].append(delta)
        for listener in self._listeners.get(run, ()):
            listener(delta)

    @contextmanager
    def listening(self, run: RunKey, listener: Callable[[Delta], None]) -> Generator[None]:
        """Let a listener hear answers of the run while they are made here; beside the log.

        The answer that was made last is heard from its beginning, also if that was before.
        """
        for delta in self._spoken.get(run, ()):
            listener(delta)
        self._listeners.setdefault(run, set()).add(listener)
        try:
            yield
        finally:
            self._listeners[run].discard(listener)
            if not self._listeners[run]:
                del self._listeners[run]


async def _next(events: AsyncGenerator[Event], trouble: "asyncio.Future[None]") -> Event | None:
    """The next event, or nothing when trouble comes first."""
    coming = asyncio.ensure_future(anext(events))
    try:
        await asyncio.wait({coming, trouble}, return_when=asyncio.FIRST_COMPLETED)
        return await coming if coming.done() else None
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.wait({coming})
