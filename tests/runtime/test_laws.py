"""The laws of data flow, one test or more each."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.folders import INTERVIEW, write_folder
from tests.support.programs import Program, begin, drive, make_world, mortal, refitted
from tests.support.world import World
from turnloom.agents.spec import Answer, Task
from turnloom.errors import Conflict
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import Fuse, Killed, ScriptedEngine

TURNS = 200

PING_PONG = {
    "orchestrator.yaml": f"initial_agent: A\nmax_turns: {TURNS}\n",
    "agents.yaml": "agents: {A: {system_message: You are A.}, B: {system_message: You are B.}}",
    "context_variables.yaml": """
        definitions:
          seen:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_text, agent: A, match: {equals: "ping 3"}}]
        agents: {A: {variables: [seen]}, B: {variables: [seen]}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: A, target_agent: B, handoff_type: after_work}
          - {source_agent: B, target_agent: A, handoff_type: after_work}
        """,
}


async def ping(task: Task) -> Answer:
    return Answer(f"ping {task.number}")


class Spy:
    """A log that notes what it is offered."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.batches: list[list[Event]] = []

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        self.batches.append(list(events))
        return await self.log.append(run, events, expected, fence)

    def __getattr__(self, name: str) -> object:
        return getattr(self.log, name)


async def drive_to_rest(world: World, folder: str) -> tuple[str, list[Event]]:
    run = await begin(world, folder)
    await drive(world, run)
    return run, await world.read(run)


async def test_law_1_nothing_handed_to_an_engine_can_append(tmp_path: Path) -> None:
    """A task is frozen data: no log, no journal, no driver hangs on it."""
    seen: list[Task] = []

    async def engine(task: Task) -> Answer:
        seen.append(task)
        return Answer("NEXT" if task.agent == "Asker" else "DONE")

    await drive_to_rest(make_world(engine), write_folder(tmp_path, INTERVIEW))
    fields = [getattr(seen[0], name) for name in seen[0].__struct_fields__]
    assert not any(hasattr(field, "append") or hasattr(field, "record") for field in fields)
    with pytest.raises(AttributeError):
        seen[0].system = "something else"


async def test_law_2_a_driver_whose_facts_the_log_does_not_hold_is_void(tmp_path: Path) -> None:
    """What counts is what was stored under the ids, not what was offered."""

    class Forgetful(Spy):
        async def append(
            self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
        ) -> Sequence[Event]:
            stored = await self.log.append(run, events, expected, fence)
            return [*stored[:-1], *stored[:1]]

    engine = ScriptedEngine({"Asker": ["NEXT"], "Planner": ["DONE"]})
    world = make_world(engine)
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    with pytest.raises(Conflict):
        await drive(refitted(world, log=Forgetful(world.store.log)), run)
    assert not engine.calls, "acted on a record that the log does not hold"
    await drive(world, run)
    assert [task.agent for task in engine.calls] == ["Asker", "Planner"]


async def test_law_3_the_frame_is_in_the_log_before_the_engine_is_asked(tmp_path: Path) -> None:
    world = make_world()
    kinds: list[str] = []

    async def engine(task: Task) -> Answer:
        events = await world.read(task.run)
        kinds.extend((events[-1].kind, events[-2].kind))
        return Answer("NEXT" if task.agent == "Asker" else "DONE")

    await drive_to_rest(replace(world, engine=engine), write_folder(tmp_path, INTERVIEW))
    assert kinds == ["model.called", "frame.assembled"] * 2


async def test_law_4_ids_are_derived(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, INTERVIEW)
    lines = {"Asker": ["NEXT"], "Planner": ["DONE"]}
    _, once = await drive_to_rest(make_world(ScriptedEngine(lines)), folder)
    _, again = await drive_to_rest(make_world(ScriptedEngine(lines)), folder)
    assert [event.id for event in once] == [event.id for event in again]
    assert len({event.id for event in once}) == len(once)


