"""Store in memory: all ports over one log."""

import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import datetime
from itertools import islice
from weakref import WeakSet

import anyio

from turnloom.adapters.memory.beside import (
    MemoryAudit,
    MemoryFeedback,
    MemoryKeys,
    MemorySchedules,
)
from turnloom.adapters.memory.index import MemoryIndex
from turnloom.adapters.memory.jobs import MemoryJobs
from turnloom.adapters.memory.keeping import (
    MemoryCopies,
    MemoryPruner,
    MemoryRemovals,
    MemoryTenants,
)
from turnloom.adapters.memory.log import MemoryLog
from turnloom.board.logic.rows import instant_of, microseconds, rows_of
from turnloom.board.ports import ArtifactIndex
from turnloom.board.service import IndexedArtifacts
from turnloom.board.spec import Artifact, Consumption
from turnloom.board.spec.queries import StoredArtifact
from turnloom.errors import RunBusy
from turnloom.kernel.values import Json
from turnloom.log.logic import Codec
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import (
    MOST_MAIL,
    Holder,
    Message,
    Stop,
    StoredPlan,
    VerifiedRun,
    refuse_flood,
)


class MemoryPlans:
    """Plans by tenant and digest."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._plans: dict[tuple[str, str], StoredPlan] = {}

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Store a plan; an existing one is unchanged."""
        self._check_open()
        self._plans.setdefault((tenant, digest), plan)

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan with this digest, if stored."""
        self._check_open()
        return self._plans.get((tenant, digest))


# The maximum number of results; the least recently used one is dropped first.
MAX_RESULTS = 10_000


class MemoryResults:
    """Cache of step results, least recently used dropped first."""

    def __init__(self, check_open: Callable[[], None], limit: int = MAX_RESULTS) -> None:
        self._check_open = check_open
        self._limit = limit
        # Values by tenant and key, with their expiry and their user.
        self._kept: OrderedDict[tuple[str, str], tuple[Json, datetime | None, str]] = OrderedDict()

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """The result under a key, unless it has expired; it is valid up to and including its
        expiry."""
        self._check_open()
        place = (tenant, key)
        value, until, _ = self._kept.get(place, (None, None, ""))
        if until is not None and until < now:
            del self._kept[place]
            return None
        if place in self._kept:
            self._kept.move_to_end(place)
        return value

    async def keep(
        self,
        tenant: str,
        key: str,
        value: Json,
        now: datetime,
        until: datetime | None,
        *,
        user: str = "",
    ) -> None:
        """Store a result under a key, replacing an earlier one."""
        self._check_open()
        self._kept[tenant, key] = (value, until, user)
        self._kept.move_to_end((tenant, key))
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove the results of a person, and return how many there were; a dry run counts them."""
        self._check_open()
        found = [
            place
            for place, (_, _, whose) in self._kept.items()
            if user and (place[0], whose) == (tenant, user)
        ]
        for place in () if dry_run else found:
            del self._kept[place]
        return len(found)


class MemoryInbox:
    """Messages to runs, kept until their events are in the log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._mail: dict[RunKey, dict[str, Message]] = {}
        self._readers: WeakSet[_Arrivals] = WeakSet()

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Store a message for a run, and return whether its id is new. Duplicates are dropped."""
        self._log.check_open()
        waiting = self._mail.setdefault(run, {})
        is_first = id not in waiting and not self._log.holds(run, id)
        if is_first:
            if not isinstance(message, Stop):  # stopping a run is always possible
                self._check_room(run, waiting)
            waiting[id] = message
            for reader in self._readers:
                reader.add(run)
        return is_first

    def _check_room(self, run: RunKey, waiting: dict[str, Message]) -> None:
        """Drop messages that are in the log, and raise if too many are left."""
        if len(waiting) >= MOST_MAIL:
            for id in [each for each in waiting if self._log.holds(run, each)]:
                del waiting[id]
        refuse_flood(run.id, len(waiting))

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages of a run that are not in its log, oldest first."""
        self._log.check_open()
        waiting = self._mail.get(run)
        if not waiting:
            return ()
        left = {id: it for id, it in waiting.items() if not self._log.holds(run, id)}
        self._mail[run] = left
        return [*left.items()]

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs of all tenants that receive messages from now on. Several messages to a run may
        be reported once."""
        self._log.check_open()
        reader = _Arrivals(self._log)
        self._readers.add(reader)
        return reader

    def remove(self, run: RunKey) -> None:
        """Remove the messages of a run."""
        self._mail.pop(run, None)

    def close(self) -> None:
        """Wake readers, which then raise."""
        for reader in tuple(self._readers):
            reader.notify()


