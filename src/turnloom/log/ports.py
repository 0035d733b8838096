"""Ports of the log: storage, clock, and effects that run once."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from turnloom.log.spec import EVERY_RUN, Event, Fact, Intent, RunFilter, RunKey


class EventLog(Protocol):
    """The append-only record of runs, separate for each tenant.

    Sequence numbers of a run start at 1 and have no gaps.
    """

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store events after position `expected`, all or none, and return them as stored.

        With the `fence` of a claim, they are stored only while that claim is in force; this is
        checked in the same transaction. Without one, as when a run starts, nothing is checked.
        A batch that is already stored there, under the same ids, is returned as stored.
        The call always yields to other tasks, however fast the store is.

        Raises:
            LeaseLost: the claim of this fence has ended; nothing was stored.
            Conflict: the log is at another position, or one of the ids is taken.
            StoreUnavailable: nothing was stored; the caller may retry the same append.
        """
        ...

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run after position `after`, in order; none for an unknown run.

        Raises:
            UnknownKind: one of them cannot be read; the message names it.
            LogDamaged: some of them are missing.
        """
        ...

    def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event after `after`, future ones included, once each, in order.

        Raises:
            LogDamaged: some of them are missing.
        """
        ...

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run; None for an unknown run.

        Raises:
            UnknownKind: one of them cannot be read.
            LogDamaged: the first one is missing.
        """
        ...

    async def runs(
        self,
        tenant: str,
        limit: int,
        *,
        before: str | None = None,
        unfinished: bool = False,
        which: RunFilter = EVERY_RUN,
    ) -> Sequence[tuple[Event, Event]]:
        """The first and the last event of at most `limit` runs of a tenant, newest run first: all
        runs, or those that started before the run `before`, that are unfinished, or that the filter
        `which` selects, as `is_chosen` does. An event that cannot be read has the kind
        `unreadable`.

        The cost is proportional to the runs returned; a filter reads no events of other runs. Each
        append updates the status of its run in its transaction. The call yields to other tasks, so
        that a program that polls lets its runs continue.

        Raises:
            UnknownRun: the run `before` does not exist.
        """
        ...

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """At most `limit` ids of a tenant's runs that start with a prefix, sorted."""
        ...


class CommitSignals(Protocol):
    """What a log adds to `EventLog` so that readers of all its runs need not poll. A log may lack
    it."""

    def commits(self) -> AsyncGenerator[None]:
        """Yields at once, and then whenever something may have been appended to a run of any
        tenant, by any process, since the last time. It says neither what nor whose."""
        ...


class BranchingLog(Protocol):
    """What a log adds to `EventLog` so that its runs can branch. A log may lack it."""

    async def batch_end(self, run: RunKey, seq: int) -> int:
        """The position of the last event that was appended together with the one at `seq`.

        Raises:
            UnknownRun: the run does not exist.
            UsageError: it has no event at this position.
            LogDamaged: the event is missing.
        """
        ...

    async def branch(
        self, run: RunKey, origin: str, at: int, events: Sequence[Event]
    ) -> Sequence[Event]:
        """Start a run whose first `at` events are those of the run `origin` of the same tenant, and
        store events after them, at least one, all or none; returns the events as stored.

        The shared events are not copied. They are read as they are, and their `run` is the one that
        recorded them. Their ids are taken in the branch; that the ids of the first own events are
        none of them is up to the caller, so that a branch costs the same however long its origin
        is. Artifacts of shared events are not stored again, and whatever the origin appends later
        does not belong to the branch. In `runs`, the branch
        stands where it was begun, and its first event is that of the origin, at the time of the
        branch's first own event. The same branch again, with the same ids, is returned as stored.

        Raises:
            UnknownRun: the origin does not exist.
            UsageError: the origin has no event at `at`, or `at` is not the end of a batch.
            Conflict: the run exists.
            StoreUnavailable: nothing was stored; the caller may retry the same call.
        """
        ...


class Clock(Protocol):
    """The current time."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...


# Acts on the world and returns what happened.
Effect = Callable[[], Awaitable[Sequence[Fact]]]


class Once(Protocol):
    """Runs an effect at most once per key, as far as the log can tell."""

    async def __call__(self, key: str, effect: Effect, *, intent: Intent) -> Sequence[Fact]:
        """The facts recorded under `key`; if there are none, record the intent, run the effect and
        record its facts."""
        ...
