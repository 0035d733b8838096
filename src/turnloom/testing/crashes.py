"""Tools that end a driver at any point, as a kill would: before or after an append or an effect."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from datetime import datetime

from turnloom.adapters.inline import InlineScheduler
from turnloom.agents.spec import Answer, Callee, Engine, Task
from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.queries import StoredArtifact
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.kernel.contained import Interrupted
from turnloom.kernel.values import Json
from turnloom.log.ports import Clock, EventLog
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey
from turnloom.runtime.ports import Artifacts, Drive, Inbox, Store
from turnloom.runtime.spec import Message
from turnloom.variables.spec import Context


class Killed(Interrupted):
    """The process is gone. Nothing that handles errors may handle this."""


class Fuse:
    """Lets a number of points pass, then kills; without a number it only counts."""

    def __init__(self, points: int | None = None) -> None:
        self.left = points
        self.passed = 0

    def point(self) -> None:
        """A point at which the process may be killed.

        Raises:
            Killed: this is the point.
        """
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1
        self.passed += 1


class CrashingLog:
    """A log whose driver may be killed before and after each append."""

    def __init__(self, log: EventLog, fuse: Fuse) -> None:
        self._log = log
        self._fuse = fuse

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store, unless killed before; tell, unless killed after."""
        self._fuse.point()
        stored = await self._log.append(run, events, expected, fence)
        self._fuse.point()
        return stored

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """What the log holds."""
        return await self._log.read(run, after)

    def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """What the log gets."""
        return self._log.subscribe(run, after)

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The ends of a run."""
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
        """The ends of runs."""
        return await self._log.runs(
            tenant, limit, before=before, unfinished=unfinished, which=which
        )

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """The ids of runs."""
        return await self._log.named(tenant, prefix, limit)


class CrashingStore:
    """A store whose program may be killed around each append, message and write to the board; its
    other ports are as they are. It outlives its programs, so it is never closed here."""

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
    """Drives runs in this process until one of them is killed, and none from then on; `died` is set
    then."""

    def __init__(self, clock: Clock, died: asyncio.Event | None = None) -> None:
        super().__init__(clock)
        self._died = died or asyncio.Event()

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        """Drive what is woken, until cancelled."""

        async def mortal(run: RunKey) -> datetime | None:
            try:
                return await drive(run)
            except Killed:
                self._died.set()
                return await asyncio.get_running_loop().create_future()

        await super().serve(mortal, slots=slots, limits=limits)

    async def outlives(self, script: Coroutine[object, object, object]) -> bool:
        """Let a program do what it does, until that ends or it is killed; whether it lived.

        Raises:
            Exception: whatever the script raises.
        """
        acting, dying = asyncio.create_task(script), asyncio.create_task(self._died.wait())
        await asyncio.wait({acting, dying}, return_when=asyncio.FIRST_COMPLETED)
        is_dead = dying.done() or isinstance(acting.exception(), Killed)
        for task in (acting, dying):
            task.cancel()
        await asyncio.wait({acting, dying})
        if not is_dead:
            acting.result()
        return not is_dead


class CrashingInbox:
    """An inbox whose user may be killed before and after each message."""

    def __init__(self, inbox: Inbox, fuse: Fuse) -> None:
        self._inbox = inbox
        self._fuse = fuse

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Keep a message, unless killed before; tell, unless killed after."""
        self._fuse.point()
        is_first = await self._inbox.offer(run, id, message)
        self._fuse.point()
        return is_first

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """What is not on record."""
        return await self._inbox.pending(run)

    def arrivals(self) -> AsyncIterator[RunKey]:
        """Who gets mail."""
        return self._inbox.arrivals()


class CrashingArtifacts:
    """Artifacts whose user may be killed before and after something is put there."""

    def __init__(self, artifacts: Artifacts, fuse: Fuse) -> None:
        self._artifacts = artifacts
        self._fuse = fuse

    @property
    def follows_log(self) -> bool:
        """Whether the log puts things there itself."""
        return self._artifacts.follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts, unless killed before; tell, unless killed after."""
        self._fuse.point()
        await self._artifacts.put(tenant, artifacts)
        self._fuse.point()

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Keep who took what, unless killed before; tell, unless killed after."""
        self._fuse.point()
        await self._artifacts.consume(tenant, consumptions)
        self._fuse.point()

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id."""
        return await self._artifacts.find(tenant, id)

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id."""
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
        """What is there."""
        return await self._artifacts.query(
            filter, reader, now, embed_meta=embed_meta, cursor=cursor, count=count
        )

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """How many there are."""
        return await self._artifacts.summary(filter, reader, now)

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """What opens next."""
        return await self._artifacts.upcoming(tenant, now, limit)

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took what."""
        return await self._artifacts.consumptions(tenant, ids)

    async def aclose(self) -> None:
        """Close what is behind it."""
        await self._artifacts.aclose()


class CrashingBeliefs:
    """Beliefs whose user may be killed before and after outcomes are added."""

    def __init__(self, beliefs: BeliefStore, fuse: Fuse) -> None:
        self._beliefs = beliefs
        self._fuse = fuse

    @property
    def follows_log(self) -> bool:
        """Whether the log adds outcomes itself."""
        return self._beliefs.follows_log

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known."""
        return await self._beliefs.beliefs(pool, agents)

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, unless killed before; tell, unless killed after."""
        self._fuse.point()
        await self._beliefs.observe(observations)
        self._fuse.point()

    async def aclose(self) -> None:
        """Close what is behind it."""
        await self._beliefs.aclose()


class CrashingEngine:
    """An engine whose driver may be killed before and after each answer."""

    def __init__(self, engine: Engine, fuse: Fuse) -> None:
        self.takes_variables = getattr(engine, "takes_variables", False)
        self._engine = engine
        self._fuse = fuse

    async def __call__(self, task: Task) -> Answer:
        """The engine's answer, unless killed."""
        self._fuse.point()
        answer = await self._engine(task)
        self._fuse.point()
        return answer


class CrashingCallee:
    """A tool or hook whose driver may be killed before and after each call."""

    def __init__(self, callee: Callee, fuse: Fuse) -> None:
        self.schema = callee.schema
        self.may_ask = callee.may_ask
        self._callee = callee
        self._fuse = fuse

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """What the callee gives, unless killed."""
        self._fuse.point()
        given = await self._callee(arguments, context)
        self._fuse.point()
        return given
