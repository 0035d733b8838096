"""Kill the driver at any append and any effect; what comes after is as if nothing had happened."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.folders import INTERVIEW, as_json, write_folder
from tests.support.logs import essence
from tests.support.plays import attend, every
from tests.support.programs import begin, make_world, mortal
from tests.support.prompts import prompt_of
from tests.support.world import World
from turnloom import Answer, Event, Task
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.testing import Fuse, Killed

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
        events = await self.world.read(task.run)
        key = task.key.removeprefix(f"{task.run}/")
        assert not any(event.id == f"{key}.0" for event in events), "a completed effect ran again"
        assert any(event.id == f"{key}?" for event in events), "acted before saying so"
        assert prompt_of(events, task.turn) == task.prompt
        text = SAYS[task.agent, task.number]
        self.given[f"{key}.1"] = f"{text} ({self.count})" if self.fickle else text
        return Answer(self.given[f"{key}.1"])


async def live(
    folder: str, kills: Sequence[int], *, fickle: bool, store: Any = None
) -> tuple[list[Event], Fuse]:
    """A run over several lives, each killed after some points, the last one not."""
    world = make_world(store=store)
    world.engine = witness = Witness(world, fickle=fickle)
    run = await begin(world, folder)
    for points in (*kills, None):
        fuse = Fuse(points)
        try:
            async with mortal(world, fuse) as program:
                await attend(program, run, lambda asked: "An answer.")
        except Killed:
            continue
    events = await world.read(run)
    said = {event.id: event.data.text for event in events if event.kind == "agent.text"}
    assert said == {key: witness.given[key] for key in said}, "something else was kept than given"
    assert len(said) == len(SAYS)
    stages = [each.value for each in every(events, "context.changed") if each.name == "stage"]
    assert stages == ["planning", "done"]
    return events, fuse


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_folder(Path(tmp_path_factory.mktemp("crash")), as_json(INTERVIEW))


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


async def test_a_kill_of_a_run_on_disk(folder: str, tmp_path: Path) -> None:
    """The embedded store: a commit is there whole or not at all."""
    undisturbed, fuse = await live(folder, [], fickle=False)
    for points in range(0, fuse.passed, 3):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events, _ = await live(folder, [points], fickle=False, store=store)
        finally:
            await store.aclose()
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


@settings(max_examples=20)
@given(kills=st.lists(st.integers(0, 30), min_size=2, max_size=6), fickle=st.booleans())
def test_any_sequence_of_kills(folder: str, kills: list[int], fickle: bool) -> None:
    """Killed again and again, anywhere: it ends as it would have."""
    events, _ = asyncio.run(live(folder, kills, fickle=fickle))
    kinds = [event.kind for event in events if event.kind != "run.resumed"]
    assert kinds[-1] == "run.finished"
    assert kinds.count("turn.started") == kinds.count("turn.finished") == len(SAYS)
    assert kinds.count("model.called") == kinds.count("model.answered") == len(SAYS)
