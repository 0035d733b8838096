"""A custom store: a folder with one file, to which every change is appended.

Each process keeps the content of the file in memory, and reads what others appended before it reads
or writes. A lock on the file allows one writer at a time. A change that a killed process wrote only
in part is cut off by the next writer.
"""

import fcntl
import os
import pickle
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import WeakSet

import anyio
import anyio.lowlevel

from turnloom.adapters.memory import MemoryStore
from turnloom.errors import (
    Conflict,
    LeaseLost,
    RunBusy,
    StoreUnavailable,
    TurnloomError,
    UnknownRun,
    UsageError,
)
from turnloom.ports import (
    ENDS,
    EVERY_RUN,
    Belief,
    Codec,
    Event,
    Holder,
    Message,
    Observation,
    Pool,
    RunFilter,
    RunKey,
    StoredPlan,
    codec,
    is_chosen,
)

# Seconds between two checks for changes of other processes.
PAUSE = 0.02


class Journal:
    """A file of changes, and the functions that apply each kind of change in memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "journal"
        self._file = self._path.open("a+b", buffering=0)
        self._position = 0
        self._lock = anyio.Lock()
        self._changed = anyio.Event()
        self._carry_out: dict[str, Callable[..., Any]] = {}
        self.is_closed = False

    def on(self, kind: str, carry_out: Callable[..., Any]) -> None:
        """Apply changes of a kind with this function, from every process."""
        self._carry_out[kind] = carry_out

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        """While this is open, memory matches the file."""
        async with self._lock:
            self._check_open()
            await self._catch_up()
            yield

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """While this is open, memory matches the file, and only this task writes."""
        async with self._lock:
            self._check_open()
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                await self._catch_up()
                self._file.truncate(self._position)  # a partial change of a killed process
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        await anyio.lowlevel.checkpoint()  # let other tasks run

    async def write(self, kind: str, *change: Any) -> None:
        """Append a change and carry it out; only inside `writing`. What refuses it here refuses it
        in every process that reads it, so that memory stays the same in all of them."""
        body = pickle.dumps((kind, change))
        try:
            self._file.write(len(body).to_bytes(8, "big") + body)
        except OSError as error:
            raise StoreUnavailable(f"The journal cannot be written: {error}") from error
        refused = await self._catch_up()
        if refused is not None:
            raise refused

    async def wait(self) -> None:
        """Wait for a change in this process, or for a moment: others may have written."""
        with anyio.move_on_after(PAUSE):
            await self._changed.wait()

    def close(self) -> None:
        """Refuse everything from now on."""
        if not self.is_closed:
            self.is_closed = True
            self._changed.set()
            self._file.close()

    def _check_open(self) -> None:
        if self.is_closed:
            raise UsageError("This store is closed. Open a new one.")

    async def _catch_up(self) -> TurnloomError | None:
        """Apply appended changes; return why the last one was refused, if it was."""
        if os.fstat(self._file.fileno()).st_size == self._position:
            return None
        self._file.seek(self._position)
        data, start, refused = self._file.read(), 0, None
        while len(data) - start >= 8:
            end = start + 8 + int.from_bytes(data[start : start + 8], "big")
            if end > len(data):
                break
            kind, change = pickle.loads(data[start + 8 : end])
            carry_out = self._carry_out[kind]
            try:
                refused = await carry_out(*change)
            except TurnloomError as error:
                refused = error
            self._position += end - start
            start = end
        self._changed.set()
        self._changed = anyio.Event()
        return refused


class JournalLog:
    """The events of runs."""

    def __init__(self, journal: Journal, codec: Codec, claims: "JournalClaims") -> None:
        self._journal = journal
        self._codec = codec
        self._claims = claims
        self._runs: dict[RunKey, list[Event]] = {}
        self._ids: dict[RunKey, set[str]] = {}
        self._numbers: dict[RunKey, int] = {}
        self._unfinished: dict[RunKey, None] = {}
        journal.on("append", self._append)

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        lines = [self._codec.encode(event) for event in events]
        async with self._journal.writing():
            if fence is not None and not self._claims.is_in_force(run, fence):
                raise LeaseLost(run.id)
            held = self._runs.get(run, [])
            if expected == len(held):
                self._check_ids(run, events)
                if events:
                    await self._journal.write("append", run, lines)
                return events
            stored = held[expected : expected + len(events)]
            if [event.id for event in stored] != [event.id for event in events]:
                raise Conflict(f"Run {run!r} is at position {len(held)}, not {expected}.")
            return stored

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        async with self._journal.reading():
            return self._runs.get(run, [])[after:]

    async def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        while True:
            events = await self.read(run, after)
            for event in events:
                after = event.seq
                yield event
            if not events:
                await self._journal.wait()

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        async with self._journal.reading():
            return self._ends(run) if run in self._runs else None

    async def runs(
        self,
        tenant: str,
        limit: int,
        *,
        before: str | None = None,
        unfinished: bool = False,
        which: RunFilter = EVERY_RUN,
    ) -> Sequence[tuple[Event, Event]]:
        async with self._journal.reading():
            newest = reversed(self._unfinished if unfinished else self._numbers)
            end = len(self._numbers)
            if before is not None:
                if RunKey(tenant, before) not in self._numbers:
                    raise UnknownRun(before)
                end = self._numbers[RunKey(tenant, before)]
            ours = (run for run in newest if run.tenant == tenant and self._numbers[run] < end)
            ends = map(self._ends, ours)
            return [*islice((each for each in ends if is_chosen(which, *each)), limit)]

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        async with self._journal.reading():
            ours = (run.id for run in self._runs if run.tenant == tenant)
            return sorted(id for id in ours if id.startswith(prefix))[:limit]

    def holds(self, run: RunKey, id: str) -> bool:
        return id in self._ids.get(run, ())

    def _check_ids(self, run: RunKey, events: Sequence[Event]) -> None:
        ids = {event.id for event in events}
        if len(ids) < len(events) or not ids.isdisjoint(self._ids.get(run, ())):
            raise Conflict(f"Run {run!r} already holds one of these events.")

    async def _append(self, run: RunKey, lines: Sequence[bytes]) -> None:
        events = [self._codec.decode(line) for line in lines]
        if run not in self._runs:
            self._numbers[run] = len(self._numbers)
            self._unfinished[run] = None
        self._runs.setdefault(run, []).extend(events)
        self._ids.setdefault(run, set()).update(event.id for event in events)
        if events[-1].kind in ENDS:
            self._unfinished.pop(run, None)

    def _ends(self, run: RunKey) -> tuple[Event, Event]:
        return self._runs[run][0], self._runs[run][-1]


class JournalInbox:
    """Messages to runs, until their event is in the log."""

    def __init__(self, journal: Journal, log: JournalLog) -> None:
        self._journal = journal
        self._log = log
        self._mail: dict[RunKey, dict[str, Message]] = {}
        self._readers: WeakSet[Arrivals] = WeakSet()
        journal.on("offer", self._offer)

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        async with self._journal.writing():
            if id in self._mail.get(run, {}) or self._log.holds(run, id):
                return False
            await self._journal.write("offer", run, id, message)
            return True

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        async with self._journal.reading():
            mail = self._mail.get(run, {})
            return [(id, each) for id, each in mail.items() if not self._log.holds(run, id)]

    def arrivals(self) -> AsyncIterator[RunKey]:
        arrivals = Arrivals(self._journal)
        self._readers.add(arrivals)
        return arrivals

    async def _offer(self, run: RunKey, id: str, message: Message) -> None:
        self._mail.setdefault(run, {})[id] = message
        for reader in self._readers:
            reader.runs[run] = None


class Arrivals:
    """The runs that got messages since this was created."""

    def __init__(self, journal: Journal) -> None:
        self.runs: dict[RunKey, None] = {}
        self._journal = journal

    def __aiter__(self) -> "Arrivals":
        return self

    async def __anext__(self) -> RunKey:
        while not self.runs:
            async with self._journal.reading():
                pass
            if not self.runs:
                await self._journal.wait()
        run = next(iter(self.runs))
        del self.runs[run]
        return run


class JournalClaims:
    """Which process drives which run: a locked file for each, which dies with its process, and the
    fence in the journal."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self._journal = journal
        self._folder = folder
        self._count = 0
        self._held: dict[RunKey, tuple[int, str]] = {}
        journal.on("claim", self._claim)
        journal.on("release", self._release)
        folder.mkdir(parents=True, exist_ok=True)

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int]:
        with self._path(run).open("wb") as file:
            await _lock(file, f"Run {run!r} is driven by another program.")
            async with self._journal.writing():
                await self._journal.write("claim", run, str(os.getpid()))
                fence = self._count
            try:
                yield fence
            finally:
                await self._let_go(run)

    async def held(self, run: RunKey) -> Holder | None:
        with self._path(run).open("wb") as file:
            if _is_locked(file, fcntl.LOCK_SH):
                return None
        async with self._journal.reading():
            return Holder(self._held.get(run, (0, "unknown"))[1])

    def is_in_force(self, run: RunKey, fence: int) -> bool:
        return self._held.get(run, (0, ""))[0] == fence

    async def _let_go(self, run: RunKey) -> None:
        with anyio.CancelScope(shield=True):
            if not self._journal.is_closed:
                async with self._journal.writing():
                    await self._journal.write("release", run)

    async def _claim(self, run: RunKey, process: str) -> None:
        self._count += 1
        self._held[run] = (self._count, process)

    async def _release(self, run: RunKey) -> None:
        self._held.pop(run, None)

    def _path(self, run: RunKey) -> Path:
        return self._folder / sha256(repr(run).encode("utf-8", "surrogatepass")).hexdigest()


