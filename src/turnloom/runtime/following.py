"""Follow runs: events and deltas."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import Context

import msgspec

from turnloom.agents.spec import RunState
from turnloom.errors import UsageError
from turnloom.kernel.contained import bare
from turnloom.log.events import ENDS
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import Delta

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


log = logging.getLogger("turnloom.runs")

# How many pieces of an answer are kept for those who listen later, before they are put together.
PIECES = 1000


class Following:
    """The watchers of the runs of a store."""

    def __init__(self, stored: EventLog) -> None:
        self._stored = stored
        self._listeners: dict[RunKey, set[Callable[[Delta], None]]] = {}
        self._spoken: dict[RunKey, list[Delta]] = {}
        self._feeds: dict[RunKey, Feed] = {}
        self._troubles: dict[RunKey, Exception] = {}
        self._resting: dict[RunKey, asyncio.Future[RunState]] = {}

    def begin(self, run: RunKey) -> None:
        """Forget what went wrong with a run: it is driven again."""
        self._troubles.pop(run, None)

    def end(self, run: RunKey) -> None:
        """Forget what was said: the drive is over."""
        self._spoken.pop(run, None)

    def tell(self, run: RunKey, error: Exception, trace: str, *, aloud: bool = True) -> None:
        """Let trouble reach those who follow the run, now or later, or else the program's log, with
        where it came from."""
        self._troubles[run] = bare(error)
        self._fail_resting(run, error)
        feed = self._feeds.get(run)
        followers = [each for each in feed.followers if each.trouble is None] if feed else ()
        for follower in followers:
            follower.fail(error)
        if not followers and aloud:
            log.error("run %s cannot be driven: %s", run.id, trace)

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
            raise bare(self._troubles[run])
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
        feed = self._feed(run)
        follower = feed.join()
        if run in self._troubles:
            follower.fail(bare(self._troubles[run]))
        try:
            while True:
                for event in await self._more(run, follower, after):
                    if event.seq > after:
                        after = event.seq
                        yield event
                    if event.kind in ENDS:
                        return
        finally:
            if feed.followers == {follower} and self._feeds.get(run) is feed:
                del self._feeds[run]
            await feed.leave(follower)

    async def _more(self, run: RunKey, follower: Follower, after: int) -> Sequence[Event]:
        """What a follower has not seen: from the store what it is behind with, else what waits for
        it; in trouble, what is stored, and then the trouble."""
        if after < follower.since:
            return await self._page(run, after, follower.since)
        if batch := follower.take():
            return batch
        if follower.trouble is None:
            await follower.wait()
        elif rest := await self._stored.read(run, after):
            return rest
        else:
            raise follower.trouble
        return ()

    async def _page(self, run: RunKey, after: int, last: int) -> Sequence[Event]:
        """Stored events between two positions, no more of them than may wait for a follower."""
        found: list[Event] = []
        async with aclosing(self._stored.subscribe(run, after)) as events:
            async for event in events:
                found.append(event)
                if event.seq == last or len(found) == MOST:
                    break
        return found

    def _feed(self, run: RunKey) -> Feed:
        feed = self._feeds.get(run)
        if feed is None or feed.is_over:
            feed = self._feeds[run] = Feed(self._stored, run)
        return feed

    def spread(self, run: RunKey, delta: Delta) -> None:
        """Let listeners hear a piece of an answer."""
        if delta.offset == 0:
            self._spoken[run] = []
        spoken = self._spoken[run]
        spoken.append(delta)
        if len(spoken) > PIECES:
            self._spoken[run] = _joined(spoken)
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


def _joined(pieces: Sequence[Delta]) -> list[Delta]:
    """Pieces that follow each other in one answer as one."""
    joined: list[tuple[Delta, list[str]]] = []
    ends: dict[tuple[int, str, int], int] = {}
    for each in pieces:
        answer = (each.turn, each.agent, each.call)
        if joined and ends.get(answer) == each.offset and _is_of(joined[-1][0], each):
            joined[-1][1].append(each.text)
        else:
            joined.append((each, [each.text]))
        ends[answer] = each.offset + len(each.text)
    return [msgspec.structs.replace(first, text="".join(texts)) for first, texts in joined]


def _is_of(one: Delta, other: Delta) -> bool:
    return (one.turn, one.agent, one.call) == (other.turn, other.agent, other.call)
