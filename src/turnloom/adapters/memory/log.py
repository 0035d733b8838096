"""The event log and the beliefs of selection, in memory."""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import islice
from operator import attrgetter

import anyio

from turnloom.adapters.memory.index import MemoryIndex
from turnloom.board.logic.rows import project, rows_of
from turnloom.errors import Conflict, LeaseLost, UnknownRun, UsageError
from turnloom.guards.logic.selection import observations
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.log.events import ENDS
from turnloom.log.logic import Codec, is_chosen
from turnloom.log.spec import EVERY_RUN, Event, Fact, RunFilter, RunKey


def _always() -> None:
    """Nobody closes it."""


class MemoryBeliefs:
    """What is known of agents; `follows_log` says whether a log adds to it what it is told, and
    `check_open` refuses to work for a store that was closed."""

    def __init__(
        self, check_open: Callable[[], None] = _always, *, follows_log: bool = False
    ) -> None:
        self._check_open = check_open
        self.follows_log = follows_log
        self._known: dict[Pool, dict[str, Belief]] = {}
        self._seen: set[tuple[str, str, str]] = set()

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known of these agents in a pool; nothing of those without any outcome."""
        self._check_open()
        known = self._known.get(pool, {})
        return {agent: known[agent] for agent in agents if agent in known}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each at once and each once: one that is there already changes nothing."""
        self._check_open()
        self.keep(observations)

    def keep(self, observations: Sequence[Observation]) -> None:
        """Add the outcomes that are not there yet."""
        for each in observations:
            seen = (each.pool.tenant, each.run, each.event)
            if seen not in self._seen:
                self._seen.add(seen)
                self._add(each)

    def _add(self, seen: Observation) -> None:
        known = self._known.setdefault(seen.pool, {})
        if seen.decay:
            known.update({agent: each.faded(seen.decay) for agent, each in known.items()})
        known[seen.agent] = known.get(seen.agent, Belief()).after(seen.credit)

    async def aclose(self) -> None:
        """Nothing of its own is open: it is closed with the log."""


# How many runs a filter looks at before others get their go.
LOOKED_AT = 1000


class _Run:
    __slots__ = ("events", "ids", "n")

    def __init__(self, n: int) -> None:
        self.n = n
        self.events: list[Event] = []
        self.ids: set[str] = set()


class _Tenant:
    """The runs of one tenant by id, and in the order in which they began: all, and the
    unfinished."""

    __slots__ = ("begun", "runs", "unfinished")

    def __init__(self) -> None:
        self.runs: dict[str, _Run] = {}
        self.begun: list[_Run] = []
        self.unfinished: list[_Run] = []

    def add(self, id: str, run: _Run) -> None:
        self.runs[id] = run
        self.begun.append(run)
        self.unfinished.append(run)

    def finish(self, run: _Run) -> None:
        at = _place(self.unfinished, run)
        if self.unfinished[at : at + 1] == [run]:
            del self.unfinished[at]


def _place(runs: Sequence[_Run], run: _Run) -> int:
    return bisect_left(runs, run.n, key=attrgetter("n"))


