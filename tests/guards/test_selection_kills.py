"""Killed anywhere, a choice stays what it was, and an outcome counts exactly once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.guards.desks import POOL, bob_fails, desk, fine
from tests.reaction.scenes import SOON, Order, Parcel
from tests.support.boards import Place, begin_process
from tests.support.boards import live as live_on
from tests.support.logs import essence
from tests.support.programs import begin, make_world, mortal, refitted
from turnloom import Answer, Board, Engine, Guards, Selection, Task
from turnloom.adapters.memory import MemoryBeliefs, MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.guards.spec import Belief, Pool
from turnloom.log.events import ENDS
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import CrashingBeliefs, Fuse, Killed

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

BOTH = ("Ann", "Bob")


async def live(
    folder: str, kills: Sequence[int], store: Any, beliefs: Any, engine: Engine = fine
) -> tuple[list[Event], dict[str, Belief], Fuse]:
    """A run over several lives, each killed after some points, the last one not; its log, and what
    is known then."""
    world = make_world(engine, store=store)
    run = await begin(world, folder)
    fuse = Fuse()
    for points in (*kills, None):
        _, last = await store.log.ends(RunKey("local", run))
        if last.kind in ENDS:
            break
        fuse = Fuse(points)
        crashing = CrashingBeliefs(beliefs, fuse)
        try:
            async with mortal(refitted(world, beliefs=crashing), fuse) as program:
                await program.drive(run)
        except Killed:
            continue
    return (
        list(await store.log.read(RunKey("local", run))),
        dict(await beliefs.beliefs(POOL, BOTH)),
        fuse,
    )


def made(events: Sequence[Event]) -> list[Any]:
    return [event.data for event in events if event.kind == "selection.made"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return desk(Path(tmp_path_factory.mktemp("kills")), "seed: 1\ndecay: 0.1")


@pytest.mark.parametrize("engine", [fine, bob_fails])
async def test_a_kill_between_a_log_and_beliefs_elsewhere(folder: str, engine: Engine) -> None:
    """The outcome is in the log before it is known, and the run does not end before it is."""
    undisturbed, known, fuse = await live(folder, [], MemoryStore(codec()), MemoryBeliefs(), engine)
    assert [*known.values()] == [Belief(1, 0) if engine is fine else Belief(0, 1)]
    for points in range(fuse.passed):
        events, then, _ = await live(
            folder, [points], MemoryStore(codec()), MemoryBeliefs(), engine
        )
        assert essence(events) == essence(undisturbed), f"killed after {points} points"
        assert then == known, f"killed after {points} points"


async def test_several_kills_in_a_row(folder: str) -> None:
    undisturbed, known, fuse = await live(folder, [], MemoryStore(codec()), MemoryBeliefs())
    for points in range(1, fuse.passed, 2):
        kills = [points, 1, 2, points]
        events, then, _ = await live(folder, kills, MemoryStore(codec()), MemoryBeliefs())
        assert made(events) == made(undisturbed)
        assert then == known


async def test_a_kill_with_beliefs_beside_the_log(folder: str, tmp_path: Path) -> None:
    """In one file, log and beliefs are never apart."""
    store: Any = MemoryStore(codec())
    undisturbed, known, fuse = await live(folder, [], store, store.beliefs)
    for points in range(fuse.passed - 1, 0, -4):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events, then, _ = await live(folder, [points], store, store.beliefs)
        finally:
            await store.aclose()
        assert essence(events) == essence(undisturbed), f"killed after {points} points"
        assert then == known, f"killed after {points} points"


async def test_without_a_seed_the_chance_on_record_counts(tmp_path: Path) -> None:
    """What was drawn and stored is not drawn again, whatever chance would say now."""
    folder = desk(tmp_path)
    _, _, fuse = await live(folder, [], MemoryStore(codec()), MemoryBeliefs())
    for points in range(fuse.passed):
        events, known, _ = await live(folder, [points], MemoryStore(codec()), MemoryBeliefs())
        (choice,) = made(events)
        assert choice.chance
        assert [*known] == [choice.chosen]


async def trade(board: Board) -> None:
    """Two orders, published once whoever is killed; what was cut off goes on."""
    await board.resume()
    for number in range(2):
        await board.publish(Order(number=number), id=f"o{number}")
    await board.run_until_idle(SOON)


async def pack(task: Task) -> Answer:
    return Answer(output={"item": "tea", "confidence": 0.5})


async def board_life(place: Place, *kills: int) -> tuple[dict[str, Belief], int]:
    """What is known of the packers when all orders are packed, over several lives."""
    selection = Selection(candidates=("ann", "bob"), seed=4)
    fuse = Fuse()
    for points in (*kills, None):
        fuse = Fuse(points)
        process = begin_process(place, fuse, guards=Guards(selection=selection))
        for name in selection.candidates:
            agent = process.board.agent(name).consumes(Order).publishes(Parcel)
            agent.with_engines(process.mortal(pack))
        if await live_on(process, trade):
            break
    pool = Pool("local", "board", "general")
    return dict(await place.beliefs.beliefs(pool, selection.candidates)), fuse.passed


async def test_a_kill_of_a_board_with_beliefs_elsewhere() -> None:
    known, passed = await board_life(Place(beliefs=MemoryBeliefs()))
    assert sum(each.observations for each in known.values()) == 2
    for points in range(passed):
        then, _ = await board_life(Place(beliefs=MemoryBeliefs()), points)
        assert then == known, f"killed after {points} points"
