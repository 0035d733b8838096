"""Kill the driver at any append and any effect; what comes after is as if nothing had happened."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.folders import INTERVIEW, write_folder
from tests.support.logs import essence
from tests.support.prompts import prompt_of
from tests.support.worlds import begin, make_driver, make_world, with_engine, with_log
from turnloom.adapters.sqlite import SqliteStore
from turnloom.agents.spec import Answer, Task
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec, evolve, fresh
from turnloom.runtime.service.runs import World
from turnloom.runtime.spec import Reply
from turnloom.testing import CrashingEngine, CrashingLog, Fuse, Killed

pytestmark = pytest.mark.repeats

SAYS = {
    ("Asker", 1): "What is it?",
    ("Asker", 2): "And when?",
    ("Asker", 3): "NEXT",
    ("Planner", 1): "A draft.",
    ("Planner", 2): "DONE",
}


class Witness:
    """An engine that checks that the log knew; a fickle one answers differently each time."""

    def __init__(self, world: World, *, fickle: bool) -> None:
        self.world = world
        self.fickle = fickle
        self.count = 0
        self.given: dict[str, str] = {}

    async def __call__(self, task: Task) -> Answer:
        self.count += 1
        events = await self.world.stores.log.read(task.run)
        key = task.key.removeprefix(f"{task.run}/")
        assert not any(event.id == f"{key}.0" for event in events), "a completed effect ran again"
        assert any(event.id == f"{key}?" for event in events), "acted before saying so"
        assert prompt_of(events, task.turn) == task.prompt
        text = SAYS[task.agent, task.number]
        self.given[f"{key}.1"] = f"{text} ({self.count})" if self.fickle else text
        return Answer(self.given[f"{key}.1"])


async def carry_on(world: World, witness: Witness, run: str, fuse: Fuse) -> None:
    """One life of a process: drive, answer as the user, drive, until the end or the kill."""
    log = CrashingLog(world.stores.log, fuse)
    living = with_log(with_engine(world, CrashingEngine(witness, fuse)), log)
    driver = make_driver(living)
    while True:
        await driver.drive(run)
        ((_, last),) = await world.stores.log.ends(run=run)
        if last.kind != "run.paused":
            return
        question = last.data.waiting_for
        fuse.point()
        await world.stores.inbox.offer(
            run, f"{question}/answer", Reply(question, "An answer.", "u1")
        )


async def live(
    folder: str, kills: Sequence[int], *, fickle: bool, store: Any = None
) -> tuple[list[Event], Fuse]:
    """A run over several lives, each killed after some points, the last one not."""
    world = make_world(store=store)
    witness = Witness(world, fickle=fickle)
    run = await begin(with_engine(world, witness), folder)
    for points in kills:
        try:
            await carry_on(world, witness, run, Fuse(points))
        except Killed:
            continue
    fuse = Fuse()
    await carry_on(world, witness, run, fuse)
    events = list(await world.stores.log.read(run))
    said = {event.id: event.data.text for event in events if event.kind == "agent.text"}
    assert said == {key: witness.given[key] for key in said}, "something else was kept than given"
    assert len(said) == len(SAYS)
    await check_fold(with_engine(world, witness), run, events)
    return events, fuse


async def check_fold(world: World, run: str, events: list[Event]) -> None:
    """The state of a fresh driver is the fold of the log, however it is read."""
    loaded = await world.definitions.restore(events[0].data)
    whole, halves = fresh(run, loaded.workflow), fresh(run, loaded.workflow)
    for event in events:
        evolve(loaded.workflow, whole, event)
    for event in (*events[:7], *events[7:]):
        evolve(loaded.workflow, halves, event)
    assert whole == halves
    assert whole.status == "finished"
    assert whole.values["stage"] == "done"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_folder(Path(tmp_path_factory.mktemp("crash")), INTERVIEW)


async def test_a_kill_at_every_single_point_changes_nothing(folder: str) -> None:
    """Same answers from the world: the log is the log without the kill."""
    undisturbed, fuse = await live(folder, [], fickle=False)
    assert fuse.passed > 20
    for points in range(fuse.passed):
        events, _ = await live(folder, [points], fickle=False)
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


async def test_a_fickle_world_is_asked_again_only_for_what_was_lost(folder: str) -> None:
    """Other answers each time: what is on record stays, and is what was shown and given."""
    _, fuse = await live(folder, [], fickle=True)
    for points in range(fuse.passed):
        await live(folder, [points], fickle=True)


async def test_a_kill_at_every_single_point_of_a_run_on_disk(folder: str, tmp_path: Path) -> None:
    """The embedded store: a commit is there whole or not at all."""
    undisturbed, fuse = await live(folder, [], fickle=False)
    for points in range(fuse.passed):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events, _ = await live(folder, [points], fickle=False, store=store)
        finally:
            await store.aclose()
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


@settings(max_examples=30)
@given(kills=st.lists(st.integers(0, 30), max_size=6), fickle=st.booleans())
def test_any_sequence_of_kills(folder: str, kills: list[int], fickle: bool) -> None:
    """Killed again and again, anywhere: it ends as it would have."""
    events, _ = asyncio.run(live(folder, kills, fickle=fickle))
    kinds = [event.kind for event in events if event.kind != "run.resumed"]
    assert kinds[-1] == "run.finished"
    assert kinds.count("turn.started") == kinds.count("turn.finished") == len(SAYS)
    assert kinds.count("model.called") == kinds.count("model.answered") == len(SAYS)
