"""What the log needs from the world, and what others may ask of it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from turnloom.log.spec import EVERY_RUN, Event, Fact, Intent, RunFilter, RunKey


class EventLog(Protocol):
    """The append-only record of runs, a world of its own for each tenant.

    Sequence numbers of a run start at 1 and have no gap.
    """

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store events after position `expected`, all or none, and give back what the log holds.

        With a `fence`, which a claim gives, they are stored only while that claim is in force; that
        is compared in the same transaction. Without one, nothing is compared: a run is begun so.
        A batch that already stands there whole, under the same ids, is given back as stored.
        Other tasks get their go meanwhile, however fast the store is.

        Raises:
            LeaseLost: the claim of this fence is over; nothing was stored.
            Conflict: the log is at another position, or one of the ids is taken.
            StoreUnavailable: nothing was stored; the same append may be tried again later.
        """
        ...

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run behind position `after`, in order; none for an unknown run.

        Raises:
            UnknownKind: one of them cannot be read; it is named.
            LogDamaged: some of them are missing.
        """
        ...

    def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event behind `after`, those to come included, once each, in order.

        Raises:
            LogDamaged: some of them are missing.
        """
        ...

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run, if there is such a run.

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
        """The first and the last event of at most `limit` runs of a tenant, the run begun last
        coming first: of all, or of those that began before a run, that have no end on record, or
        that a filter chooses, as `is_chosen` says. An event that cannot be read is of kind
        `unreadable`.

        The cost follows the runs that are given; a filter reads the events of no others. How runs
        stand is kept up to date in the transaction of each append.

        Raises:
            UnknownRun: there is no run `before`.
        """
        ...

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """At most `limit` ids of runs of a tenant that begin with a prefix, in their order."""
        ...


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...


# Touches the world and tells what happened.
Effect = Callable[[], Awaitable[Sequence[Fact]]]


class Once(Protocol):
    """Touches the world at most once per key, as far as the log can tell."""

    async def __call__(self, key: str, effect: Effect, *, intent: Intent) -> Sequence[Fact]:
        """The facts that the log holds under `key`; if none, say the intent, run the effect and
        record what it gives."""
        ...