class Unfenced:
    """A log that looks at positions alone."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        return await self._log.append(run, events, expected)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


async def test_law_4_of_two_drivers_one_wins(tmp_path: Path) -> None:
    """The log alone keeps them apart: neither sees what the other one claims."""
    gate, asked = asyncio.Event(), asyncio.Queue[str]()

    async def slow(task: Task) -> Answer:
        asked.put_nowait(task.key)
        await gate.wait()
        return Answer("NEXT" if task.agent == "Asker" else "DONE")

    world = make_world(slow)
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    log = Unfenced(world.store.log)
    blind = [refitted(world, claims=make_world().store.claims, log=log) for _ in range(2)]
    async with Program(blind[0]) as one, Program(blind[1]) as other:
        first = asyncio.create_task(one.once(run))
        await asked.get()
        second = asyncio.create_task(other.once(run))
        await asked.get()
        gate.set()
        await asyncio.gather(first, second)
        events = await world.read(run)
        with pytest.raises(Conflict):
            await anext(one.app.handle(run).events(len(events)))
    assert [event.kind for event in events].count("run.finished") == 1
    assert len({event.id for event in events}) == len(events)


async def cut_off(tmp_path: Path) -> tuple[World, str]:
    """A run whose process was killed when an engine was about to be asked."""
    world = make_world(ScriptedEngine({}))
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    with pytest.raises(Killed):
        async with mortal(world, Fuse(2)) as program:
            await program.drive(run)
    assert (await world.read(run))[-1].kind == "model.called"
    return world, run


async def test_law_5_a_request_that_differs_from_the_one_on_record_is_not_made(
    tmp_path: Path,
) -> None:
    """An effect is known by its key and by what exactly was asked for."""
    world, run = await cut_off(tmp_path)
    *events, called = await world.read(run)
    other = msgspec.structs.replace(called.data, request="what nobody asks for")
    changed = World(engine=ScriptedEngine({"Asker": ["NEXT"], "Planner": ["DONE"]}))
    await changed.store.log.append(
        RunKey("local", run), [*events, msgspec.structs.replace(called, data=other)], 0
    )
    async with Program(changed) as program:
        await program.once(run)
    assert not changed.engine.calls
    *_, finished, failed = await changed.read(run)
    assert (finished.kind, failed.kind) == ("turn.finished", "run.failed")
    assert finished.data.error.startswith("Diverged")


async def test_law_5_a_request_may_be_made_again_of_another_engine(tmp_path: Path) -> None:
    world, run = await cut_off(tmp_path)

    async def another(task: Task) -> Answer:
        return Answer("NEXT" if task.agent == "Asker" else "DONE")

    await drive(replace(world, engine=another), run)
    events = await world.read(run)
    assert events[-1].kind == "run.finished"
    assert [event.kind for event in events].count("model.called") == 2


@pytest.fixture
async def batches(tmp_path: Path) -> list[list[Event]]:
    """What is offered to the log in a run of many turns."""
    world = make_world(ping)
    spy = Spy(world.store.log)
    run = await begin(world, write_folder(tmp_path, PING_PONG))
    await drive(refitted(world, log=spy), run)
    return spy.batches


async def test_law_9_bytes_of_a_turn_do_not_grow(batches: list[list[Event]]) -> None:
    """The last turn of many writes as much as an early one, up to the digits of its numbers."""
    encode = codec().encode
    sizes = [sum(len(encode(event)) for event in batch) for batch in batches]
    assert sizes[-2] <= sizes[20] * 1.1


async def test_an_effect_costs_one_append(batches: list[list[Event]]) -> None:
    """What an effect gave, what was decided from it and the next intent are stored together; what
    is stored for a snapshot ends with neither."""
    ends = ("model.called", "run.finished")
    snapshots = [batch for batch in batches if batch[-1].kind not in ends]
    assert len(batches) == TURNS + 1 + len(snapshots)
    middle = [event.kind for event in batches[10]]
    assert middle[0] == "model.answered" and middle[-1] == "model.called"


async def test_a_message_and_what_is_derived_from_it_are_one_append(
    batches: list[list[Event]],
) -> None:
    (batch,) = [each for each in batches if "context.changed" in [event.kind for event in each]]
    (changed,) = [event for event in batch if event.kind == "context.changed"]
    assert changed.cause in [event.seq for event in batch]


async def test_what_the_run_recorded_rules_over_a_changed_environment(tmp_path: Path) -> None:
    world = make_world(ping, env={"FLAG": "yes"})
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    world.environment.values["ENVIRONMENT"] = "production"
    world.environment.values["FLAG"] = "no"
    await drive(world, run)
    frame = next(e for e in await world.read(run) if e.kind == "frame.assembled")
    texts = [segment.text for segment in frame.data.segments]
    assert "\n- flag: true" in texts


async def test_production_has_no_environment_variable_anywhere(tmp_path: Path) -> None:
    world = make_world(ping, env={"FLAG": "yes", "ENVIRONMENT": "production"})
    run, events = await drive_to_rest(world, write_folder(tmp_path, INTERVIEW))
    loaded = next(event for event in events if event.kind == "context.loaded")
    assert not {"flag", "context_aware"} & {each.name for each in loaded.data.values}
    frame = next(event for event in events if event.kind == "frame.assembled")
    assert [each.origin for each in frame.data.withheld] == ["context_variables.flag"]
    assert frame.data.withheld[0].reason == "suppressed"
