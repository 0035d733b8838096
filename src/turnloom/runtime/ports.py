"""The ports of the runtime."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
    Set,
)
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol, TypeGuard

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import Consumption
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.log.events import RunStarted
from turnloom.log.ports import EventLog
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import (
    EndedRun,
    Holder,
    Limit,
    LimitWait,
    LoadedWorkflow,
    Message,
    Migration,
    PrunedRun,
    Removal,
    Renewal,
    RunCopy,
    StoredPlan,
    VerifiedRun,
)

Status = Literal["idle", "queued", "driving", "timer"]

# Drives a run as far as it goes; returns the instant at which to wake it, if any.


class Drive(Protocol):
    """Drives a run until it ends or waits."""

    def __call__(self, run: RunKey, held: LimitWait | None = None, /) -> Awaitable[datetime | None]:
        """Drive a run, which was held by the limit of its tenant before, if so; returns the instant
        at which it wants to be driven again."""
        ...


class Inbox(Protocol):
    """Messages to runs from outside, kept beside the log until their event is stored."""

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Keep a message for a run; returns whether it is the first under this id. Others are
        dropped."""
        ...

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages of a run whose id is not in its log, the oldest first."""
        ...

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs of all tenants that get mail from now on, from any process; a run may come
        again."""
        ...


class Claims(Protocol):
    """Which process drives which run.

    A claim ends with its process, at once. Where claims have a lease, a process renews its own on
    its event loop; a process whose loop is blocked for longer than the lease can lose its runs. If
    they have `is_held(fence) -> bool`, it says without waiting whether the lease of a claim lasts,
    and is asked before every effect.
    """

    def claim(self, run: RunKey) -> AbstractAsyncContextManager[int]:
        """Hold the run while the context is open; gives the claim's fence, a number above those of
        all earlier claims on the run.

        When another process takes the run, the context is cancelled as soon as this is noticed, and
        the log refuses appends under its fence at once.

        Raises:
            RunBusy: a process that is alive, and whose lease is not over, holds it.
            LeaseLost: another process took the run while the context was open.
        """
        ...

    async def held(self, run: RunKey) -> Holder | None:
        """The process that holds the run, with the seconds its lease lasts if it stops renewing;
        None if the run can be claimed."""
        ...


class Snapshots(Protocol):
    """Folded states of long runs, so that a resume need not read the whole log."""

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Keep the state of a run as of `seq`, replacing an earlier one."""
        ...

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last kept state, with its position."""
        ...


class Plans(Protocol):
    """Plans of boards and flows, by tenant and digest."""

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Keep a plan; an existing one stays as it is.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        ...

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan of this digest, if it was kept."""
        ...


class Artifacts(ArtifactStore, Protocol):
    """The artifact store, with access for those who decide who may see what."""

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of these artifacts of a tenant, in any order."""
        ...


class Verifier(Protocol):
    """Checks the stored logs of runs. A store may have one, as `verifier`."""

    def verify(self, tenant: str, run: str | None = None) -> AsyncIterator[VerifiedRun]:
        """The runs of a tenant, the one begun first coming first, or one of them: whether all
        positions are there, each batch is the one that was stored, and each event can be read.

        Raises:
            StoreUnavailable: the store cannot be read, or is damaged as a whole.
        """
        ...


