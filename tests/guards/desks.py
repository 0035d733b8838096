"""A desk that hands over to one of several clerks, and worlds to run it in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.folders import write_folder
from tests.support.programs import Program, make_world
from tests.support.world import World
from turnloom import Answer, Engine, Task
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.log.spec import Event

POOL = Pool("local", "Flow", "general")

DESK = {
    "agents.yaml": """
        Desk: {system_message: You are the desk.}
        Ann: {system_message: You are Ann.}
        Bob: {system_message: You are Bob.}
        """,
    "handoffs.yaml": """
        - {source_agent: Desk, target_agent: Ann, handoff_type: after_work}
        - {source_agent: Ann, target_agent: terminate, handoff_type: after_work}
        - {source_agent: Bob, target_agent: terminate, handoff_type: after_work}
        """,
}


def desk(where: Path, said: str = "", files: Mapping[str, str] | None = None) -> str:
    """A folder with a desk and two clerks of whom a guard chooses one; `said` is what is declared
    of that beyond the candidates, line by line."""
    lines = "".join(f"    {line}\n" for line in said.splitlines())
    setup = f"initial_agent: Desk\nguards:\n  selection:\n    candidates: [Ann, Bob]\n{lines}"
    return write_folder(where, {"orchestrator.yaml": setup, **DESK, **(files or {})})


async def fine(task: Task) -> Answer:
    """An engine that always has an answer."""
    return Answer(f"{task.agent} did it.")


async def bob_fails(task: Task) -> Answer:
    """An engine that has one for Ann only."""
    if task.agent == "Bob":
        raise RuntimeError("out of office")
    return Answer("Done.")


async def play(
    folder: str, engine: Engine = fine, world: World | None = None
) -> tuple[World, list[Event]]:
    """A run from its start to where it rests, and its log."""
    world = world or make_world(engine)
    async with Program(world) as program:
        run = await program.start(folder)
        await program.drive(run)
        return world, list(await program.app.history.events(run))


async def known(world: World, pool: Pool = POOL) -> Mapping[str, Belief]:
    """What is known of the clerks."""
    found: Mapping[str, Belief] = await world.store.beliefs.beliefs(pool, ["Ann", "Bob"])
    return found


def only(events: Sequence[Event], kind: str) -> Any:
    """The fact of the one event of a kind."""
    (found,) = [event.data for event in events if event.kind == kind]
    return found


def speakers(events: Sequence[Event]) -> list[str]:
    """Who took turns, in order."""
    return [event.data.agent for event in events if event.kind == "turn.started"]


class Broken:
    """Beliefs that cannot be read or added to."""

    follows_log = False

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        raise self.error

    async def observe(self, observations: Sequence[Observation]) -> None:
        raise self.error

    async def aclose(self) -> None:
        """Nothing is open."""
