"""Boards over several lives of a process, each killed somewhere, the last one not."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import msgspec

from tests.support.plays import every
from tests.support.world import PATIENCE, read_logs
from turnloom import Board, Event, Loom
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.testing import (
    CrashingArtifacts,
    CrashingBeliefs,
    CrashingInbox,
    CrashingLog,
    CrashingScheduler,
    FakeClock,
    FakeDocuments,
    FakeEntropy,
    FakeEnvironment,
    Fuse,
    Killed,
)

# What a program does with its board; done again after a kill, it does what is left to do.
Script = Callable[[Board], Awaitable[None]]


@dataclass
class Place:
    """What outlives a process: its stores, and time.

    `artifacts` and `beliefs` are given if they are kept elsewhere than the log.
    """

    store: Any = field(default_factory=lambda: MemoryStore(codec()))
    artifacts: Any = None
    beliefs: Any = None
    clock: FakeClock = field(default_factory=FakeClock)
    entropy: FakeEntropy = field(default_factory=FakeEntropy)

    async def logs(self) -> dict[str, list[Event]]:
        """The logs of all runs, the first one first; plans are no runs."""
        return await read_logs(self.store)


class CrashingStore:
    """The stores of a place, whose process may be killed at each write: to log and inbox; if
    artifacts are kept elsewhere, only to those; if beliefs are, to those as well."""

    def __init__(self, place: Place, fuse: Fuse) -> None:
        self._store = store = place.store
        self.log, self.inbox, self.beliefs = store.log, store.inbox, store.beliefs
        if place.artifacts is None:
            self.log, self.inbox = CrashingLog(store.log, fuse), CrashingInbox(store.inbox, fuse)
        self.artifacts = CrashingArtifacts(place.artifacts or store.artifacts, fuse)
        if place.beliefs is not None:
            self.beliefs = CrashingBeliefs(place.beliefs, fuse)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class IdleScheduler(InlineScheduler):
    """A scheduler of a process that leaves all driving to others."""

    async def serve(self, drive: Any, *, slots: int, limits: Mapping[str, int]) -> None:
        await asyncio.get_running_loop().create_future()


@dataclass
class Process:
    """One life of a process with a board, to be declared."""

    app: Loom
    board: Board
    died: asyncio.Event
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


def begin_process(
    place: Place, fuse: Fuse | None = None, *, idle: bool = False, **declared: Any
) -> Process:
    """A process that has just started; `declared` is what its board declares.

    One that is `idle` publishes, and drives nothing.
    """
    fuse, died = fuse or Fuse(), asyncio.Event()
    scheduler = IdleScheduler(place.clock) if idle else CrashingScheduler(place.clock, died)
    store: Any = CrashingStore(place, fuse)
    app = Loom(
        store=store,
        clock=place.clock,
        entropy=place.entropy,
        environment=FakeEnvironment(),
        documents=FakeDocuments(),
        scheduler=scheduler,
        slots=10,
    )
    board = app.board(user_id="u1", max_turns=100, **declared)
    return Process(app, board, died, fuse)


async def go_round(times: int = 200) -> None:
    """Let everything happen that waits for nothing but its turn in the event loop."""
    for _ in range(times):
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(process: Process) -> AsyncIterator[Board]:
    """A process that drives its runs."""
    async with process.app:
        yield process.board


async def live(process: Process, script: Script) -> bool:
    """Let a process do what its script says; whether it lived to its end."""
    acting = asyncio.ensure_future(script(process.board))
    dying = asyncio.ensure_future(process.died.wait())
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({acting, dying}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_dead = process.died.is_set()
        acting.cancel()
        dying.cancel()
        await asyncio.wait({acting, dying})
        await process.app.aclose()
    error = None if acting.cancelled() else acting.exception()
    if error and not is_dead and not isinstance(error, Killed):
        raise error
    return not (is_dead or error)


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
