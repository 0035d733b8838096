"""Observers: they see stored events, and cannot slow or break a run."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from inspect import isawaitable, iscoroutine, iscoroutinefunction, signature
from itertools import islice
from typing import cast

from anyio import CapacityLimiter, to_thread

from turnloom.errors import UsageError
from turnloom.kernel.contained import contained
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.journal import Tell
from turnloom.runtime.ports import Observer
from turnloom.runtime.spec import ObservedRun

log = logging.getLogger("turnloom.observers")

# Events per call of the thread that runs a plain `observe`.
BATCH = 256

# Seconds that a cancelled observer has to end.
GRACE = 1.0

Item = tuple[Event, ObservedRun]


class ObserverQueue:
    """The events that wait for one observer, and its counts.

    At most `size` events wait; further ones are dropped. `seen` counts the events that the observer
    was called with, `failed` those at which it raised, and `dropped` those that it was not called
    with, because the queue was full or the app closed.
    """

    def __init__(self, observer: Observer, size: int) -> None:
        self.observer = observer
        self.seen = 0
        self.failed = 0
        self.dropped = 0
        self._name = type(observer).__name__
        self._size = size
        self._waiting: deque[Item] = deque()
        self._taken = 0
        self._unlogged = 0
        self._is_closed = False
        self._is_async = iscoroutinefunction(observer.observe)
        self._takes_run = _takes_run(observer)
        self._thread: CapacityLimiter | None = None
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        counts = f"seen={self.seen} failed={self.failed} dropped={self.dropped}"
        return f"<ObserverQueue of {self._name}: waiting={self.waiting} {counts}>"

    @property
    def waiting(self) -> int:
        """The number of waiting events."""
        return len(self._waiting) + self._taken

    def offer(self, batch: Sequence[Event], run: ObservedRun) -> None:
        """Queue events while there is room, and drop the others."""
        room = 0 if self._is_closed else max(0, self._size - self.waiting)
        self._waiting.extend((event, run) for event in islice(batch, room))
        self._drop(max(0, len(batch) - room))
        if self._waiting and self._task is None:
            self._task = asyncio.create_task(self._work(), context=Context())

    async def _work(self) -> None:
        try:
            while self._waiting:
                await (self._observe_next() if self._is_async else self._observe_batch())
                if not self._waiting:
                    self._log_drops()
        except Exception:
            log.exception("%s cannot be called", self._name)
        finally:
            self._task = None
            self._drop(self._taken)
            self._taken = 0

    async def _observe_next(self) -> None:
        item = self._waiting.popleft()
        self.seen += 1
        try:
            with contained():
                observe = cast(Callable[..., Awaitable[None]], self.observer.observe)
                await observe(*self._arguments(item))
        except Exception:  # noqa: BLE001 - whatever an observer raises is logged
            self._fail(item)

    async def _observe_batch(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        self._taken = len(batch)
        self._thread = self._thread or CapacityLimiter(1)
        observe = partial(self._observe_each, batch)
        await to_thread.run_sync(observe, abandon_on_cancel=True, limiter=self._thread)

    def _observe_each(self, batch: Sequence[Item]) -> None:
        """Call a plain `observe` in a thread, so that it may block."""
        for item in batch:
            if self._is_closed:
                return
            self.seen += 1
            self._taken -= 1
            try:
                _refuse_awaitable(self.observer.observe(*self._arguments(item)))
            except BaseException:  # noqa: BLE001 - `sys.exit()` too ends only this call
                self._fail(item)

    def _arguments(self, item: Item) -> tuple[object, ...]:
        return item if self._takes_run else item[:1]

    def _fail(self, item: Item) -> None:
        self.failed += 1
        event = item[0]
        log.exception("%s failed to observe %s of run %s", self._name, event.id, event.run)

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._unlogged += count

    def _log_drops(self) -> None:
        if self._unlogged:
            log.warning("%s is too slow: %d events were dropped", self._name, self._unlogged)
            self._unlogged = 0

    async def aclose(self, patience: float) -> None:
        """Give the observer some seconds for the events that wait, and drop the rest."""
        task = self._task
        if task is not None:
            await asyncio.wait({task}, timeout=patience)
            self._is_closed = True
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=GRACE)
        self._is_closed = True
        self._drop(len(self._waiting))
        self._waiting.clear()
        self._log_drops()


class Observers:
    """The observers of an app."""

    def __init__(self, queues: Sequence[ObserverQueue] = (), patience: float = 0) -> None:
        self._queues = queues
        self._patience = patience

    def __bool__(self) -> bool:
        return bool(self._queues)

    def watch(self, run: RunKey, started: RunStarted) -> Tell:
        """The callback for stored events of a run."""
        seen = ObservedRun(run.id, run.tenant, started.user, started.workflow, form=started.form)

        async def tell(_: RunKey, batch: Sequence[Event]) -> None:
            for queue in self._queues:
                queue.offer(batch, seen)

        return tell

    async def aclose(self) -> None:
        """Give all observers time for the events that wait, within a bound."""
        if self._queues:
            async with asyncio.TaskGroup() as group:
                for queue in self._queues:
                    group.create_task(queue.aclose(self._patience))


def _takes_run(observer: Observer) -> bool:
    """Whether an observer takes the run in addition to the event.

    Raises:
        UsageError: it takes neither an event nor an event and its run.
    """
    try:
        expected = signature(observer.observe)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`observe` of {type(observer).__name__} cannot be called.") from error
    for count in (2, 1):
        try:
            expected.bind(*range(count))
        except TypeError:
            continue
        return count == 2
    raise UsageError(
        f"`observe` of {type(observer).__name__} takes {expected}. "
        "Write `observe(self, event)` or `observe(self, event, run)`."
    )


def _refuse_awaitable(given: object) -> None:
    if isawaitable(given):
        if iscoroutine(given):
            given.close()
        raise TypeError("A plain `observe` gave an awaitable. Write it with `async def`.")
