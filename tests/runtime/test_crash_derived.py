"""Kill a run that derives all it can; never is a message there without what follows from it."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.folders import GARDEN, as_json, write_folder
from tests.support.logs import essence
from tests.support.plays import attend, every
from tests.support.programs import begin, make_world, mortal
from tests.support.world import Refitted, World
from turnloom import Event
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import Fuse, Killed, ScriptedEngine

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

# What comes into a log with an event, in the same append: the beginning of its id, by their ids.
Whole = dict[str, set[str]]


class Patient:
    """An inbox whose people take their time: a minute passes with each answer."""

    def __init__(self, world: World) -> None:
        self._clock, self._inbox = world.clock, world.store.inbox

    async def offer(self, run: RunKey, id: str, message: Any) -> bool:
        self._clock.advance(MINUTE)
        return await self._inbox.offer(run, id, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inbox, name)


class Lives:
    """One run, over several lives of a process."""

    def __init__(self, folder: str, store: Any = None, whole: Whole | None = None) -> None:
        self._folder = folder
        self._world = make_world(ScriptedEngine(LINES), store)
        self._world.store = Refitted(self._world.store, inbox=Patient(self._world))
        self._whole = whole or {}

    async def live(self, kills: Sequence[int] = ()) -> tuple[list[Event], Fuse]:
        """The log after lives that are killed after some points, and one that is not."""
        run = await begin(self._world, self._folder)
        for points in (*kills, None):
            fuse = Fuse(points)
            try:
                async with mortal(self._world, fuse) as program:
                    await attend(program, run, lambda asked: "Go on.")
            except Killed:
                pass
            self._check(await self._world.read(run))
        return await self._world.read(run), fuse

    def _check(self, events: list[Event]) -> None:
        """All that follows from what the log holds is in the log, that of functions too."""
        ids = {event.id for event in events}
        for id in ids:
            assert self._whole.get(id, set()) <= ids, "something stands without what it leads to"
        words = sum(len(each.text.split()) for each in every(events, "agent.text"))
        values = {each.name: each.value for each in every(events, "context.changed")}
        assert values.get("words", 0) == words
        assert values.get("chatty", False) is (words > 4)


def wholes(events: Sequence[Event]) -> Whole:
    """What comes with each event of a log: changes and timers are named after what caused them."""
    ids = [event.id for event in events]
    return {id: {each for each in ids if each.startswith(f"{id}>")} for id in ids}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_folder(Path(tmp_path_factory.mktemp("garden")), as_json(GARDEN))


async def test_an_undisturbed_run_derives_all_of_it(folder: str) -> None:
    events, _ = await Lives(folder).live()
    assert events[-1].kind == "run.finished"
    changed = {e.data.name: e.data.value for e in events if e.kind == "context.changed"}
    assert changed == FINAL
    assert sum(bool(each) for each in wholes(events).values()) > 9
    kinds = [event.kind for event in events]
    assert kinds.count("timer.set") == kinds.count("timer.expired") == 1


async def test_a_kill_at_every_single_point_changes_nothing(folder: str) -> None:
    undisturbed, fuse = await Lives(folder).live()
    assert fuse.passed > 20
    for points in range(fuse.passed):
        events, _ = await Lives(folder, whole=wholes(undisturbed)).live([points])
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


async def test_a_kill_on_disk_changes_nothing(folder: str, tmp_path: Path) -> None:
    undisturbed, fuse = await Lives(folder).live()
    for points in range(0, fuse.passed, 6):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events, _ = await Lives(folder, store, wholes(undisturbed)).live([points])
        finally:
            await store.aclose()
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


@settings(max_examples=12)
@given(kills=st.lists(st.integers(0, 30), min_size=2, max_size=5))
def test_any_sequence_of_kills(folder: str, kills: list[int]) -> None:
    events, _ = asyncio.run(Lives(folder).live(kills))
    assert events[-1].kind == "run.finished"
