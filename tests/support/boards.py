"""Boards over several lives of a process, each killed somewhere, the last one not."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import wraps
from typing import Any

import msgspec

from tests.support.plays import every
from tests.support.worlds import make_world
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.app import Board
from turnloom.assembly.spec.means import no_search
from turnloom.log.ports import Clock
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import Drive
from turnloom.runtime.service.driver import Stores
from turnloom.runtime.service.runs import Runs
from turnloom.testing import (
    CrashingArtifacts,
    CrashingBeliefs,
    CrashingInbox,
    CrashingLog,
    FakeClock,
    FakeEntropy,
    Fuse,
    Killed,
)
from turnloom.wiring import Folders, assemble
from turnloom.wiring.boards import Boards
from turnloom.wiring.flows import Flows
from turnloom.wiring.parts import Definitions

# What a program does with its board; done again after a kill, it does what is left to do.
Script = Callable[[Board], Awaitable[None]]


@dataclass
class Place:
    """What outlives a process: its stores, and time."""

    store: Any = field(default_factory=lambda: MemoryStore(codec()))
    artifacts: Any = None
    beliefs: Any = None
    clock: FakeClock = field(default_factory=FakeClock)
    entropy: FakeEntropy = field(default_factory=FakeEntropy)

    def stores(self, fuse: Fuse) -> Stores:
        """The stores as a process has them that may be killed at each write; if artifacts are kept
        elsewhere than the log, at each write there; and at each outcome that beliefs are told of
        that are kept elsewhere."""
        store, log, inbox = self.store, self.store.log, self.store.inbox
        if self.artifacts is None:
            log, inbox = CrashingLog(log, fuse), CrashingInbox(inbox, fuse)
        artifacts = CrashingArtifacts(self.artifacts or store.artifacts, fuse)
        beliefs = CrashingBeliefs(self.beliefs, fuse) if self.beliefs else store.beliefs
        return Stores(log, inbox, store.claims, store.snapshots, artifacts, beliefs, store.results)

    async def logs(self) -> dict[str, list[Event]]:
        """The logs of all runs, the first one first."""
        ends = reversed(await self.store.log.ends())
        return {first.run: list(await self.store.log.read(first.run)) for first, _ in ends}


@dataclass
class Process:
    """One life of a process with a board, to be declared."""

    board: Board
    runs: Runs
    scheduler: "MortalScheduler"
    fuse: Fuse

    def mortal(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function around every call of which the process may be killed."""

        @wraps(function)
        async def called(*args: Any) -> Any:
            self.fuse.point()
            given = await function(*args)
            self.fuse.point()
            return given

        return called


class MortalScheduler(InlineScheduler):
    """A scheduler whose process does nothing any more once a drive was killed."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.died = asyncio.Event()

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        async def mortal(run: str) -> datetime | None:
            try:
                return await drive(run)
            except Killed:
                self.died.set()
                return await asyncio.get_running_loop().create_future()

        await super().serve(mortal, slots=slots, limits=limits)


def begin_process(place: Place, fuse: Fuse | None = None, **declared: Any) -> Process:
    """A process that has just started."""
    fuse = fuse or Fuse()
    boards = Boards(None, declared.pop("search", no_search))
    definitions: Any = Definitions(Folders(), boards, Flows(None), place.store.log)
    base = replace(make_world(store=place.store), clock=place.clock, entropy=place.entropy)
    scheduler = MortalScheduler(place.clock)
    stores = place.stores(fuse)
    world = replace(base, stores=stores, definitions=definitions, scheduler=scheduler)
    runs = Runs(world)
    parts = replace(
        assemble({"store": "memory"}),
        artifacts=stores.artifacts,
        definitions=definitions,
        boards=boards,
        runs=runs,
    )
    variables, hooks = declared.pop("variables", {}), declared.pop("hooks", ())
    guards = declared.pop("guards", None)
    declaration = parts.declare_board("board", 100, variables, hooks, guards)
    own = runs.board("board", lambda: boards.load("board"), user="u1", tenant="acme")
    return Process(Board(declaration, own, parts, lambda: runs), runs, scheduler, fuse)


@asynccontextmanager
async def serving(process: Process) -> AsyncIterator[Board]:
    """A process that drives its runs."""
    task = asyncio.create_task(process.runs.serve(10))
    try:
        yield process.board
    finally:
        task.cancel()
        await asyncio.wait({task})


async def live(process: Process, script: Script) -> bool:
    """Let a process do what its script says; whether it lived to its end."""
    acting = asyncio.ensure_future(script(process.board))
    driving = asyncio.create_task(process.runs.serve(10))
    dying = asyncio.create_task(process.scheduler.died.wait())
    await asyncio.wait({acting, driving, dying}, return_when=asyncio.FIRST_COMPLETED)
    is_dead = process.scheduler.died.is_set()
    for task in (acting, driving, dying):
        task.cancel()
    for ended in await asyncio.gather(acting, driving, dying, return_exceptions=True):
        is_dead = is_dead or isinstance(ended, Killed)
        is_error = isinstance(ended, BaseException)
        if is_error and not is_dead and not isinstance(ended, asyncio.CancelledError):
            raise ended
    return not is_dead


def tales(logs: Mapping[str, Sequence[Event]]) -> dict[str, dict[str, list[Any]]]:
    """What the logs of a board say of each turn, and of the rest, run by run.

    Turns go on side by side: which of them is the first, what an event follows, where a text stands
    that several show, and how often a run comes to rest is not theirs to say.
    """
    return {run: _strands(events) for run, events in logs.items()}


def _strands(events: Sequence[Event]) -> dict[str, list[Any]]:
    turns = {f"t{fact.turn}": _turn(fact) for fact in every(events, "artifact.consumed")}
    found: dict[str, list[Any]] = {}
    for event in events:
        if event.kind in ("run.resumed", "run.paused"):
            continue
        head, slash, tail = event.id.partition("/")
        turn = turns.get(head, "")
        data = _plain(msgspec.to_builtins(event.data), turns)
        id = f"{turn}{slash}{tail}" if turn else event.id
        found.setdefault(turn, []).append((id, event.kind, event.actor, data))
    found[""].sort(key=repr)
    return found


def _turn(taken: Any) -> str:
    again = " again" if taken.retry_of else ""
    return f"{taken.subscription} of {', '.join(taken.artifacts)}{again}"


_SHIFTING = {"at", "as_in", "elapsed_ms", "micros", "segments", "text"}


def _plain(data: Any, turns: Mapping[str, str]) -> Any:
    if isinstance(data, list | tuple):
        return [_plain(each, turns) for each in data]
    if not isinstance(data, dict):
        return data
    kept = {name: _plain(each, turns) for name, each in data.items() if name not in _SHIFTING}
    for name in ("turn", "retry_of"):
        if name in kept:
            kept[name] = turns.get(f"t{kept[name]}", kept[name])
    if "call" in kept:
        turn, slash, inside = kept["call"].partition("/")
        kept["call"] = f"{turns.get(turn, turn)}{slash}{inside}"
    return kept


def takings(logs: Mapping[str, Sequence[Event]]) -> Counter[tuple[str, str]]:
    """How often each artifact was taken for each subscription, tries after a failure aside.

    A set that was collected is taken by the run that collects it into a turn of another one.
    """
    found = {
        (artifact, fact.subscription, fact.run or run, fact.turn)
        for run, events in logs.items()
        for fact in every(events, "artifact.consumed")
        if not fact.retry_of
        for artifact in fact.artifacts
    }
    return Counter((artifact, subscription) for artifact, subscription, _, _ in found)
