"""Deliver messages to runs, and wake the runs they are for."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime, timedelta

from turnloom.board.ports import ArtifactStore
from turnloom.board.service.rebuilding import index
from turnloom.errors import CodeMissing, RunBusy, StoreUnavailable, UnknownKind
from turnloom.log.events import ENDS, RunPaused, RunStarted
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, RunKey
from turnloom.runs.actions import Forward, OpenRun
from turnloom.runtime.activity import NOTED, Activity
from turnloom.runtime.boards import BoardRuns
from turnloom.runtime.drive.driver import Driver, Stores
from turnloom.runtime.journal import Tell
from turnloom.runtime.ports import Scheduler, is_shared
from turnloom.runtime.spec import INTERRUPT, Delivery, Message, Say, Stop, Wake

# Seconds that a message waits for the driver of the run before it is recorded here.
GRACE = 1.0

# How often a message waits that long for a driver that does not take it in. A driver that does not
# respond loses its lease, by default earlier.
PATIENCE = 60

# Delay before the next look at a run that another process holds, or at mail.
RETRY = timedelta(milliseconds=200)

log = logging.getLogger("turnloom.runs")


class MailDelivery:
    """Delivers messages to the runs of a store, and wakes the runs that this program drives: those
    started or resumed here, and those it `serves`. `declares` says whether this program could
    continue a run. With a scheduler that drives elsewhere, every run is woken, and this program
    attends to those that it drives at the moment."""

    def __init__(
        self,
        stores: Stores,
        scheduler: Scheduler,
        driver: Driver,
        declares: Callable[[RunStarted], bool],
        serves: Callable[[RunStarted], bool],
    ) -> None:
        self._stores = stores
        self._scheduler = scheduler
        self._driver = driver
        self._declares = declares
        self._serves = serves
        self._is_shared = is_shared(scheduler)
        self._attended: set[RunKey] = set()
        self._woken: dict[RunKey, int] = {}
        self._waits: set[asyncio.Task[None]] = set()

    async def send(self, run: RunKey, id: str, message: Message) -> Event | None:
        """Deliver a message and wait until an event of its id is stored; that event, or None if the
        run ended."""
        _, last = await ends_of(self._stores.log, run)
        is_first = await self._stores.inbox.offer(run, id, message)
        await self.wake(run)  # also for a repeated message: its sender waits for the next drive
        if is_first or not await self._recorded(run, id, 0):
            await self.deliver(run, id, last.seq)
        return await self._recorded(run, id, last.seq if is_first else 0)

    async def _recorded(self, run: RunKey, id: str, after: int) -> Event | None:
        events = await self._stores.log.read(run, after)
        return next((event for event in events if event.id == id), None)

    async def drop(self, run: RunKey, id: str, message: Message) -> None:
        """Deliver a message without waiting."""
        await self._stores.inbox.offer(run, id, message)
        await self.wake(run)
        self._driver.rouse(run)

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive a run, now or at an instant; from now on this program drives it, unless the
        scheduler drives elsewhere."""
        if not self._is_shared:
            self._attended.add(run)
            if at is None:
                self._woken[run] = self._woken.get(run, 0) + 1
        await self._scheduler.wake(run, at)

    def wake_soon(self, run: RunKey) -> None:
        """Wake a run that another process holds at the moment. That process does not follow the
        clock of this app, which may stand."""
        waiting = asyncio.create_task(self._wake_after(RETRY, run))
        self._waits.add(waiting)
        waiting.add_done_callback(self._waits.discard)

    async def _wake_after(self, delay: timedelta, run: RunKey) -> None:
        await asyncio.sleep(delay.total_seconds())
        await self.wake(run)

    def begin(self, run: RunKey) -> int:
        """Note that a drive begins; pass the result to `rest`."""
        return 0 if self._is_shared else self._woken.setdefault(run, 1)

    def rest(self, run: RunKey, begun: int, *, is_over: bool) -> None:
        """Note that a drive ended, and the run with it if `is_over`."""
        if self._woken.get(run) == begun:
            del self._woken[run]
        if is_over:
            self._attended.discard(run)

    async def give_back(self) -> None:
        """Wake other processes for runs whose drives were interrupted here, or not begun."""
        for waiting in self._waits:
            waiting.cancel()
        for run in [*self._woken]:
            _, last = await ends_of(self._stores.log, run)
            if last.kind not in (*ENDS, RunPaused.kind):
                await self._stores.inbox.offer(run, f"resumed@{last.seq}", Wake())

    async def deliver(self, run: RunKey, id: str, after: int) -> Delivery:
        """Wait until the event of an offered message is in the log.

        Raises:
            RunBusy: the process that drives the run does not take the message in.
        """
        if self._is_shared:
            await self.wake(run)  # whichever process drives it hears of the message by itself
        await self.rouse(run)
        for _ in range(PATIENCE):
            try:
                async with asyncio.timeout(GRACE):
                    await self._appears(run, id, after)
                return Delivery.TAKEN
            except TimeoutError:
                if await self._stores.claims.held(run):
                    continue
            if not await self._is_declared(run):
                return Delivery.KEPT
            try:
                await self._driver.take_in(run)
                return Delivery.RECORDED
            except RunBusy:
                continue
            except CodeMissing:
                return Delivery.KEPT
        holder = await self._stores.claims.held(run)
        raise RunBusy(
            f"Run {run.id!r} is being driven by {holder or 'another process'}. The message is "
            "stored, but not taken in yet. Wait, or stop that process and resume the "
            f"run with `turnloom resume {run.id}`."
        )

    async def _is_declared(self, run: RunKey) -> bool:
        """Whether this program can continue a run: boards and flows are declared in code."""
        ends = await self._stores.log.ends(run)
        return ends is not None and self._declares(ends[0].data)

    async def _appears(self, run: RunKey, id: str, after: int) -> None:
        async with aclosing(self._stores.log.subscribe(run, after)) as events:
            async for event in events:
                if event.id == id or (event.kind in ENDS and await self._is_last(run, event)):
                    return

    async def _is_last(self, run: RunKey, event: Event) -> bool:
        """Whether nothing follows an event: an ended run may have been retried."""
        ends = await self._stores.log.ends(run)
        return ends is None or ends[1].seq == event.seq

    async def watch(self) -> None:
        """Rouse runs that get mail from other processes, also after an outage of the store."""
        arrivals: AsyncIterator[RunKey] | None = None
        run: RunKey | None = None
        while True:
            try:
                arrivals = arrivals or self._stores.inbox.arrivals()
                run = run or await anext(arrivals)
                await self.rouse(run)
                run = None
            except StoreUnavailable as error:
                log.warning("mail is looked at again soon: %s", error)
                await asyncio.sleep(RETRY.total_seconds())
            except UnknownKind as error:
                log.warning("mail stays where it is: %s", error)
                run = None

    async def rouse(self, run: RunKey) -> None:
        """Wake a run that has mail, if this program drives it; interrupt it first if it is
        cancelled, or a message interrupts its turn."""
        if not await self._attends(run):
            return
        pending = await self._stores.inbox.pending(run)
        if not pending and (self._is_shared or not await self._is_behind(run)):
            return
        is_told = self._driver.heeds(run)  # it stops by itself, in its own order
        if not is_told and any(_interrupts(message) for _, message in pending):
            await self._scheduler.cancel(run)
        await self.wake(run)
        self._driver.rouse(run)

    async def _is_behind(self, run: RunKey) -> bool:
        """Whether another process took in the mail of a run that rests here."""
        if not self._driver.keeps(run):
            return False
        _, last = await ends_of(self._stores.log, run)
        return self._driver.is_behind(run, last.seq)

    async def _attends(self, run: RunKey) -> bool:
        if self._is_shared:
            return self._driver.heeds(run) is not None
        if run in self._attended:
            return True
        ends = await self._stores.log.ends(run)
        return ends is not None and self._serves(ends[0].data)