class Pruner(Protocol):
    """Removes runs that ended. A store may have one, as `pruner`."""

    def ended(
        self, tenant: str, before: datetime, statuses: Collection[str]
    ) -> AsyncGenerator[EndedRun]:
        """The runs of a tenant that ended before an instant and in one of these ways (`finished`,
        `failed`, `cancelled`), the last one to end coming first. They may be removed meanwhile."""
        ...

    async def remove(
        self,
        run: RunKey,
        *,
        without: Set[str] = frozenset(),
        dry_run: bool = False,
        record: Removal | None = None,
    ) -> PrunedRun | None:
        """Remove a run that ended, all or nothing: its log, snapshot, messages, claim, artifacts,
        and what it took. Nothing is removed, and nothing given, if it did not end, or if another
        run that is there, and not among `without`, took one of its artifacts, or if a branch of
        it is there. A dry run says what would be removed, as if those of `without` were not
        there.

        With a `record`, what is removed is added to it in the same transaction, as by
        `Removals.add`; a dry run adds nothing.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...

    async def compact(self) -> None:
        """Give the space back that removed runs took, while others work.

        Raises:
            StoreUnavailable: the rest may be given back later.
        """
        ...


class Removals(Protocol):
    """The record of what was removed from a store; it outlives what it tells of. A store may have
    one, as `removals`."""

    async def add(self, tenant: str, removal: Removal) -> None:
        """Add counts to the record of the same tenant, instant, person and purpose, or begin it.

        Raises:
            StoreUnavailable: nothing was added.
        """
        ...

    async def recent(self, tenant: str, limit: int) -> Sequence[Removal]:
        """At most `limit` records of a tenant, the latest first."""
        ...

    async def remember(self, run: RunKey) -> None:
        """Keep the id of a run that is about to be removed and that later runs are counted from, so
        that it is not used again.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        ...

    async def is_removed(self, run: RunKey) -> bool:
        """Whether the id of a run is kept in this way."""
        ...


class PersonalData(Protocol):
    """Data of persons outside of runs, such as cached results. A port of a store may be one."""

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove everything that is kept for a person of a tenant; returns how many things that
        are. A dry run only counts them.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...


class TenantList(Protocol):
    """The tenants of a store. A store may have it, as `tenants`."""

    async def names(self) -> Sequence[str]:
        """The tenants that have runs, sorted."""
        ...


class Copies(Protocol):
    """Whole runs, to be copied between stores. A store may have it, as `copies`."""

    async def read(self, run: RunKey) -> RunCopy | None:
        """The events that a run recorded, as of one instant; None for an unknown run.

        Raises:
            UnknownKind: one of them cannot be read.
            LogDamaged: some of them are missing.
        """
        ...

    async def write(self, run: RunKey, copy: RunCopy) -> None:
        """Append all batches of a copy, all or nothing, with what goes with the append of each:
        artifacts, outcomes. A copy with an `origin` begins a run as a branch of it; another one
        begins a run, or continues the one that ends at its position `after`.

        Raises:
            Conflict: the run is at another position, or one of the ids is taken.
            UnknownRun: the origin is not there.
            UsageError: the origin cannot be cut there.
            StoreUnavailable: nothing was stored.
        """
        ...


class Migrator(Protocol):
    """Brings the schema of a store to the one of this release. A store may have one, and so may a
    scheduler with tables, as `migrator`.

    All other ports of a store with another schema raise `StoreUnavailable` with a sentence that
    names `turnloom store migrate`, or the release to use, and write nothing. Whether an empty place
    is set up on first use is up to the store.
    """

    async def pending(self) -> Sequence[Migration]:
        """The steps that are missing, in order.

        Raises:
            StoreUnavailable: the schema is of a later release, or too old.
        """
        ...

    def migrate(self) -> AsyncIterator[Migration]:
        """Take the missing steps, each in a transaction of its own, and give each when it is taken.
        If several processes do this at once, each step is taken once.

        Raises:
            StoreUnavailable: the schema is of a later release, or too old, or the step that follows
                could not be taken; those that were given stay.
        """
        ...


class Store(Protocol):
    """The ports of one store. `turnloom.testing.contracts` has a suite for each."""

    @property
    def log(self) -> EventLog:
        """The events of its runs."""
        ...

    @property
    def inbox(self) -> Inbox:
        """Messages to its runs."""
        ...

    @property
    def claims(self) -> Claims:
        """Which process drives which run."""
        ...

    @property
    def snapshots(self) -> Snapshots:
        """Folded states of long runs."""
        ...

    @property
    def artifacts(self) -> Artifacts:
        """The artifacts of its boards."""
        ...

    @property
    def beliefs(self) -> BeliefStore:
        """The store of beliefs about agents, learned by selections."""
        ...

    @property
    def results(self) -> Results:
        """Cached results of steps."""
        ...

    @property
    def plans(self) -> Plans:
        """The plans that runs are pinned to."""
        ...

    async def aclose(self) -> None:
        """Close the store; a second call does nothing."""
        ...


# In limits: every tenant that is not named.
EVERY_TENANT = "*"


