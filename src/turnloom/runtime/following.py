"""Live subscriptions to runs: their events, their text deltas, and the error that stops a drive."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import Context

import anyio
import msgspec

from turnloom.agents.spec import RunState
from turnloom.errors import UsageError
from turnloom.kernel.contained import bare
from turnloom.log.events import ENDS
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import Delta

# Events queued per follower; a slower one reads from the store again.
MOST = 1_000

# Seconds between two batches, per follower and at most. Many followers are woken less often, so
# that the run gets most of the time.
PAUSE, LONGEST = 0.000_1, 0.05

# Seconds for the last events of a run whose drive failed: the store may be what failed.
LAST = 2.0

# Up to this many followers are notified without a pause.
FEW = 8


class Follower:
    """The queue of events for one follower: those after position `since`."""

    def __init__(self) -> None:
        self.since = 0
        self.error: Exception | None = None
        self._batches: deque[Sequence[Event]] = deque()
        self._waiting = 0
        self._bell: asyncio.Future[None] | None = None

    def begin(self, since: int) -> None:
        """Start queueing events after a position."""
        self.since = since
        self._ring()

    def put(self, batch: Sequence[Event]) -> None:
        """Queue events; if they are too many, drop them: the follower reads them from the store."""
        self._batches.append(batch)
        self._waiting += len(batch)
        if self._waiting > MOST:
            self._batches.clear()
            self._waiting = 0
            self.since = batch[-1].seq
        self._ring()

    def fail(self, error: Exception) -> None:
        """Stop the follower with an error."""
        self.error = self.error or error
        self._ring()

    def take(self) -> Sequence[Event]:
        """The next queued batch; empty if there is none."""
        if not self._batches:
            return ()
        batch = self._batches.popleft()
        self._waiting -= len(batch)
        return batch

    async def wait(self) -> None:
        """Wait for a change."""
        self._bell = asyncio.get_running_loop().create_future()
        await self._bell

    def _ring(self) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)


class Feed:
    """Reads new events of a run once, for all its followers in this process."""

    def __init__(self, stored: EventLog, run: RunKey) -> None:
        self.followers: set[Follower] = set()
        self._stored = stored
        self._run = run
        self._position: int | None = None
        self._batch: list[Event] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        # It outlives the first follower, so it does not run in that context.
        self._reading = self._loop.create_task(self._read(), context=Context())

    @property
    def is_over(self) -> bool:
        """Whether it has stopped reading."""
        return self._reading.done()

    def join(self) -> Follower:
        """Add a follower; it starts once the position is known."""
        follower = Follower()
        self.followers.add(follower)
        if self._position is not None:
            follower.begin(self._position)
        return follower

    async def leave(self, follower: Follower) -> None:
        """Remove a follower; the last one stops the feed."""
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
        except Exception as error:  # noqa: BLE001 - raised in every follower
            self._spread()
            for follower in self.followers:
                follower.fail(error)

    @property
    def _pause(self) -> float:
        count = len(self.followers)
        return min(PAUSE * count, LONGEST) if count > FEW else 0.0

    def _spread(self) -> None:
        """Send the batch to all followers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._batch:
            batch, self._batch = self._batch, []
            self._position = batch[-1].seq
            for follower in self.followers:
                follower.put(batch)


log = logging.getLogger("turnloom.runs")

# Deltas buffered for later listeners before they are joined.
PIECES = 1000