async def _lock(file: Any, problem: str) -> None:
    """Lock a file; a process that only checks the lock holds it for a moment."""
    for _ in range(5):
        if _is_locked(file, fcntl.LOCK_EX):
            return
        await anyio.sleep(PAUSE / 5)
    raise RunBusy(problem)


def _is_locked(file: Any, how: int) -> bool:
    """Whether this process got a lock."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class JournalSnapshots:
    """The last folded state of each run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._states: dict[RunKey, tuple[int, bytes]] = {}
        journal.on("save", self._save)

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        async with self._journal.writing():
            if seq >= self._states.get(run, (0, b""))[0]:
                await self._journal.write("save", run, seq, state)

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        async with self._journal.reading():
            return self._states.get(run)

    async def _save(self, run: RunKey, seq: int, state: bytes) -> None:
        self._states[run] = (seq, state)


class JournalPlans:
    """Plans that runs are pinned to."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._plans: dict[tuple[str, str], StoredPlan] = {}
        journal.on("plan", self._keep)

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        async with self._journal.writing():
            if (tenant, digest) not in self._plans:
                await self._journal.write("plan", tenant, digest, plan)

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        async with self._journal.reading():
            return self._plans.get((tenant, digest))

    async def _keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        self._plans[tenant, digest] = plan


class JournalResults:
    """Results of steps that are cached."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: dict[tuple[str, str], tuple[Any, datetime | None]] = {}
        journal.on("result", self._keep)

    async def find(self, tenant: str, key: str, now: datetime) -> Any:
        async with self._journal.reading():
            value, until = self._kept.get((tenant, key), (None, None))
            return None if until is not None and until < now else value

    async def keep(
        self, tenant: str, key: str, value: Any, now: datetime, until: datetime | None
    ) -> None:
        async with self._journal.writing():
            await self._journal.write("result", tenant, key, value, until)

    async def _keep(self, tenant: str, key: str, value: Any, until: datetime | None) -> None:
        self._kept[tenant, key] = (value, until)


