"""A log that refuses what is written: another process has the run, or there is a fault."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.folders import INTERVIEW, write_folder
from tests.support.plays import serving
from tests.support.worlds import Refusing, begin, make_driver, make_world, with_log
from weft.errors import Conflict, RunBusy
from weft.runtime.ports import Claims
from weft.runtime.service.runs import World
from weft.testing import ScriptedEngine

SOON = 5.0


class Usurped:
    """Claims of which another process takes hold as soon as this one lets go."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self.is_held = True

    def claim(self, run: str) -> AbstractAsyncContextManager[None]:
        return self._claims.claim(run)

    async def held(self, run: str) -> bool:
        return self.is_held


def refusing() -> World:
    """A world in which the end of a turn cannot be stored."""
    world = make_world(ScriptedEngine({"Asker": ["NEXT"] * 9, "Planner": ["DONE"] * 9}))
    lost = Conflict("Run 'run1' already holds an event 't1/end'.")
    return with_log(world, Refusing(world.stores.log, "turn.finished", lost))


async def test_a_conflict_that_nobody_else_made_reaches_whoever_waits(tmp_path: Path) -> None:
    async with serving(refusing()) as runs, asyncio.timeout(SOON):
        run = await runs.start(write_folder(tmp_path, INTERVIEW), user="u1", tenant="acme")
        with pytest.raises(Conflict, match="already holds an event 't1/end'"):
            async for _ in runs.events(run):
                pass


async def test_a_run_that_another_process_took_is_busy(tmp_path: Path) -> None:
    world = refusing()
    claims = Usurped(world.stores.claims)
    world = replace(world, stores=replace(world.stores, claims=claims))
    run = await begin(world, write_folder(tmp_path, INTERVIEW))
    with pytest.raises(RunBusy, match="goes on in another process"):
        await make_driver(world).drive(run)
    claims.is_held = False
    with pytest.raises(Conflict):
        await make_driver(world).drive(run)
