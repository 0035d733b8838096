"""Kill a run that derives all it can; never is a message there without what follows from it."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.folders import GARDEN, write_folder
from tests.support.logs import essence
from tests.support.worlds import begin, make_driver, make_world, with_log
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec, derive, evolve, freeze, fresh, thaw
from turnloom.runtime.service.runs import World
from turnloom.runtime.spec import Reply
from turnloom.testing import CrashingEngine, CrashingLog, FakeClock, Fuse, Killed, ScriptedEngine
from turnloom.variables.events import TimerSet
from turnloom.wiring import Folders

pytestmark = pytest.mark.repeats

LINES = {
    "Gardener": ["Good day.", "I sow peas now.", "I wait.", "It is dry."],
    "Cook": ["Soup it is."],
}
FINAL = {
    "seeds": "peas",
    "sown": True,
    "watched": True,
    "dry": True,
    "alarmed": True,
    "tired": True,
    "words": 14,
    "chatty": True,
}
MINUTE = timedelta(minutes=1)


async def carry_on(world: World, run: str, fuse: Fuse) -> None:
    """One life of a process; a minute passes with each question."""
    assert isinstance(world.clock, FakeClock)
    driver = make_driver(with_log(world, CrashingLog(world.stores.log, fuse)))
    while True:
        await driver.drive(run)
        events = await world.stores.log.read(run)
        if events[-1].kind != "run.paused":
            return
        question = events[-1].data.waiting_for
        asked = sum(event.kind == "question.asked" for event in events)
        fuse.point()
        world.clock.time = events[0].at + asked * MINUTE
        reply = Reply(question, "Go on.", "u1")
        await world.stores.inbox.offer(run, f"{question}/answer", reply)


async def live(folder: str, kills: Sequence[int], store: Any = None) -> tuple[list[Event], Fuse]:
    """A run over several lives, each killed after some points, the last one not."""
    fuse = Fuse()
    world = make_world(store=store)
    run = await begin(_with(world, fuse), folder)
    for points in kills:
        fuse = Fuse(points)
        try:
            await carry_on(_with(world, fuse), run, fuse)
        except Killed:
            await check_whole(world, run)
    fuse = Fuse()
    await carry_on(_with(world, fuse), run, fuse)
    return await check_whole(world, run), fuse


def _with(world: World, fuse: Fuse) -> World:
    definitions = Folders(CrashingEngine(ScriptedEngine(LINES), fuse))
    return World(
        world.stores,
        world.clock,
        world.entropy,
        world.environment,
        world.documents,
        definitions,
        world.scheduler,
    )


async def check_whole(world: World, run: str) -> list[Event]:
    """All that follows from what the log holds is in the log, that of functions too."""
    events = list(await world.stores.log.read(run))
    workflow = (await Folders(ScriptedEngine({})).restore(events[0].data)).workflow
    ids, state = {event.id for event in events}, fresh(run, workflow)
    for event in events:
        evolve(workflow, state, event)
        for change in derive(workflow, state, event):
            name = change.timer if isinstance(change, TimerSet) else change.name
            assert f"{event.id}>{name}" in ids, "something does not stand with what it follows from"
    texts = [event.data.text for event in events if event.kind == "agent.text"]
    words = sum(len(text.split()) for text in texts)
    assert state.values["words"] == words
    assert state.values["chatty"] is (words > 4)
    return events


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_folder(Path(tmp_path_factory.mktemp("garden")), GARDEN)


async def test_an_undisturbed_run_derives_all_of_it(folder: str) -> None:
    events, _ = await live(folder, [])
    assert events[-1].kind == "run.finished"
    changed = {e.data.name: e.data.value for e in events if e.kind == "context.changed"}
    assert changed == FINAL
    kinds = [event.kind for event in events]
    assert kinds.count("timer.set") == kinds.count("timer.expired") == 1


async def test_a_kill_at_every_single_point_changes_nothing(folder: str) -> None:
    undisturbed, fuse = await live(folder, [])
    assert fuse.passed > 20
    for points in range(fuse.passed):
        events, _ = await live(folder, [points])
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


async def test_a_kill_on_disk_changes_nothing(folder: str, tmp_path: Path) -> None:
    undisturbed, fuse = await live(folder, [])
    for points in range(0, fuse.passed, 4):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events, _ = await live(folder, [points], store)
        finally:
            await store.aclose()
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


@settings(max_examples=12)
@given(kills=st.lists(st.integers(0, 30), max_size=5))
def test_any_sequence_of_kills(folder: str, kills: list[int]) -> None:
    events, _ = asyncio.run(live(folder, kills))
    assert events[-1].kind == "run.finished"


@pytest.fixture(scope="module")
def recorded(folder: str) -> list[Event]:
    return asyncio.run(live(folder, []))[0]


@settings(max_examples=50)
@given(cuts=st.sets(st.integers(0, 80)))
def test_the_fold_is_the_same_however_the_log_is_read(
    recorded: list[Event], cuts: set[int]
) -> None:
    """In one go, in pieces, through bytes, and through snapshots in between."""
    workflow = asyncio.run(Folders(ScriptedEngine({})).restore(recorded[0].data)).workflow
    whole, pieces = fresh("run1", workflow), fresh("run1", workflow)
    for event in recorded:
        evolve(workflow, whole, event)
        if event.seq in cuts and pieces.open is None:
            pieces = thaw(workflow, freeze(pieces)) or pieces
        evolve(workflow, pieces, codec().decode(codec().encode(event)))
    assert whole == pieces
    assert {name: whole.values[name] for name in FINAL} == FINAL
    assert whole.timers == {}