class JournalBeliefs:
    """Beliefs about agents. The app updates them after each append; the log does not."""

    follows_log = False

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[Pool, dict[str, Belief]] = {}
        self._seen: set[tuple[str, str, str]] = set()
        journal.on("observe", self._observe)

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        async with self._journal.reading():
            known = self._known.get(pool, {})
            return {agent: known[agent] for agent in agents if agent in known}

    async def observe(self, observations: Sequence[Observation]) -> None:
        async with self._journal.writing():
            await self._journal.write("observe", list(observations))

    async def _observe(self, observations: Sequence[Observation]) -> None:
        for each in observations:
            seen = (each.pool.tenant, each.run, each.event)
            if seen not in self._seen:
                self._seen.add(seen)
                known = self._known.setdefault(each.pool, {})
                for agent, belief in known.items():
                    known[agent] = belief.faded(each.decay) if each.decay else belief
                known[each.agent] = known.get(each.agent, Belief()).after(each.credit)

    async def aclose(self) -> None:
        """It is closed with the store."""


class JournalArtifacts:
    """Artifacts, found by an index in memory that the journal fills. The app puts them here after
    each append."""

    follows_log = False

    def __init__(self, journal: Journal, codec: Codec) -> None:
        self._journal = journal
        self._index = MemoryStore(codec, board=False).artifacts
        journal.on("put", self._index.put)
        journal.on("consume", self._index.consume)

    async def put(self, *what: Any) -> None:
        async with self._journal.writing():
            await self._journal.write("put", *what)

    async def consume(self, *what: Any) -> None:
        async with self._journal.writing():
            await self._journal.write("consume", *what)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The methods that read: `find`, `get`, `query`, `newest`, `summary` and others."""
        look = getattr(self._index, name)

        async def read(*asked: Any, **more: Any) -> Any:
            async with self._journal.reading():
                return await look(*asked, **more)

        return read

    async def aclose(self) -> None:
        """It is closed with the store."""


class JournalStore:
    """A store in a folder, for any number of processes of one machine."""

    def __init__(self, folder: str | Path, known: Codec | None = None) -> None:
        known = known or codec()
        self._journal = journal = Journal(Path(folder))
        self.claims = JournalClaims(journal, Path(folder) / "claims")
        self.log = JournalLog(journal, known, self.claims)
        self.inbox = JournalInbox(journal, self.log)
        self.snapshots = JournalSnapshots(journal)
        self.plans = JournalPlans(journal)
        self.results = JournalResults(journal)
        self.beliefs = JournalBeliefs(journal)
        self.artifacts = JournalArtifacts(journal, known)

    async def aclose(self) -> None:
        self._journal.close()


def open_store(url: str) -> JournalStore:
    """The store `journal:FOLDER`."""
    return JournalStore(url.removeprefix("journal:"))
