"""Tools that kill a driver at any point: before or after an append or an effect."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence, Set
from datetime import datetime

from turnloom.adapters.inline import InlineScheduler
from turnloom.agents.spec import Answer, Callee, Engine, Task
from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.queries import StoredArtifact
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.values import Json
from turnloom.log.ports import Clock, EventLog
from turnloom.log.service import branching
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey
from turnloom.runtime.ports import Artifacts, Drive, Inbox, Store
from turnloom.runtime.spec import LimitWait, Message
from turnloom.variables.spec import Context


class Killed(Interrupted):
    """The process was killed. Error handlers must not catch this."""


class Fuse:
    """Raises `Killed` at a chosen point; without a number it only counts points."""

    def __init__(self, points: int | None = None) -> None:
        self.left = points
        self.passed = 0

    def point(self) -> None:
        """Pass a point at which the process may be killed.

        Raises:
            Killed: this is the point.
        """
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1
        self.passed += 1


class CrashingLog:
    """A log whose driver may be killed before or after each append."""

    def __init__(self, log: EventLog, fuse: Fuse) -> None:
        self._log = log
        self._fuse = fuse

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Append; may be killed before the append or before the return."""
        self._fuse.point()
        stored = await self._log.append(run, events, expected, fence)
        self._fuse.point()
        return stored

    async def batch_end(self, run: RunKey, seq: int) -> int:
        """The end of the batch that holds a position."""
        return await branching(self._log, "A branch").batch_end(run, seq)

    async def branch(
        self, run: RunKey, origin: str, at: int, events: Sequence[Event]
    ) -> Sequence[Event]:
        """Start a branch; may be killed before it is stored or before the return."""
        self._fuse.point()
        stored = await branching(self._log, "A branch").branch(run, origin, at, events)
        self._fuse.point()
        return stored

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run after a position."""
        return await self._log.read(run, after)

    def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """The events of a run after a position, including future ones."""
        return self._log.subscribe(run, after)

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run."""
        return await self._log.ends(run)

    async def runs(
        self,
        tenant: str,
        limit: int,
        *,
        before: str | None = None,
        unfinished: bool = False,
        which: RunFilter = EVERY_RUN,
    ) -> Sequence[tuple[Event, Event]]:
        """The first and the last event of each run."""
        return await self._log.runs(
            tenant, limit, before=before, unfinished=unfinished, which=which
        )

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """The ids of runs with a prefix."""
        return await self._log.named(tenant, prefix, limit)


class CrashingStore:
    """A store whose program may be killed before or after each append, message and artifact write;
    the other ports are unchanged. `aclose` does nothing, so that the store outlives its
    programs."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self.log = CrashingLog(store.log, fuse)
        self.inbox = CrashingInbox(store.inbox, fuse)
        self.artifacts = CrashingArtifacts(store.artifacts, fuse)
        self.claims = store.claims
        self.snapshots = store.snapshots
        self.beliefs = store.beliefs
        self.results = store.results
        self.plans = store.plans

    async def aclose(self) -> None:
        """Leave the store open."""


class CrashingScheduler(InlineScheduler):
    """Drives runs in this process until one of them is killed, then sets `died` and drives no
    more."""

    def __init__(self, clock: Clock, died: asyncio.Event | None = None) -> None:
        super().__init__(clock)
        self._died = died or asyncio.Event()

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        """Drive woken runs until cancelled."""

        async def drive_until_killed(
            run: RunKey, held: LimitWait | None = None, /
        ) -> datetime | None:
            try:
                return await drive(run, held)
            except Killed:
                self._died.set()
                return await asyncio.get_running_loop().create_future()

        await super().serve(drive_until_killed, slots=slots, limits=limits)

    async def outlives(self, script: Coroutine[object, object, object]) -> bool:
        """Run a program until it ends or is killed; returns whether it survived.

        Raises:
            Exception: the script raised it.
        """
        running, dying = asyncio.create_task(script), asyncio.create_task(self._died.wait())
        await asyncio.wait({running, dying}, return_when=asyncio.FIRST_COMPLETED)
        is_dead = dying.done() or isinstance(running.exception(), Killed)
        for task in (running, dying):
            task.cancel()
        await asyncio.wait({running, dying})
        if not is_dead:
            running.result()
        return not is_dead


class CrashingInbox:
    """An inbox whose user may be killed before or after each message."""

    def __init__(self, inbox: Inbox, fuse: Fuse) -> None:
        self._inbox = inbox
        self._fuse = fuse

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Keep a message; may be killed before the write or before the return."""
        self._fuse.point()
        is_first = await self._inbox.offer(run, id, message)
        self._fuse.point()
        return is_first

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages whose events are not in the log."""
        return await self._inbox.pending(run)

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs that get mail from now on."""
        return self._inbox.arrivals()


