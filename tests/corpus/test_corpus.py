"""Old logs replay: today's release goes on with them, and makes again what they hold."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.corpus.recording import FOLDER, ROOT, RUNS, attend, record
from tests.support.logs import essence
from tests.support.plays import every
from tests.support.programs import Program
from tests.support.world import World
from turnloom import Event
from turnloom.log.events import ENDS
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import ScriptedEngine

LOGS = sorted(FOLDER.glob("*.jsonl"))


class Ending(NamedTuple):
    """How a run is known to have ended."""

    status: str
    turns: dict[str, int]
    values: dict[str, Any]


ENDINGS = {
    "interview_finished": Ending(
        "finished",
        {"Asker": 3, "Planner": 3},
        {"tier": "beta", "flag": True, "known": True, "stage": "done", "user_id": "u1"},
    ),
    "interview_cancelled": Ending(
        "cancelled",
        {"Asker": 2},
        {"tier": "beta", "flag": False, "known": False, "stage": "asking", "app_id": "local"},
    ),
    "interview_failed_in_production": Ending(
        "failed", {"Asker": 1, "Planner": 2}, {"tier": "beta", "known": True, "stage": "planning"}
    ),
    "interview_without_variables": Ending(
        "cancelled", {"Asker": 2}, {"context_aware": True, "user_id": "u1"}
    ),
}


def read(log: Path) -> list[Event]:
    return [codec().decode(line) for line in log.read_bytes().splitlines()]


async def stored(events: Sequence[Event], engine: ScriptedEngine) -> World:
    """A world that holds the beginning of a log."""
    assert events[0].data.root == ROOT
    world = World(engine=engine)
    world.clock.time = events[-1].at
    await world.store.log.append(RunKey(events[0].data.tenant, events[0].run), events, 0)
    return world


def test_the_corpus_holds_what_is_known_of_it() -> None:
    assert {log.stem for log in LOGS} == set(ENDINGS) == set(RUNS)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_an_old_log_is_whole_and_says_nothing_of_the_machine_it_was_made_on(log: Path) -> None:
    events = read(log)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({event.id for event in events}) == len(events)
    assert all(event.cause is None or event.cause < event.seq for event in events)
    for word in (b"/tmp", b"/home", b"/Users", b"C:\\\\"):
        assert word not in log.read_bytes()


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
async def test_an_old_log_tells_how_its_run_ended(log: Path) -> None:
    events, ending = read(log), ENDINGS[log.stem]
    async with (await stored(events, ScriptedEngine({}))).open() as app:
        tenant = events[0].data.tenant
        (summary,) = await app.runs(app_id=tenant)
        told = {
            name: (await app.explain.variable(summary.run, name, app_id=tenant)).value
            for name in ending.values
        }
    assert (summary.status, told) == (ending.status, ending.values)
    assert Counter(each.agent for each in every(events, "turn.started")) == ending.turns


def cuts(events: Sequence[Event]) -> list[int]:
    """Where a log may have ended: when it was begun, when an engine was asked, when it waited."""
    ends = [event.seq for event in events if event.kind in ("model.called", "run.paused")]
    return [next(event.seq for event in events if event.kind == "route.decided") - 1, *ends]


async def made_again(name: str, events: Sequence[Event], at: int) -> list[Event]:
    """The log of a run that goes on from a position of its log, as it went."""
    recipe = RUNS[name]
    world = await stored(events[:at], ScriptedEngine(recipe.lines))
    said = len(every(events[:at], "question.answered"))
    async with Program(world, events[0].data.tenant) as program:
        await attend(program, events[0].run, recipe.user[said:])
    return await world.read(events[0].run)


def uncaused(events: Sequence[Event]) -> list[Any]:
    """A log without causes: older releases named others for the end of a turn."""
    return [(id, kind, actor, data) for id, kind, actor, _, data in essence(events)]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
async def test_an_old_run_goes_again_where_it_went(log: Path) -> None:
    """Routes, turns, questions, ends, derived values and frames: all of them made again."""
    events = read(log)
    assert len(cuts(events)) > 3 and events[-1].kind in ENDS
    for at in cuts(events):
        again = await made_again(log.stem, events, at)
        assert uncaused(again) == uncaused(events), f"from {at} on"


@pytest.mark.parametrize("name", RUNS)
async def test_a_run_that_is_recorded_today_replays_as_well(name: str) -> None:
    events = await record(RUNS[name])
    assert [codec().decode(codec().encode(event)) for event in events] == events
    for at in cuts(events):
        assert essence(await made_again(name, events, at)) == essence(events)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
async def test_an_old_log_is_decided_again_as_it_was(log: Path) -> None:
    events = read(log)
    world = await stored(events, ScriptedEngine({}))
    async with world.open() as app:
        replay = await app.history.replay(events[0].run, app_id=events[0].data.tenant)
    assert replay.divergence is None and replay.same == len(events), str(replay)