class _Arrivals:
    """One reader's queue of runs with new messages."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._runs: dict[RunKey, None] = {}
        self._arrived: anyio.Event | None = None

    def __aiter__(self) -> "_Arrivals":
        return self

    async def __anext__(self) -> RunKey:
        while not self._runs:
            self._log.check_open()
            self._arrived = anyio.Event()
            await self._arrived.wait()
        run = next(iter(self._runs))
        del self._runs[run]
        return run

    def add(self, run: RunKey) -> None:
        self._runs[run] = None
        self.notify()

    def notify(self) -> None:
        if self._arrived:
            self._arrived.set()


class MemoryArtifacts(IndexedArtifacts):
    """Artifacts next to a log in memory. `follows_log` says whether artifacts in its events appear
    here at once."""

    def __init__(self, log: MemoryLog, index: MemoryIndex, follows_log: bool = False) -> None:
        self._log = log
        self._index = index
        self.follows_log = follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Store artifacts of a tenant in order, all or none; existing ones are unchanged.

        Raises:
            ArtifactExists: one exists with other content.
            InvalidArtifact: one cannot be stored.
            UsageError: the store is closed.
        """
        self._log.check_open()
        self._index.keep(tenant, rows_of(tenant, artifacts))

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Store consumptions of a tenant; existing ones are unchanged."""
        self._log.check_open()
        self._index.keep(tenant, (), consumptions)

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows with an id that belong to the tenant or are shared, regardless of visibility."""
        self._log.check_open()
        return await self._index.find(tenant, id)

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of a tenant's artifacts, in any order."""
        self._log.check_open()
        return await self._index.consumptions(tenant, ids)

    async def opened(self) -> ArtifactIndex:
        """The index of the log's artifacts.

        Raises:
            UsageError: the store is closed.
        """
        self._log.check_open()
        return self._index

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next times at which artifacts become visible to a tenant, ascending."""
        self._log.check_open()
        ahead = self._index.openings(tenant, microseconds(now))
        return [instant_of(number) for number in islice(ahead, limit)]

    async def aclose(self) -> None:
        """Do nothing: it closes with the log."""


class MemoryClaims:
    """Claims on runs in this process."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._last = 0

    def claim(self, run: RunKey) -> "MemoryClaim":
        """Hold the run while the context is open; yields the claim's fence.

        Raises:
            RunBusy: the run is held already.
        """
        return MemoryClaim(self, run)

    def take(self, run: RunKey) -> int:
        """Hold the run until it is released; returns the claim's fence."""
        self._log.check_open()
        fences = self._log.fences
        if run in fences:
            raise RunBusy(
                f"Run {run.id!r} is already driven by this process (pid {os.getpid()}). "
                "Answer or cancel it with `turnloom answer` or `turnloom cancel`, or wait until it "
                "parks."
            )
        self._last += 1
        fences[run] = self._last
        return self._last

    def release(self, run: RunKey) -> None:
        """End the claim on the run."""
        del self._log.fences[run]

    async def held(self, run: RunKey) -> Holder | None:
        """This process if it holds the run, without an expiry."""
        self._log.check_open()
        return Holder(str(os.getpid())) if run in self._log.fences else None


class MemoryClaim:
    """A claim on one run, held while its context is open."""

    def __init__(self, claims: MemoryClaims, run: RunKey) -> None:
        self._claims = claims
        self._run = run

    async def __aenter__(self) -> int:
        return self._claims.take(self._run)

    async def __aexit__(self, *error: object) -> None:
        self._claims.release(self._run)


class MemorySnapshots:
    """The last snapshot of each run."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._states: dict[RunKey, tuple[int, bytes]] = {}

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Store the state of a run at `seq`, replacing an earlier one."""
        self._log.check_open()
        if seq >= self._states.get(run, (0, b""))[0]:
            self._states[run] = (seq, state)

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last snapshot and its position."""
        self._log.check_open()
        return self._states.get(run)

    def remove(self, run: RunKey) -> None:
        """Remove the snapshot of a run."""
        self._states.pop(run, None)


class MemoryVerifier:
    """Counts the events of runs; events in memory cannot be damaged."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def verify(
        self, tenant: str, run: str | None = None
    ) -> AsyncGenerator[VerifiedRun, None]:
        """The runs of a tenant, oldest first, or one of them."""
        self._log.check_open()
        for id in [*self._log.held.of(tenant).runs] if run is None else (run,):
            if ends := await self._log.ends(RunKey(tenant, id)):
                yield VerifiedRun(id, ends[1].seq)


class MemoryStore:
    """Log, inbox, claims, snapshots, artifacts and beliefs in memory, for one event loop.

    `board` says whether artifacts in the log's events are also stored here.
    """

    def __init__(self, codec: Codec, *, board: bool = True) -> None:
        index = MemoryIndex()
        self.log = MemoryLog(codec, index if board else None)
        self.inbox = MemoryInbox(self.log)
        self.claims = MemoryClaims(self.log)
        self.snapshots = MemorySnapshots(self.log)
        self.artifacts = MemoryArtifacts(self.log, index, board)
        self.beliefs = self.log.beliefs
        self.results = MemoryResults(self.log.check_open)
        self.plans = MemoryPlans(self.log.check_open)
        self.verifier = MemoryVerifier(self.log)
        self.keys = MemoryKeys(self.log.check_open)
        self.audit = MemoryAudit(self.log.check_open)
        self.feedback = MemoryFeedback(self.log)
        self.schedules = MemorySchedules(self.log.check_open)
        self.jobs = MemoryJobs(self.log.check_open)
        self.removals = MemoryRemovals(self.log)
        self.pruner = MemoryPruner(
            self.log,
            index,
            self.removals,
            (self.inbox.remove, self.snapshots.remove, self.feedback.remove, self.jobs.remove),
        )
        self.tenants = MemoryTenants(self.log)
        self.copies = MemoryCopies(self.log)

    async def aclose(self) -> None:
        """Refuse all later calls. Idempotent."""
        self.log.close()
        self.inbox.close()