class CrashingArtifacts:
    """An artifact store whose user may be killed before or after each write."""

    def __init__(self, artifacts: Artifacts, fuse: Fuse) -> None:
        self._artifacts = artifacts
        self._fuse = fuse

    @property
    def follows_log(self) -> bool:
        """Whether an append to the log updates this store."""
        return self._artifacts.follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Add artifacts; may be killed before the write or before the return."""
        self._fuse.point()
        await self._artifacts.put(tenant, artifacts)
        self._fuse.point()

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Add consumptions; may be killed before the write or before the return."""
        self._fuse.point()
        await self._artifacts.consume(tenant, consumptions)
        self._fuse.point()

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id."""
        return await self._artifacts.find(tenant, id)

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact with this id."""
        return await self._artifacts.get(id, reader, now)

    async def query(
        self,
        filter: FilterConfig,
        reader: Reader,
        now: datetime,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page:
        """A page of artifacts."""
        return await self._artifacts.query(
            filter, reader, now, embed_meta=embed_meta, cursor=cursor, count=count
        )

    async def newest(
        self,
        correlation: str,
        reader: Reader,
        now: datetime,
        most: int,
        *,
        without: Set[str] = frozenset(),
    ) -> Sequence[Artifact]:
        """The last artifacts of a correlation."""
        return await self._artifacts.newest(correlation, reader, now, most, without=without)

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """Counts of artifacts."""
        return await self._artifacts.summary(filter, reader, now)

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which artifacts become visible."""
        return await self._artifacts.upcoming(tenant, now, limit)

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of artifacts."""
        return await self._artifacts.consumptions(tenant, ids)

    async def aclose(self) -> None:
        """Close the wrapped store."""
        await self._artifacts.aclose()


class CrashingBeliefs:
    """A belief store whose user may be killed before or after outcomes are added."""

    def __init__(self, beliefs: BeliefStore, fuse: Fuse) -> None:
        self._beliefs = beliefs
        self._fuse = fuse

    @property
    def follows_log(self) -> bool:
        """Whether an append to the log updates this store."""
        return self._beliefs.follows_log

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """The beliefs about agents."""
        return await self._beliefs.beliefs(pool, agents)

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes; may be killed before the write or before the return."""
        self._fuse.point()
        await self._beliefs.observe(observations)
        self._fuse.point()

    async def aclose(self) -> None:
        """Close the wrapped store."""
        await self._beliefs.aclose()


class CrashingEngine:
    """An engine whose driver may be killed before or after each answer."""

    def __init__(self, engine: Engine, fuse: Fuse) -> None:
        self.takes_variables = getattr(engine, "takes_variables", False)
        self._engine = engine
        self._fuse = fuse

    async def __call__(self, task: Task) -> Answer:
        """The engine's answer; may be killed before or after the call."""
        self._fuse.point()
        answer = await self._engine(task)
        self._fuse.point()
        return answer


class CrashingCallee:
    """A tool or hook whose driver may be killed before or after each call."""

    def __init__(self, callee: Callee, fuse: Fuse) -> None:
        self.schema = callee.schema
        self.may_ask = callee.may_ask
        self._callee = callee
        self._fuse = fuse

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """The callee's result; may be killed before or after the call."""
        self._fuse.point()
        result = await self._callee(arguments, context)
        self._fuse.point()
        return result
