"""Event log and beliefs in memory."""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence, Set
from itertools import islice, pairwise
from operator import attrgetter

import anyio.lowlevel

from turnloom.adapters.memory.index import MemoryIndex
from turnloom.board.logic.rows import PROJECTED, project, rows_of
from turnloom.errors import Conflict, LeaseLost, UnknownRun, UsageError
from turnloom.guards.events import SelectionJudged
from turnloom.guards.logic.selection import observations
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.log.events import ENDS, RunRetried
from turnloom.log.logic import (
    Codec,
    check_batch,
    check_branch,
    check_cut,
    is_chosen,
    listed_first,
    no_position,
    run_exists,
)
from turnloom.log.spec import EVERY_RUN, Event, Fact, RunFilter, RunKey
from turnloom.runtime.spec import RunCopy


def _never_closed() -> None:
    """Accept every call."""


class MemoryBeliefs:
    """Beliefs about agents. `follows_log` says whether a log adds the outcomes in its events.
    `check_open` raises if the store is closed."""

    def __init__(
        self, check_open: Callable[[], None] = _never_closed, *, follows_log: bool = False
    ) -> None:
        self._check_open = check_open
        self.follows_log = follows_log
        self._known: dict[Pool, dict[str, Belief]] = {}
        self._seen: set[tuple[str, str, str]] = set()

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """The beliefs about agents in a pool; agents without outcomes are left out."""
        self._check_open()
        known = self._known.get(pool, {})
        return {agent: known[agent] for agent in agents if agent in known}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each once: known ones are ignored."""
        self._check_open()
        self.keep(observations)

    def keep(self, observations: Sequence[Observation]) -> None:
        """Add outcomes that are not known yet."""
        for each in observations:
            seen = (each.pool.tenant, each.run, each.event)
            if seen not in self._seen:
                self._seen.add(seen)
                self._add(each)

    def forget(self, run: RunKey) -> None:
        """Drop the events of a removed run that beliefs are based on; the beliefs stay."""
        self._seen = {seen for seen in self._seen if seen[:2] != run}

    def _add(self, seen: Observation) -> None:
        known = self._known.setdefault(seen.pool, {})
        if seen.decay:
            known.update({agent: each.faded(seen.decay) for agent, each in known.items()})
        known[seen.agent] = known.get(seen.agent, Belief()).after(seen.credit)

    async def aclose(self) -> None:
        """Do nothing: it closes with the log."""


# Runs filtered before other tasks get a turn.
LOOKED_AT = 1000


class _Run:
    """The events of a run, the ids of those that it recorded, and where its batches end. Those of a
    branch up to `cut` were recorded by its origin."""

    __slots__ = ("batch_ends", "cut", "events", "ids", "n", "origin")

    def __init__(self, origin: "_Run | None" = None, cut: int = 0) -> None:
        self.n = 0
        self.origin = origin
        self.cut = cut
        self.events: list[Event] = origin.events[:cut] if origin else []
        self.ids: set[str] = set()
        self.batch_ends: list[int] = []

    @property
    def ends(self) -> tuple[Event, Event]:
        """The first and the last event, as they are listed."""
        first, last = self.events[0], self.events[-1]
        return listed_first(first, last.run, self.events[self.cut].at), last

    def holds(self, id: str) -> bool:
        """Whether an event has this id."""
        if id in self.ids:
            return True
        is_known = self.origin is not None and self.origin.holds(id)
        # The origin may have recorded it after the cut.
        return is_known and any(event.id == id for event in islice(self.events, self.cut))

    @property
    def origins(self) -> "Iterator[_Run]":
        """The runs that recorded its first events."""
        origin, cut = self.origin, self.cut
        while origin is not None:
            if cut > origin.cut:
                yield origin
            origin, cut = origin.origin, min(cut, origin.cut)

    def recorder(self, seq: int) -> "_Run":
        """The run that recorded the event at a position."""
        return self if self.origin is None or seq > self.cut else self.origin.recorder(seq)

    def batch_end(self, id: str, seq: int) -> int:
        """The position of the last event that was appended with the one at `seq`.

        Raises:
            UsageError: there is no event at this position.
        """
        if not 0 < seq <= len(self.events):
            raise no_position(id, seq, len(self.events))
        ends = self.recorder(seq).batch_ends
        return ends[bisect_left(ends, seq)]


class _Tenant:
    """The runs of one tenant by id, and in the order of their start: all, and the unfinished."""

    __slots__ = ("begun", "runs", "unfinished")

    def __init__(self) -> None:
        self.runs: dict[str, _Run] = {}
        self.begun: list[_Run] = []
        self.unfinished: list[_Run] = []

    def add(self, id: str, run: _Run) -> None:
        self.runs[id] = run
        self.begun.append(run)
        self.unfinished.append(run)

    def remove(self, id: str) -> None:
        run = self.runs.pop(id)
        for runs in (self.begun, self.unfinished):
            at = _index_of(runs, run)
            if runs[at : at + 1] == [run]:
                del runs[at]

    def note(self, run: _Run, kinds: Set[str]) -> None:
        """Update the list of unfinished runs: a run may end, and be retried. `kinds` are those of
        its newest events."""
        if run.events[-1].kind in ENDS:
            at = _index_of(self.unfinished, run)
            if self.unfinished[at : at + 1] == [run]:
                del self.unfinished[at]
        elif RunRetried.kind in kinds:
            self.unfinished.insert(_index_of(self.unfinished, run), run)


def _index_of(runs: Sequence[_Run], run: _Run) -> int:
    return bisect_left(runs, run.n, key=attrgetter("n"))


class HeldRuns:
    """The runs of all tenants."""

    def __init__(self) -> None:
        self._tenants: defaultdict[str, _Tenant] = defaultdict(_Tenant)
        self._last = 0

    def get(self, run: RunKey) -> _Run | None:
        """A run, if it exists."""
        tenant = self._tenants.get(run.tenant)
        return tenant.runs.get(run.id) if tenant else None

    def existing(self, run: RunKey) -> _Run:
        """A run.

        Raises:
            UnknownRun: it does not exist.
        """
        held = self.get(run)
        if held is None:
            raise UnknownRun(run.id)
        return held

    def of(self, tenant: str) -> _Tenant:
        """The runs of a tenant, to be read."""
        return self._tenants.get(tenant) or _Tenant()

    def note(self, run: RunKey, held: _Run, kinds: Set[str]) -> None:
        """Add a run if it is new, and update the list of unfinished runs."""
        tenant = self._tenants[run.tenant]
        if not held.n:
            self._last += 1
            held.n = self._last
            tenant.add(run.id, held)
        tenant.note(held, kinds)

    def remove(self, run: RunKey) -> None:
        """Remove a run."""
        self._tenants[run.tenant].remove(run.id)
        if not self._tenants[run.tenant].runs:
            del self._tenants[run.tenant]

    def branches_of(self, run: RunKey) -> list[str]:
        """The runs that begin with events of a run."""
        of = self.existing(run)
        runs = self._tenants[run.tenant].runs.items()
        return [id for id, each in runs if of in each.origins]

    def tenants(self) -> list[str]:
        """The tenants that have runs, sorted."""
        return sorted(self._tenants)

    def copy(self, run: RunKey) -> RunCopy | None:
        """The events that a run recorded, by batches; None for an unknown run."""
        held = self.get(run)
        if held is None:
            return None
        begins = [held.cut, *held.batch_ends]
        batches = (tuple(held.events[begin:end]) for begin, end in pairwise(begins))
        return RunCopy(tuple(batches), held.events[held.cut - 1].run if held.cut else "")


class CommitBell:
    """Signals of commits."""

    _bell: anyio.Event | None = None

    async def commits(self) -> AsyncGenerator[None]:
        """Yields at once, and then whenever something was appended."""
        while True:
            self.check_open()
            bell = self._bell = self._bell or anyio.Event()
            yield
            await bell.wait()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.set()
            self._bell = None

    def check_open(self) -> None:
        """Raise if the store is closed."""
        raise NotImplementedError


class MemoryLog(CommitBell):
    """Event log that keeps event objects, without encoding or I/O.

    Artifacts in events go into the index, if there is one; outcomes go into `beliefs`.
    """

    def __init__(self, codec: Codec, index: MemoryIndex | None = None) -> None:
        self._codec = codec
        self._index = index
        self.beliefs = MemoryBeliefs(self.check_open, follows_log=True)
        self._known: dict[str, type[Fact]] = {}
        self.held = HeldRuns()
        self._bells: dict[RunKey, anyio.Event] = {}
        self._closed = False
        # The claims in force, by run.
        self.fences: dict[RunKey, int] = {}

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Append events after position `expected`, all or none, and return the stored events.

        Raises:
            LeaseLost: the claim with this fence has ended.
            Conflict: the log is at another position, or contains one of the ids.
            ArtifactExists: the board has an artifact with the same id and other content.
            InvalidArtifact: an artifact cannot be stored.
            UnknownKind: the codec does not know the kind of an event.
            UsageError: an event has another run or position, or the store is closed.
        """
        self.check_open()
        if not events:
            return ()
        known, id = self._known, run.id
        for seq, event in enumerate(events, expected + 1):
            if known.get(event.kind) is not type(event.data):
                self._check_kind(event)
            if event.seq != seq or event.run != id:
                check_batch(id, events, expected)
        if fence is not None and self.fences.get(run) != fence:
            raise LeaseLost(id)
        held = self.held.get(run) or _Run()
        if expected != len(held.events):
            return _stored_batch(id, held, events, expected)
        self._store(run, held, events)
        await asyncio.sleep(0)
        return events

    async def batch_end(self, run: RunKey, seq: int) -> int:
        """The position of the last event that was appended with the one at `seq`.

        Raises:
            UnknownRun: the run does not exist.
            UsageError: it has no event at this position, or the store is closed.
        """
        self.check_open()
        return self.held.existing(run).batch_end(run.id, seq)

    async def branch(
        self, run: RunKey, origin: str, at: int, events: Sequence[Event]
    ) -> Sequence[Event]:
        """Start a run with the first `at` events of another run of its tenant, and append events.

        Raises:
            UnknownRun: the origin does not exist.
            Conflict: the run exists, or one of the ids is taken.
            ArtifactExists: the board has an artifact with the same id and other content.
            InvalidArtifact: an artifact cannot be stored.
            UnknownKind: the codec does not know the kind of an event.
            UsageError: the origin cannot be cut there, an event has another run or position, there
                are no events, or the store is closed.
        """
        self.check_open()
        check_branch(run.id, events, at)
        for event in events:
            self._check_kind(event)
        source = self.held.existing(RunKey(run.tenant, origin))
        check_cut(origin, at, source.batch_end(origin, at))
        recorder = source.recorder(at)
        held = self.held.get(run)
        if held is None:
            self._store(run, _Run(recorder, at), events)
            await asyncio.sleep(0)
            return events
        if (held.origin, held.cut) != (recorder, at):
            raise run_exists(run.id)
        return _stored_batch(run.id, held, events, at)

    def write(self, run: RunKey, copy: RunCopy) -> None:
        """Append the batches of a copy, all or none.

        Raises:
            Conflict: the run is at another position, or contains one of the ids.
            UnknownRun: the origin does not exist.
            ArtifactExists: the board has an artifact with the same id and other content.
            UsageError: an event has another run or position, or the store is closed.
        """
        self.check_open()
        events = [event for batch in copy.batches for event in batch]
        check_batch(run.id, events, copy.after)
        for event in events:
            self._check_kind(event)
        held = self.held.get(run)
        if held is None and copy.origin:
            source = self.held.existing(RunKey(run.tenant, copy.origin))
            check_cut(copy.origin, copy.after, source.batch_end(copy.origin, copy.after))
            held = _Run(source.recorder(copy.after), copy.after)
        held = held or _Run()
        if len(held.events) != copy.after:
            _stored_batch(run.id, held, events, copy.after)
        else:
            self._store(run, held, events, [len(batch) for batch in copy.batches])

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run after position `after`, in order; empty for an unknown run."""
        self.check_open()
        held = self.held.get(run)
        return tuple(held.events[after:]) if held else ()

    async def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event after `after`, including future ones, each once and in order."""
        while True:
            self.check_open()
            held = self.held.get(run)
            if held and after < len(held.events):
                after += 1
                yield held.events[after - 1]
            else:
                await self._bells.setdefault(run, anyio.Event()).wait()

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run; None for an unknown run."""
        self.check_open()
        held = self.held.get(run)
        return (held.events[0], held.events[-1]) if held else None

    async def runs(
        self,
        tenant: str,
        limit: int,
        *,
        before: str | None = None,
        unfinished: bool = False,
        which: RunFilter = EVERY_RUN,
    ) -> Sequence[tuple[Event, Event]]:
        """The first and the last event of up to `limit` runs of a tenant that match a filter,
        newest run first.

        Raises:
            UnknownRun: run `before` does not exist.
        """
        self.check_open()
        await anyio.lowlevel.checkpoint()  # a program that polls lets its runs continue
        runs = self.held.of(tenant)
        listed = runs.unfinished if unfinished or which.is_open else runs.begun
        end = len(listed)
        if before is not None:
            if before not in runs.runs:
                raise UnknownRun(before)
            end = _index_of(listed, runs.runs[before])
        if which == EVERY_RUN:
            newest = (listed[at] for at in range(end - 1, -1, -1))
            return [held.ends for held in islice(newest, limit)]
        return await _chosen(listed[:end], limit, which)

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """Up to `limit` run ids of a tenant that start with a prefix, sorted."""
        self.check_open()
        return sorted(id for id in self.held.of(tenant).runs if id.startswith(prefix))[:limit]

    def holds(self, run: RunKey, id: str) -> bool:
        """Whether the run's log contains an event with this id."""
        held = self.held.get(run)
        return held is not None and held.holds(id)

    def check_open(self) -> None:
        """Raise if the store is closed."""
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")

    def close(self) -> None:
        """Refuse all later calls, and wake subscribers."""
        self._closed = True
        for bell in self._bells.values():
            bell.set()
        self._bells.clear()
        self._ring()

    def _check_kind(self, event: Event) -> None:
        """Check once per kind that the codec knows it."""
        self._codec.encode(event)
        self._known[event.kind] = type(event.data)

    def _store(
        self, run: RunKey, held: _Run, events: Sequence[Event], sizes: Sequence[int] = ()
    ) -> None:
        """Store events after the end of a run: one batch, or batches of some sizes."""
        ids, kinds = {event.id for event in events}, {event.kind for event in events}
        if len(ids) != len(events):
            raise Conflict(f"Two events for run {run.id!r} have the same id.")
        taken = ids & held.ids if held.origin is None else {*filter(held.holds, ids)}
        if taken:
            raise Conflict(f"Run {run.id!r} already has an event {min(taken)!r}.")
        if self._index and kinds & PROJECTED and (projection := project(events)):
            rows = rows_of(run.tenant, projection.artifacts)
            self._index.keep(run.tenant, rows, projection.consumptions)
        if SelectionJudged.kind in kinds:
            self.beliefs.keep(observations(run.tenant, events))
        held.ids |= ids
        for size in sizes or (len(events),):
            end = (held.batch_ends[-1] if held.batch_ends else held.cut) + size
            held.batch_ends.append(end)
        held.events.extend(events)
        self.held.note(run, held, kinds)
        self._ring()
        if self._bells and (bell := self._bells.pop(run, None)):
            bell.set()


async def _chosen(runs: Sequence[_Run], limit: int, which: RunFilter) -> list[tuple[Event, Event]]:
    """The ends of the newest runs that match a filter; other tasks run in between."""
    found: list[tuple[Event, Event]] = []
    for number, held in enumerate(reversed(runs), 1):
        if len(found) >= limit:
            break
        if is_chosen(which, *held.ends):
            found.append(held.ends)
        if not number % LOOKED_AT:
            await asyncio.sleep(0)
    return found


def _stored_batch(run: str, held: _Run, events: Sequence[Event], expected: int) -> Sequence[Event]:
    """The stored events at the batch's position, if they are the same batch."""
    stored = tuple(held.events[expected : expected + len(events)]) if expected >= 0 else ()
    if [event.id for event in stored] != [event.id for event in events]:
        raise Conflict(
            f"Run {run!r} is at position {len(held.events)}, not {expected}: another writer "
            "appended events. Read the run again before writing."
        )
    return stored