class Scheduler(Protocol):
    """Decides when and where runs are driven. Each wake leads to at least one drive; a wake during
    a drive is never lost. One that spreads drives over several processes says so as
    `drives_elsewhere`."""

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive the run soon, or at an instant: a run has one timer. Idempotent."""
        ...

    async def cancel(self, run: RunKey) -> None:
        """Drop what is queued for the run and interrupt its drive."""
        ...

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        """Drive what is woken, at most `slots` runs at once, until cancelled.

        Tenants take turns. `limits` gives the number of runs of a tenant that are driven at once,
        by tenant; `*` stands for all others. A drive that raises `CodeMissing` is left to other
        processes, where there are any.
        """
        ...

    async def drain(self) -> None:
        """Begin no drive in this process from now on, and wait for the end of those that run."""
        ...

    async def status(self, run: RunKey) -> Status:
        """The status of the run in this scheduler."""
        ...

    async def limited(self, tenant: str, runs: Sequence[str]) -> Mapping[str, LimitWait]:
        """Those of some runs that wait for the limit of their tenant now, as far as this process
        knows."""
        ...


class SharedScheduler(Scheduler, Protocol):
    """A scheduler that spreads drives over several processes."""

    @property
    def drives_elsewhere(self) -> bool:
        """Whether it does."""
        ...

    async def stranded(self, tenant: str) -> Mapping[str, str]:
        """The runs of a tenant that processes refused with `CodeMissing`, and that none with their
        code took for a while; each with the code that it needs."""
        ...


def is_shared(scheduler: Scheduler) -> TypeGuard[SharedScheduler]:
    """Whether a scheduler spreads drives over several processes, so that this one may drive
    none."""
    return getattr(scheduler, "drives_elsewhere", False)


class Permits(Protocol):
    """Places of limits that hold for all processes which share them. A scheduler may have them, as
    `permits`."""

    async def acquire(self, limit: Limit, place: str) -> float:
        """Take a place, under a name of its own; 0, or the seconds until it is worth asking again.
        Places of a process that dies are free after a while.

        Raises:
            StoreUnavailable: nothing was taken.
        """
        ...

    async def release(self, limit: Limit, place: str) -> None:
        """Give a place back; what was taken per minute stays taken."""
        ...


class Backlog(Protocol):
    """Finds runs that should be driven, and whose wake was missed. A store that several processes
    share may have one, as `backlog`."""

    async def overdue(self, seconds: float, limit: int) -> Sequence[RunKey]:
        """At most `limit` runs of all tenants that no process holds, and that were started or got
        mail this long ago, and neither rest nor ended since.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        ...


class Entropy(Protocol):
    """A source of randomness."""

    def token(self) -> str:
        """A unique word of letters and digits, with at least 128 bits of randomness."""
        ...

    def below(self, limit: int) -> int:
        """A random number from 0, below the limit."""
        ...


class Observer(Protocol):
    """Sees the stored events of an app's runs, and changes nothing."""

    @property
    def observe(self) -> Callable[..., object]:
        """Called with each event, or with each event and its `ObservedRun`. A plain function is
        called in a thread; an async one on the loop, which it must not block."""
        ...


class Definitions(Protocol):
    """Workflows, from their declaration or from the log of a run."""

    async def load(self, source: str) -> LoadedWorkflow:
        """The workflow declared at a path.

        Raises:
            DefinitionError: it does not pass its check.
        """
        ...

    async def restore(self, started: RunStarted) -> LoadedWorkflow:
        """The workflow that a run is pinned to."""
        ...

    async def renew(self, started: RunStarted) -> Renewal | None:
        """The present declaration of a flow whose plan has changed since a run was pinned to it;
        None if there is none."""
        ...

    async def salvage(self, started: RunStarted) -> LoadedWorkflow | None:
        """What ends a run whose plan has changed, and compensates the steps that the present plan
        still names; None if there are none."""
        ...

    def declares(self, started: RunStarted) -> bool:
        """Whether this program can continue a run: boards and flows are declared in code."""
        ...

    def hears(self, started: RunStarted) -> bool:
        """Whether the form of a run takes messages of its user at any time."""
        ...
