"""Tenants take turns in a process, and none has more of it than is declared."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, Run, StepContext

SOON = 60.0


class Note(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str = ""


class Entrance:
    """A step that notes whose run enters it, and stays until the doors are open."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.open = asyncio.Event()
        self._changed = asyncio.Condition()

    async def enter(self, state: Note, ctx: StepContext) -> None:
        async with self._changed:
            self.entered.append(ctx["app_id"])
            self._changed.notify_all()
        await self.open.wait()

    async def reached(self, *tenants: str) -> None:
        """Wait until runs of these tenants have entered."""
        async with asyncio.timeout(SOON), self._changed:
            await self._changed.wait_for(lambda: sorted(self.entered) == sorted(tenants))

    async def send(self, app: Loom, tenant: str, times: int = 1) -> list[Run[Any]]:
        flow = Flow("enter", Note).start_with(self.enter)
        return [await app.start(flow, Note(), app_id=tenant) for _ in range(times)]


async def finish(entrance: Entrance, runs: list[Run[Any]]) -> None:
    entrance.open.set()
    async with asyncio.timeout(SOON):
        for run in runs:
            await run.finished()


async def test_the_first_run_of_a_tenant_does_not_wait_for_all_of_another() -> None:
    async with Loom(store="memory", slots=2) as app:
        entrance = Entrance()
        runs = await entrance.send(app, "big", 50)
        await entrance.reached("big", "big")
        runs += await entrance.send(app, "small")
        await finish(entrance, runs)
    assert "small" in entrance.entered[:4] and len(entrance.entered) == 51


async def test_a_tenant_has_no_more_slots_than_are_declared() -> None:
    async with Loom(store="memory", slots=10, tenant_slots=2) as app:
        entrance = Entrance()
        runs = await entrance.send(app, "big", 5)
        runs += await entrance.send(app, "small", 3)
        await entrance.reached("big", "big", "small", "small")
        await finish(entrance, runs)
    assert len(entrance.entered) == 8
