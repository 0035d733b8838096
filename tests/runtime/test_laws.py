"""The laws of data flow, one test or more each."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.folders import INTERVIEW, write_folder
from tests.support.worlds import begin, make_driver, make_world, with_engine, with_log
from turnloom.agents.events import ModelAnswered, ModelCalled, TurnStarted
from turnloom.agents.spec import Answer, Task
from turnloom.errors import Conflict
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, Fact
from turnloom.runtime.logic import codec, evolve, freeze, fresh, thaw
from turnloom.runtime.service.journal import Diverged, Journal
from turnloom.runtime.service.runs import World
from turnloom.testing import CrashingLog, Fuse, Killed, ScriptedEngine

PING_PONG = {
    "orchestrator.yaml": "initial_agent: A\nmax_turns: 400\n",
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

    async def append(self, run: str, events: Sequence[Event], expected: int) -> Sequence[Event]:
        self.batches.append(list(events))
        return await self.log.append(run, events, expected)

    def __getattr__(self, name: str) -> object:
        return getattr(self.log, name)


async def drive_to_rest(world: World, folder: str) -> tuple[str, list[Event]]:
    run = await begin(world, folder)
    await make_driver(world).drive(run)
    return run, list(await world.stores.log.read(run))


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
        async def append(self, run: str, events: Sequence[Event], expected: int) -> Sequence[Event]:
            stored = await self.log.append(run, events, expected)
            return [*stored[:-1], *stored[:1]]

    engine = ScriptedEngine({"Asker": ["NEXT"], "Planner": ["DONE"]})
    world = make_world(engine)
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    with pytest.raises(Conflict):
        await make_driver(with_log(world, Forgetful(world.stores.log))).drive(run)
    assert not engine.calls, "acted on a record that the log does not hold"
    await make_driver(world).drive(run)
    assert [task.agent for task in engine.calls] == ["Asker", "Planner"]


async def test_law_3_the_frame_is_in_the_log_before_the_engine_is_asked(tmp_path: Path) -> None:
    world = make_world()
    kinds: list[str] = []

    async def engine(task: Task) -> Answer:
        kinds.append((await world.stores.log.read(task.run))[-1].kind)
        kinds.append((await world.stores.log.read(task.run))[-2].kind)
        return Answer("NEXT" if task.agent == "Asker" else "DONE")

    await drive_to_rest(with_engine(world, engine), write_folder(tmp_path, INTERVIEW))
    assert kinds == ["model.called", "frame.assembled"] * 2


async def test_law_4_ids_are_derived_and_of_two_drivers_one_wins(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, INTERVIEW)
    lines = {"Asker": ["NEXT"], "Planner": ["DONE"]}
    _, once = await drive_to_rest(make_world(ScriptedEngine(lines)), folder)
    _, again = await drive_to_rest(make_world(ScriptedEngine(lines)), folder)
    assert [event.id for event in once] == [event.id for event in again]
    assert len({event.id for event in once}) == len(once)

    world = make_world()
    gate, asked = asyncio.Event(), asyncio.Queue[str]()

    async def slow(task: Task) -> Answer:
        asked.put_nowait(task.key)
        await gate.wait()
        return Answer("NEXT" if task.agent == "Asker" else "DONE")

    run = await begin(with_engine(world, slow), folder)
    no_claims = make_world()  # the log alone must keep two drivers apart
    drivers = [
        make_driver(_unclaimed(with_engine(world, slow), no_claims)),
        make_driver(_unclaimed(with_engine(world, slow), make_world())),
    ]
    first = asyncio.create_task(drivers[0].drive(run))
    await asked.get()
    second = asyncio.create_task(drivers[1].drive(run))
    await asked.get()
    gate.set()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(result) for result in results] == [Conflict, type(None)]
    events = await world.stores.log.read(run)
    assert [event.kind for event in events].count("run.finished") == 1
    assert len({event.id for event in events}) == len(events)


def _unclaimed(world: World, other: World) -> World:
    return replace(world, stores=replace(world.stores, claims=other.stores.claims))


async def test_law_5_a_repeated_request_that_differs_is_a_divergence(tmp_path: Path) -> None:
    """An effect is known by its key and by what exactly was asked for."""
    world = make_world(ping)
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    events = await world.stores.log.read(run)
    loaded = await world.definitions.restore(events[0].data)
    journal = Journal(world.stores.log, world.clock, loaded, fresh(run, loaded.workflow))
    journal.catch_up(events)
    journal.record("t1", TurnStarted(1, "Asker"))
    done: list[str] = []

    async def effect() -> Sequence[Fact]:
        done.append("asked")
        return (ModelAnswered(1, "Asker"),)

    async def lost() -> Sequence[Fact]:
        raise Killed

    with pytest.raises(Killed):
        await journal.once("t1/model", lost, intent=ModelCalled("abc", 1, "Asker", "x"))
    with pytest.raises(Diverged):
        await journal.once("t1/model", effect, intent=ModelCalled("xyz", 1, "Asker", "x"))
    assert not done
    intent = ModelCalled("abc", 1, "Asker", "another engine")
    first = await journal.once("t1/model", effect, intent=intent)
    again = await journal.once("t1/model", effect, intent=intent)
    assert list(first) == list(again) == [ModelAnswered(1, "Asker")]
    assert done == ["asked"]


async def test_law_7_and_9_a_snapshot_is_the_fold_and_can_be_thrown_away(tmp_path: Path) -> None:
    world = make_world(ping)
    run, events = await drive_to_rest(world, write_folder(tmp_path, PING_PONG))
    kept = await world.stores.snapshots.load(run)
    assert kept is not None
    seq, frozen = kept
    assert 1000 <= seq < len(events)
    loaded = await world.definitions.restore(events[0].data)
    whole = fresh(run, loaded.workflow)
    for event in events[:seq]:
        evolve(loaded.workflow, whole, event)
    assert thaw(loaded.workflow, frozen) == whole
    assert freeze(whole) == frozen
    assert thaw(loaded.workflow, b'{"release": 0, "state": {"run": "x"}}') is None
    assert thaw(loaded.workflow, b"garbage") is None


async def test_law_9_a_long_run_is_resumed_from_its_snapshot(tmp_path: Path) -> None:
    world = make_world()
    folder = write_folder(tmp_path, PING_PONG)
    run = await begin(with_engine(world, ping), folder)
    log = CrashingLog(world.stores.log, Fuse(600))
    with pytest.raises(Killed):
        await make_driver(with_log(with_engine(world, ping), log)).drive(run)
    kept = await world.stores.snapshots.load(run)
    assert kept is not None

    class Counting(Spy):
        asked: list[int] = []

        async def read(self, run: str, after: int = 0) -> Sequence[Event]:
            self.asked.append(after)
            return await self.log.read(run, after)

    counting = Counting(world.stores.log)
    await make_driver(with_log(with_engine(world, ping), counting)).drive(run)
    assert counting.asked == [kept[0]]
    kinds = [event.kind for event in await world.stores.log.read(run)]
    assert kinds.count("turn.finished") == 400
    assert kinds.count("run.resumed") == 1


async def test_law_9_bytes_of_a_turn_do_not_grow(tmp_path: Path) -> None:
    """The last turn of many writes as much as an early one, up to the digits of its numbers."""
    world = make_world(ping)
    spy = Spy(world.stores.log)
    run = await begin(world, write_folder(tmp_path, PING_PONG))
    await make_driver(with_log(world, spy)).drive(run)
    encode = codec().encode
    sizes = [sum(len(encode(event)) for event in batch) for batch in spy.batches]
    assert sizes[-2] <= sizes[20] * 1.1


async def test_an_effect_costs_one_append(tmp_path: Path) -> None:
    """What an effect gave, what was decided from it and the next intent are stored together."""
    world = make_world(ping)
    spy = Spy(world.stores.log)
    run = await begin(world, write_folder(tmp_path, PING_PONG))
    await make_driver(with_log(world, spy)).drive(run)
    assert len(spy.batches) == 401 + len(await _snapshots(spy))
    middle = [event.kind for event in spy.batches[10]]
    assert middle[0] == "model.answered" and middle[-1] == "model.called"


async def _snapshots(spy: Spy) -> list[int]:
    """Batches that were stored for a snapshot: they do not end with an intent or the end."""
    ends = ("model.called", "run.finished")
    return [n for n, batch in enumerate(spy.batches) if batch[-1].kind not in ends]


async def test_a_message_and_what_is_derived_from_it_are_one_append(tmp_path: Path) -> None:
    world = make_world(ping)
    spy = Spy(world.stores.log)
    run = await begin(world, write_folder(tmp_path, PING_PONG))
    await make_driver(with_log(world, spy)).drive(run)
    for batch in spy.batches:
        for event in batch:
            if event.kind == "context.changed":
                assert event.cause in [other.seq for other in batch]
                return
    pytest.fail("nothing was derived")


async def test_what_the_run_recorded_rules_over_a_changed_environment(tmp_path: Path) -> None:
    world = make_world(ping, env={"FLAG": "yes"})
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    world.environment.values["ENVIRONMENT"] = "production"
    world.environment.values["FLAG"] = "no"
    await make_driver(world).drive(run)
    frame = next(e for e in await world.stores.log.read(run) if e.kind == "frame.assembled")
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
