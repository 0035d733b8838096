"""What is kept of a long run is a shortcut: with it or without it, the run goes on the same way."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.folders import as_json, write_folder
from tests.support.logs import essence
from tests.support.plays import every
from tests.support.programs import Program, begin, make_world, mortal, refitted
from tests.support.world import PATIENCE, World
from turnloom import Answer, Event, Loom, Task, artifact_type
from turnloom.log.spec import RunKey
from turnloom.testing import FakeClock, Fuse, Killed

pytestmark = pytest.mark.repeats

# Two agents in turn, and of everything that a run knows something that matters in the end: values,
# counts, a timer, an object, what was said, what guards saw and what was used.
LONG = {
    "orchestrator.yaml": """
        initial_agent: A
        max_turns: 400
        guards:
          budget: {model_calls: 230}
          loop_detection: {window: 2, similarity: null, max_resets: 9}
        """,
    "agents.yaml": "{A: {system_message: You are A.}, B: {system_message: You are B.}}",
    "context_variables.yaml": """
        definitions:
          seen: {type: string, source: {type: derived, triggers: [
            {type: agent_text, agent: A, match: {regex: '(ping 20)$'}, capture: 1}]}}
          often: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_turn_count, agent: A, count: 105}]}}
          late: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: timer_expired, after: PT1H, since: 'variable:seen'}]}}
        agents: {A: {variables: [seen, often, late]}, B: {variables: [seen, often, late]}}
        """,
    "handoffs.yaml": """
        - {source_agent: A, target_agent: B, handoff_type: after_work}
        - {source_agent: B, target_agent: A, handoff_type: after_work}
        """,
    "tools.yaml": """
        lifecycle_tools:
        - {trigger: before_chat, agent: null, file: h.py, function: begin}
        - {trigger: after_chat, agent: null, file: h.py, function: end, on: always}
        """,
    "h.py": """
        from tests.support import stage
        def begin(context_variables):
            context_variables["pool"] = stage.Pool("pool")
            context_variables["count"] = 7
        def end(context_variables):
            return [context_variables["pool"].name, context_variables["count"]]
        """,
}


class Player:
    """An engine that gets stuck for a while, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def __call__(self, task: Task) -> Answer:
        self.told.append(task.prompt)
        return Answer("stuck" if 60 <= task.number < 63 else f"ping {task.number}")


async def killed(where: Path) -> tuple[World, str]:
    """A run that was killed some turns after its state was kept."""
    world = make_world(Player())
    run = await begin(world, write_folder(where, as_json(LONG)))
    with pytest.raises(Killed):
        async with mortal(world, Fuse(4 * 190)) as program:
            await program.drive(run)
    return world, run


async def resumed(world: World, run: str, kept: tuple[int, bytes] | None) -> tuple[Any, list[str]]:
    """How a copy of a run goes on that has this kept, and what its engine was told."""
    copy = World(engine=Player(), clock=FakeClock(world.clock.time + timedelta(hours=2)))
    await copy.store.log.append(RunKey("local", run), await world.read(run), 0)
    if kept:
        await copy.store.snapshots.save(RunKey("local", run), *kept)
    async with Program(copy) as program:
        await program.drive(run)
    return await copy.read(run), copy.engine.told


async def test_a_run_goes_on_from_what_is_kept_as_from_its_beginning(tmp_path: Path) -> None:
    world, run = await killed(tmp_path)
    kept = await world.store.snapshots.load(RunKey("local", run))
    assert kept is not None and 1000 <= kept[0] < len(await world.read(run))
    events, told = await resumed(world, run, kept)
    whole, retold = await resumed(world, run, None)
    assert essence(events) == essence(whole)
    assert told == retold
    changed = {each.name: each.value for each in every(events, "context.changed")}
    assert (changed["seen"], changed["often"], changed["late"]) == ("ping 20", True, True)
    assert every(events, "loop.detected")
    assert every(events, "lifecycle.tool_result")[-1].result == ["pool", 7]
    assert events[-1].data.error == "budget exceeded"


@pytest.mark.parametrize("text", [b"garbage", b'{"release": 0, "state": {"run": "x"}}'])
async def test_what_cannot_be_read_is_not_used(text: bytes, tmp_path: Path) -> None:
    world, run = await killed(tmp_path)
    kept = await world.store.snapshots.load(RunKey("local", run))
    assert kept is not None
    events, _ = await resumed(world, run, (kept[0], text))
    assert every(events, "turn.finished")[-1].turn == 231


async def test_only_what_is_not_kept_is_read(tmp_path: Path) -> None:
    world, run = await killed(tmp_path)
    kept = await world.store.snapshots.load(RunKey("local", run))
    assert kept is not None

    class Counting:
        asked: list[int] = []

        async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
            self.asked.append(after)
            return await world.store.log.read(run, after)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.store.log, name)

    counting = Counting()
    async with Program(refitted(world, log=counting)) as program:
        await program.once(run)
    assert counting.asked == [kept[0]]
    kinds = [event.kind for event in await world.read(run)]
    assert kinds.count("turn.finished") == 231
    assert kinds.count("run.resumed") == 1


@artifact_type
class Item(BaseModel):
    n: int


async def test_a_board_knows_what_failed_before_its_state_was_kept() -> None:
    """A turn of a long run fails; another program has it taken again."""
    world, broken = World(), True

    async def take(task: Task) -> Answer:
        if broken and task.inputs[0].payload["n"] == 0:
            raise RuntimeError("not yet")
        return Answer("Taken.")

    def board(app: Loom) -> Any:
        made = app.board()
        made.agent("take").consumes(Item).with_engines(take)
        return made

    async with world.app() as app:
        first = board(app)
        for n in range(150):
            await first.publish(Item(n=n), correlation_id="c", id=f"i{n}")
        await first.run_until_idle(PATIENCE, raise_errors=False)
        (run,) = await app.runs()
    assert await world.store.snapshots.load(RunKey("local", run.run)) is not None
    broken = False
    async with world.app() as app:
        again = board(app)
        await again.resume()
        assert await again.retry("i0", "take") == 1
        await again.run_until_idle(PATIENCE)
        finished = every(await app.history.events(run.run), "turn.finished")
    assert [each.status for each in finished if each.turn in (1, 151)] == ["failed", "done"]
