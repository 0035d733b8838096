"""A log that refuses what is written: another process has the run, or there is a fault."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.support.boards import Place, begin_process
from tests.support.boards import serving as served
from tests.support.folders import INTERVIEW, write_folder
from tests.support.plays import serving
from tests.support.programs import Program, Refusing, begin, drive, make_world, refitted
from tests.support.world import PATIENCE, World
from turnloom.board.spec import artifact_type
from turnloom.errors import Conflict
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Claims
from turnloom.runtime.spec import Holder
from turnloom.testing import ScriptedEngine


class Usurped:
    """Claims of which another process takes hold as soon as this one lets go."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self.is_taken = True

    def claim(self, run: RunKey) -> AbstractAsyncContextManager[int]:
        return self._claims.claim(run)

    async def held(self, run: RunKey) -> Holder | None:
        return Holder("1") if self.is_taken else None


def refusing() -> World:
    """A world in which the end of a turn cannot be stored."""
    world = make_world(ScriptedEngine({"Asker": ["NEXT"] * 9, "Planner": ["DONE"] * 9}))
    lost = Conflict("Run 'run1' already holds an event 't1/end'.")
    return refitted(world, log=Refusing(world.store.log, "turn.finished", lost))


async def test_a_conflict_that_nobody_else_made_reaches_whoever_waits(tmp_path: Path) -> None:
    async with serving(refusing()) as app:
        run = await app.start(write_folder(tmp_path, INTERVIEW), user_id="u1")
        with pytest.raises(Conflict):
            async for _ in run.events():
                pass


async def test_a_run_that_another_process_took_is_busy(tmp_path: Path) -> None:
    world = refusing()
    claims = Usurped(world.store.claims)
    world = refitted(world, claims=claims)
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    async with Program(world) as program:
        await program.once(run)
    claims.is_taken = False
    with pytest.raises(Conflict):
        await drive(world, run)


@artifact_type
class Part(BaseModel):
    n: int


async def test_a_board_is_told_as_well() -> None:
    place = Place()
    place.store.log = Refusing(place.store.log, "turn.finished", Conflict("lost"))
    process = begin_process(place)
    process.board.agent("take").consumes(Part).with_engines(ScriptedEngine({"take": ["Thanks."]}))
    async with served(process):
        await process.board.publish(Part(n=1))
        with pytest.raises(ExceptionGroup) as raised:
            await process.board.run_until_idle(PATIENCE)
    assert [str(each) for each in raised.value.exceptions] == ["lost"]