def _interrupts(message: Message) -> bool:
    """Whether a message ends what is being done."""
    return isinstance(message, Stop) or (isinstance(message, Say) and message.if_busy == INTERRUPT)


class BoardRegistry:
    """The boards of a program: delivery between their runs, and which of them are busy."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self.activities: dict[RunKey, Activity] = {}
        self._artifacts = artifacts
        self._boards: dict[str, BoardRuns] = {}

    def add(self, board: BoardRuns) -> BoardRuns:
        """Register a board."""
        self._boards[board.name] = board
        return board

    async def deliver(self, board: str, what: Forward) -> None:
        """Deliver an artifact to the run that collects for a subscription."""
        await self._boards[board].deliver(what)

    async def open(self, board: str, opening: OpenRun, parent: str) -> None:
        """Start the run of a collected set."""
        await self._boards[board].open(opening, parent)

    def serves(self, started: RunStarted) -> bool:
        """Whether a board of this program serves all of its runs, and this is one of them."""
        board = self._boards.get(started.workflow)
        return board is not None and board.is_served and board.has(started)

    @contextmanager
    def busy(self, run: RunKey, driver: Driver) -> Generator[None]:
        """Mark a run as busy on its board while the context is open."""
        activity = self.activities.get(run)
        if activity is None:
            yield
            return
        begun, is_resting = activity.begin(run.id), True
        try:
            yield
            is_resting = not driver.continues(run)
        except (RunBusy, asyncio.CancelledError):
            is_resting = False  # another drive follows
            raise
        except Exception as error:
            activity.fail(error)
            raise
        finally:
            activity.end(run.id, begun, is_resting=is_resting)
            if not (driver.keeps(run) or activity.is_wanted(run.id)):
                self.activities.pop(run, None)

    def watch(self, run: RunKey) -> Tell | None:
        """The callback for stored events of a run; None if nothing needs it."""
        is_told = run in self.activities or not self._artifacts.follows_log
        return self._note if is_told else None

    async def _note(self, run: RunKey, batch: Sequence[Event]) -> None:
        """Update the index of artifacts and the activity of the board."""
        if not self._artifacts.follows_log:
            await index(self._artifacts, run.tenant, batch)
        activity = self.activities.get(run)
        if activity is not None:
            for event in batch:
                if event.kind in NOTED:
                    activity.note(event)
            activity.change()

    def stop(self) -> None:
        """Tell the boards that nothing is driven any more."""
        for board in self._boards.values():
            board.activity.stop()

    def attends(self, run: RunKey) -> bool:
        """Whether the board of a run is notified of errors."""
        return run in self.activities