class MemoryLog:
    """An event log that keeps the events themselves: nothing is encoded, nothing waits.

    What they say of the board goes into an index, if there is one beside it; what they say of
    outcomes into `beliefs`.
    """

    def __init__(self, codec: Codec, index: MemoryIndex | None = None) -> None:
        self._codec = codec
        self._index = index
        self.beliefs = MemoryBeliefs(self.check_open, follows_log=True)
        self._known: dict[str, type[Fact]] = {}
        self._tenants: defaultdict[str, _Tenant] = defaultdict(_Tenant)
        self._last = 0
        self._bells: dict[RunKey, anyio.Event] = {}
        self._closed = False
        # The claims in force, by run.
        self.fences: dict[RunKey, int] = {}

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store events after position `expected`, all or none, and give back what the log holds.

        Raises:
            LeaseLost: the claim of this fence is over.
            Conflict: the log is at another position, or one of the ids is taken.
            ArtifactExists: an artifact is on the board beside it, with other content.
            InvalidArtifact: an artifact cannot be kept as it is.
            UnknownKind: an event is of a kind that the codec does not know.
            UsageError: an event names another run or position, or the store is closed.
        """
        self.check_open()
        if not events:
            return ()
        known, id = self._known, run.id
        for seq, event in enumerate(events, expected + 1):
            if known.get(event.kind) is not type(event.data):
                self._learn(event)
            if event.seq != seq or event.run != id:
                raise UsageError(
                    f"Event {event.id!r} says run {event.run!r}, seq {event.seq}, "
                    f"but was offered to run {id!r} at {seq}. Make it for the place it goes to."
                )
        if fence is not None and self.fences.get(run) != fence:
            raise LeaseLost(id)
        held = self._held(run) or _Run(0)
        if expected != len(held.events):
            return _standing(id, held, events, expected)
        self._store(run, held, events)
        await asyncio.sleep(0)
        return events

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run behind position `after`, in order; none for an unknown run."""
        self.check_open()
        held = self._held(run)
        return tuple(held.events[after:]) if held else ()

    async def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event behind `after`, those to come included, each once and in order."""
        while True:
            self.check_open()
            held = self._held(run)
            if held and after < len(held.events):
                after += 1
                yield held.events[after - 1]
            else:
                await self._bells.setdefault(run, anyio.Event()).wait()

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run, if there is such a run."""
        self.check_open()
        held = self._held(run)
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
        """The first and the last event of at most `limit` runs of a tenant that a filter chooses,
        the run begun last coming first.

        Raises:
            UnknownRun: there is no run `before`.
        """
        self.check_open()
        runs = self._tenants.get(tenant) or _Tenant()
        listed = runs.unfinished if unfinished or which.is_open else runs.begun
        end = len(listed)
        if before is not None:
            if before not in runs.runs:
                raise UnknownRun(before)
            end = _place(listed, runs.runs[before])
        if which == EVERY_RUN:
            newest = (listed[at] for at in range(end - 1, -1, -1))
            return [(held.events[0], held.events[-1]) for held in islice(newest, limit)]
        return await _chosen(listed[:end], limit, which)

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """At most `limit` ids of runs of a tenant that begin with a prefix, in their order."""
        return sorted(id for id in self.ids(tenant) if id.startswith(prefix))[:limit]

    def holds(self, run: RunKey, id: str) -> bool:
        """Whether an event of this id is in the run's log."""
        held = self._held(run)
        return held is not None and id in held.ids

    def ids(self, tenant: str) -> list[str]:
        """The runs of a tenant, the one begun first coming first."""
        self.check_open()
        return [*self._tenants[tenant].runs] if tenant in self._tenants else []

    def check_open(self) -> None:
        """Refuse to work for a store that was closed."""
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")

    def close(self) -> None:
        """Refuse everything from now on, and tell whoever waits."""
        self._closed = True
        for bell in self._bells.values():
            bell.set()
        self._bells.clear()

    def _held(self, run: RunKey) -> _Run | None:
        tenant = self._tenants.get(run.tenant)
        return tenant.runs.get(run.id) if tenant else None

    def _learn(self, event: Event) -> None:
        """Let the codec say whether it knows the kind; it is asked once per kind."""
        self._codec.encode(event)
        self._known[event.kind] = type(event.data)

    def _store(self, run: RunKey, held: _Run, events: Sequence[Event]) -> None:
        ids = {event.id for event in events}
        if len(ids) != len(events):
            raise Conflict(f"Two events that were offered to run {run.id!r} have the same id.")
        if taken := ids & held.ids:
            raise Conflict(f"Run {run.id!r} already holds an event {min(taken)!r}.")
        if self._index and (told := project(events)):
            rows = rows_of(run.tenant, told.artifacts)
            self._index.keep(run.tenant, rows, told.consumptions)
        if seen := observations(run.tenant, events):
            self.beliefs.keep(seen)
        tenant = self._tenants[run.tenant]
        if not held.events:
            self._last += 1
            held.n = self._last
            tenant.add(run.id, held)
        held.ids |= ids
        held.events.extend(events)
        if events[-1].kind in ENDS:
            tenant.finish(held)
        if self._bells and (bell := self._bells.pop(run, None)):
            bell.set()


async def _chosen(runs: Sequence[_Run], limit: int, which: RunFilter) -> list[tuple[Event, Event]]:
    """The ends of the last runs that a filter chooses; others get their go meanwhile."""
    found: list[tuple[Event, Event]] = []
    for number, held in enumerate(reversed(runs), 1):
        if len(found) >= limit:
            break
        if is_chosen(which, held.events[0], held.events[-1]):
            found.append((held.events[0], held.events[-1]))
        if not number % LOOKED_AT:
            await asyncio.sleep(0)
    return found


def _standing(run: str, held: _Run, events: Sequence[Event], expected: int) -> Sequence[Event]:
    """What stands where the batch belongs, if it is the same batch."""
    stored = tuple(held.events[expected : expected + len(events)]) if expected >= 0 else ()
    if [event.id for event in stored] != [event.id for event in events]:
        raise Conflict(
            f"Run {run!r} is at position {len(held.events)}, not {expected}: "
            "somebody else wrote. Read the run again before writing."
        )
    return stored
