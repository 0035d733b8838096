"""A process is killed while it retries a run: the next one brings the run to the same end, and
repeats nothing that is on record."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.flow.ledgers import Ledger, Trip, journey, stumble, travel
from tests.runtime import test_board_retry as boards
from tests.runtime import test_retry as talks
from tests.support.folders import write_folder
from tests.support.world import PATIENCE
from turnloom import Event, Loom
from turnloom.adapters.memory import MemoryStore
from turnloom.log.events import ENDS
from turnloom.log.logic import standing
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import CrashingScheduler, CrashingStore, FakeClock, Fuse

pytestmark = pytest.mark.repeats


class Play:
    """A run that failed, and what was done in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def fail(self, app: Loom) -> str:
        """Start a run that fails; its id."""
        raise NotImplementedError

    def declare(self, app: Loom) -> None:
        """Declare what a process needs to continue the run."""

    async def follow(self, app: Loom, run: str) -> str:
        """Follow the run to its end."""
        return (await app.handle(run).finished()).kind

    def done(self) -> Counter[str]:
        """How often each effect was done."""
        raise NotImplementedError

    def recorded(self, events: Sequence[Event]) -> Iterator[str]:
        """The effects that are on record."""
        raise NotImplementedError

    def check(self) -> None:
        """Check what was done in the end."""


class Talk(Play):
    """A conversation that fails in a tool round of its third turn, or in its first turn."""

    stone = "Buyer 3.1"

    async def fail(self, app: Loom) -> str:
        talks.done.clear()
        talks.stones.add(self.stone)
        run = await app.start(self.folder)
        await run.finished()
        talks.stones.clear()
        return run.id

    def done(self) -> Counter[str]:
        return talks.done.copy()

    def recorded(self, events: Sequence[Event]) -> Iterator[str]:
        for event in events:
            match event.kind:
                case "tool.returned":
                    yield f"buy {event.data.result}"
                case "lifecycle.tool_result":
                    yield event.data.function
                case "model.answered":
                    turn = [each for each in events if each.kind == event.kind]
                    rounds = [each for each in turn if each.data.turn == event.data.turn]
                    yield f"{event.data.agent} {event.data.turn}.{rounds.index(event)}"
                case _:
                    pass


class Deal(Play):
    """A board whose second agent fails."""

    async def fail(self, app: Loom) -> str:
        boards.done.clear()
        boards.stones.add("bill")
        run = await boards.run_of(app, boards.shop(app))
        boards.stones.clear()
        return run

    def declare(self, app: Loom) -> None:
        boards.shop(app)

    def done(self) -> Counter[str]:
        return boards.done.copy()

    def recorded(self, events: Sequence[Event]) -> Iterator[str]:
        made = {"again.Parcel": "pack", "again.Bill": "bill"}
        for event in events:
            if event.kind == "artifact.published" and event.data.artifact.type in made:
                yield made[event.data.artifact.type]


class Tour(Play):
    """A flow that fails after its fork, in which some steps are compensated."""

    undoable: tuple[str, ...] = ("draft", "hotel", "pay")
    at = 30

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ledger = Ledger()
        self.flow = journey(self.ledger, *self.undoable)

    async def fail(self, app: Loom) -> str:
        self.ledger.set_trap(self.at, stumble)
        run = await app.start(self.flow, Trip())
        assert (await travel(run)).status == "failed"
        return run.id

    def declare(self, app: Loom) -> None:
        app.register_flow(self.flow)

    async def follow(self, app: Loom, run: str) -> str:
        outcome = await travel(app.handle(run))  # type: ignore[arg-type]
        return f"{outcome.status} {outcome.state}"

    def done(self) -> Counter[str]:
        return Counter(what for kind, what, _ in self.ledger.entries if kind == "do")

    def recorded(self, events: Sequence[Event]) -> Iterator[str]:
        gone = {key for kind, _, key in self.ledger.entries if kind == "undo"}
        undone = {what for _, what, key in self.ledger.entries if key in gone}
        retried = next((each.seq for each in events if each.kind == "run.retried"), None)
        for event in events:
            is_new = retried is not None and event.seq > retried
            if event.kind in ("effect.done", "tool.returned"):
                what = event.data.result
                if is_new or what not in undone:
                    yield what


class Straight(Tour):
    """A flow that fails in its fork, and in which nothing is compensated."""

    undoable = ()
    at = 21


class Stubborn(Tour):
    """A flow that fails again in its retry, so that steps are compensated there too."""

    async def fail(self, app: Loom) -> str:
        run = await super().fail(app)
        self.ledger.set_trap(self.at // 2, stumble)
        return run

    def recorded(self, events: Sequence[Event]) -> Iterator[str]:
        return iter(())  # it may be compensated, and done anew

    def check(self) -> None:
        assert len(self.ledger.done_twice()) <= 2, "more than what was cut off in two paths"


async def until_end(play: Play, app: Loom, run: str) -> str:
    """Retry the run, or continue its retry, up to its end."""
    play.declare(app)
    events = await app.history.events(run)
    if not any(event.kind == "run.retried" for event in events):
        await app.handle(run).retry()
    elif events[-1].kind not in ENDS:
        await app.resume(run)
    while (end := await play.follow(app, run)).startswith("failed"):
        await app.handle(run).retry()
    return end


async def live(play: Play, store: MemoryStore, run: str, fuse: Fuse) -> str | None:
    """How the run ends in a process with this fuse; None if the process is killed."""
    clock, end = FakeClock(), list[str]()
    scheduler = CrashingScheduler(clock)
    app = Loom(
        store=CrashingStore(store, fuse), scheduler=scheduler, clock=clock, engine=talks.clerk
    )

    async def script() -> None:
        end.append(await until_end(play, app, run))

    try:
        async with asyncio.timeout(PATIENCE):
            return end[0] if await scheduler.outlives(script()) else None
    finally:
        await app.aclose()


async def sweep(make: Callable[[], Play], every: int) -> None:
    """Kill a process at every so many points of a retry; the next one finishes it."""
    expected, last = await _lives(make(), None)
    for points in range(0, last, every):
        found, _ = await _lives(make(), points)
        assert found == expected, f"killed after {points} points"


async def _lives(play: Play, kill: int | None) -> tuple[str, int]:
    store = MemoryStore(codec())
    async with Loom(store=CrashingStore(store, Fuse()), engine=talks.clerk) as app:
        run = await play.fail(app)
    key, fuse = RunKey("local", run), Fuse()
    if kill is not None:
        assert await live(play, store, run, Fuse(kill)) is None
    done, recorded = play.done(), {*play.recorded(standing(await store.log.read(key)))}
    end = await live(play, store, run, fuse)
    assert end is not None
    assert not recorded & (play.done() - done).keys(), "what is on record was done again"
    play.check()
    return end, fuse.passed


MAKES = {"talk": Talk, "deal": Deal, "tour": Tour, "straight": Straight, "stubborn": Stubborn}


@pytest.mark.parametrize(("name", "every"), [("talk", 7), ("deal", 5), ("tour", 31)])
async def test_killed_in_a_retry(tmp_path: Path, name: str, every: int) -> None:
    folder = Path(write_folder(tmp_path, talks.SHOP))
    await sweep(lambda: MAKES[name](folder), every)


@pytest.mark.doors
@pytest.mark.parametrize("name", MAKES)
async def test_killed_anywhere_in_a_retry(tmp_path: Path, name: str) -> None:
    folder = Path(write_folder(tmp_path, talks.SHOP))
    await sweep(lambda: MAKES[name](folder), 1)
