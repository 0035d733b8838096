"""Runs over several lives of a process, each killed somewhere, the last one not."""

from typing import Any

from tests.support import stage
from tests.support.plays import Person, attend
from tests.support.programs import begin, make_world, mortal
from turnloom.log.spec import Event
from turnloom.testing import Fuse, Killed


class Lives:
    """One run; `keys` has the key of every call of a tool or hook that told the stage of it, and
    `passed` is how many points the last life passed."""

    def __init__(
        self,
        folder: str,
        person: Person,
        store: Any = None,
        collections: dict[type, Any] | None = None,
    ) -> None:
        self.passed = 0
        self.keys: list[str] = []
        self._folder = folder
        self._person = person
        self._world = make_world(store=store, collections=collections or {})

    async def live(self, *kills: int) -> list[Event]:
        """The log of the run after as many lives; each ends when its fuse is burnt."""
        stage.watch(self._world.store.log, self.keys)
        run = await begin(self._world, self._folder)
        for points in kills:
            try:
                await self._life(run, Fuse(points))
            except Killed:
                continue
        fuse = Fuse()
        events = await self._life(run, fuse)
        self.passed = fuse.passed
        return events

    async def _life(self, run: str, fuse: Fuse) -> list[Event]:
        async with mortal(self._world, fuse) as program:
            return await attend(program, run, self._person)
