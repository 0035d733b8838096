"""Live events of a run: read from the store once, and shared by all who follow the run."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from contextvars import Context

from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey

# How many events wait for a follower; one that is further behind reads them from the store again.
MOST = 1_000

# Seconds between two batches, for each follower and at most: many followers are woken less often,
# so that the run has most of the time.
PAUSE, LONGEST = 0.000_1, 0.05

# So few followers are told at once.
FEW = 8


class Follower:
    """The events that wait for one who follows a run: those behind the position `since`."""

    def __init__(self) -> None:
        self.since = 0
        self.trouble: Exception | None = None
        self._batches: deque[Sequence[Event]] = deque()
        self._waiting = 0
        self._bell: asyncio.Future[None] | None = None

    def begin(self, since: int) -> None:
        """Let events wait that come behind a position."""
        self.since = since
        self._ring()

    def put(self, batch: Sequence[Event]) -> None:
        """Let events wait; if they are too many, leave them to the store."""
        self._batches.append(batch)
        self._waiting += len(batch)
        if self._waiting > MOST:
            self._batches.clear()
            self._waiting = 0
            self.since = batch[-1].seq
        self._ring()

    def fail(self, trouble: Exception) -> None:
        """Say that no more events come, and why."""
        self.trouble = self.trouble or trouble
        self._ring()

    def take(self) -> Sequence[Event]:
        """The next events that wait, if any do."""
        if not self._batches:
            return ()
        batch = self._batches.popleft()
        self._waiting -= len(batch)
        return batch

    async def wait(self) -> None:
        """Wait until something may have changed."""
        self._bell = asyncio.get_running_loop().create_future()
        await self._bell

    def _ring(self) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)


class Feed:
    """Reads what is stored of a run from now on, for all who follow it in this process."""

    def __init__(self, stored: EventLog, run: RunKey) -> None:
        self.followers: set[Follower] = set()
        self._stored = stored
        self._run = run
        self._position: int | None = None
        self._batch: list[Event] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        # It outlives whoever came first, and so does not live in their context.
        self._reading = self._loop.create_task(self._read(), context=Context())

    @property
    def is_over(self) -> bool:
        """Whether it reads no more."""
        return self._reading.done()

    def join(self) -> Follower:
        """Let another one follow; without a position yet, it hears where it begins."""
        follower = Follower()
        self.followers.add(follower)
        if self._position is not None:
            follower.begin(self._position)
        return follower

    async def leave(self, follower: Follower) -> None:
        """Let one follow no more, and end with the last one."""
        self.followers.discard(follower)
        if self.followers:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        try:
            ends = await self._stored.ends(self._run)
            position = self._position = ends[1].seq if ends else 0
            for follower in self.followers:
                follower.begin(position)
            async with aclosing(self._stored.subscribe(self._run, position)) as events:
                async for event in events:
                    self._batch.append(event)
                    if self._timer is None:
                        self._timer = self._loop.call_later(self._pause, self._spread)
        except Exception as error:  # noqa: BLE001 - it is raised where the run is followed
            self._spread()
            for follower in self.followers:
                follower.fail(error)

    @property
    def _pause(self) -> float:
        count = len(self.followers)
        return min(PAUSE * count, LONGEST) if count > FEW else 0.0

    def _spread(self) -> None:
        """Give all followers what came since the last time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._batch:
            batch, self._batch = self._batch, []
            self._position = batch[-1].seq
            for follower in self.followers:
                follower.put(batch)