class OpenAnswer:
    """The answer that an open turn makes: its deltas so far, and the user who sees them."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.pieces: list[Delta] = []

    def add(self, delta: Delta) -> None:
        """Add a delta; many are joined."""
        self.pieces.append(delta)
        if len(self.pieces) > PIECES:
            text = "".join(each.text for each in self.pieces)
            self.pieces = [msgspec.structs.replace(self.pieces[0], text=text)]


class Subscriptions:
    """Subscriptions to the runs of a store."""

    def __init__(self, stored: EventLog) -> None:
        self._stored = stored
        self._listeners: dict[RunKey, set[tuple[Callable[[Delta], None], str | None]]] = {}
        self._spoken: dict[RunKey, dict[int, OpenAnswer]] = {}
        self._feeds: dict[RunKey, Feed] = {}
        self._errors: dict[RunKey, Exception] = {}
        self._resting: dict[RunKey, asyncio.Future[RunState]] = {}

    def clear_error(self, run: RunKey) -> None:
        """Drop the error of an earlier drive."""
        self._errors.pop(run, None)

    def drop_deltas(self, run: RunKey) -> None:
        """Drop buffered deltas once the drive has ended."""
        self._spoken.pop(run, None)

    def fail(self, run: RunKey, error: Exception, trace: str, *, log_it: bool = True) -> None:
        """Raise `error` in every follower of the run; log its trace if there is none."""
        self._errors[run] = bare(error)
        self._fail_resting(run, error)
        feed = self._feeds.get(run)
        followers = [each for each in feed.followers if each.error is None] if feed else ()
        for follower in followers:
            follower.fail(error)
        if not followers and log_it:
            log.error("run %s cannot be driven: %s", run.id, trace)

    def rest(self, run: RunKey, state: RunState) -> None:
        """Give the state of a run to those who wait for the end of its drive."""
        resting = self._resting.pop(run, None)
        if resting is not None and not resting.done():
            resting.set_result(state)

    async def rested(self, run: RunKey) -> RunState:
        """The state of a run at the end of its current drive.

        Raises:
            TurnloomError: it cannot be driven here.
        """
        if run in self._errors:
            raise bare(self._errors[run])
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
            resting.exception()  # there may be no waiter left

    async def events(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """The events of a run after a position, live, up to its end.

        Raises:
            TurnloomError: the run cannot be driven here, as when the disk is full.
        """
        feed = self._feed(run)
        follower = feed.join()
        if run in self._errors:
            follower.fail(bare(self._errors[run]))
        try:
            while True:
                for event in await self._more(run, follower, after):
                    if event.seq > after:
                        after = event.seq
                        yield event
                    if event.kind in ENDS and not await self._continues(run, event.seq):
                        return
        finally:
            if feed.followers == {follower} and self._feeds.get(run) is feed:
                del self._feeds[run]
            await feed.leave(follower)

    async def _continues(self, run: RunKey, end: int) -> bool:
        """Whether a run was retried after an end."""
        ends = await self._stored.ends(run)
        return ends is not None and ends[1].seq > end

    async def _more(self, run: RunKey, follower: Follower, after: int) -> Sequence[Event]:
        """The next events for a follower: from the store if it is behind, else from its queue. If
        it failed: what is stored, then the error."""
        if after < follower.since:
            return await self._page(run, after, follower.since)
        if batch := follower.take():
            return batch
        if follower.error is None:
            await follower.wait()
        elif rest := await self._rest(run, after):
            return rest
        else:
            raise follower.error
        return ()

    async def _rest(self, run: RunKey, after: int) -> Sequence[Event]:
        """What is stored after a position; nothing if the store does not say so soon."""
        with anyio.move_on_after(LAST):
            return await self._stored.read(run, after)
        return ()

    async def _page(self, run: RunKey, after: int, last: int) -> Sequence[Event]:
        """Stored events between two positions, at most as many as a queue holds."""
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

    def publish(self, run: RunKey, delta: Delta, user: str) -> None:
        """Send a text delta to the listeners of its run; `user` sees it in their chat."""
        answers = self._spoken.setdefault(run, {})
        if delta.offset == 0:
            answers[delta.turn] = OpenAnswer(user)
        if (answer := answers.get(delta.turn)) is None:
            return  # its turn has ended
        answer.add(delta)
        for listener, confined in self._listeners.get(run, ()):
            if confined in (None, user):
                listener(delta)

    def end(self, run: RunKey, turn: int) -> None:
        """Drop the buffered deltas of a turn that is not taken any more."""
        self._spoken.get(run, {}).pop(turn, None)

    @contextmanager
    def listen(
        self, run: RunKey, listener: Callable[[Delta], None], user: str | None = None
    ) -> Generator[None]:
        """Call `listener` with each delta while the context is open; with a `user`, with those of
        the user's chat only.

        The answers in progress, one of each open turn, are replayed from their start.
        """
        for answer in self._spoken.get(run, {}).values():
            if user in (None, answer.user):
                for delta in answer.pieces:
                    listener(delta)
        self._listeners.setdefault(run, set()).add((listener, user))
        try:
            yield
        finally:
            self._listeners[run].discard((listener, user))
            if not self._listeners[run]:
                del self._listeners[run]
