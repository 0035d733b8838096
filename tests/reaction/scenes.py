"""Boards as tests have them: a shop and engines that note what they are given."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from turnloom import Board, Loom
from turnloom.agents.spec import Task
from turnloom.board.spec import Artifact, FilterConfig, Reader, artifact_type
from turnloom.log.spec import Event

# Seconds within which everything that a test waits for happens, however busy the machine is.
SOON = 60.0
MINUTE = timedelta(minutes=1)


@artifact_type(name="shop.Order")
class Order(BaseModel):
    """What most agents here wait for."""

    item: str = "tea"
    number: int = 0


@artifact_type(name="shop.Payment")
class Payment(BaseModel):
    """What belongs to an order."""

    item: str = "tea"
    amount: int = 0


@artifact_type(name="shop.Parcel")
class Parcel(BaseModel):
    """What most agents here make."""

    item: str = "tea"
    notes: str = ""


@artifact_type(name="shop.Receipt")
class Receipt(BaseModel):
    """What somebody else makes of it."""

    total: int = 0


class Clerk:
    """An engine that notes its tasks, and gives what `make` makes of each; `held`, it answers when
    it is released."""

    def __init__(
        self, make: Callable[[Task], Any] = lambda task: None, *, held: bool = False
    ) -> None:
        self.tasks: list[Task] = []
        self.release = asyncio.Event()
        self._make = make
        if not held:
            self.release.set()

    async def __call__(self, task: Task) -> Any:
        """What is to be said to a task."""
        self.tasks.append(task)
        await self.release.wait()
        return self._make(task)

    @property
    def given(self) -> list[list[Any]]:
        """What the inputs were about, task by task."""
        return [[each.payload["item"] for each in task.inputs] for task in self.tasks]

    @property
    def seen(self) -> list[list[Any]]:
        """What the items of context were about, task by task."""
        return [[each["payload"]["item"] for each in task.context.items] for task in self.tasks]


def pack(task: Task) -> Parcel:
    """A parcel with what the first input is about."""
    return Parcel(item=str(task.inputs[0].payload["item"]))


def fail(task: Task) -> Any:
    """Nothing at all."""
    raise RuntimeError("out of stock")


class Once:
    """Fails the first time and packs from then on."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, task: Task) -> Parcel:
        """A parcel, but not at once."""
        self.calls += 1
        return fail(task) if self.calls == 1 else pack(task)


class Gate:
    """An engine that lets nobody through before it is opened; how many stood there at most."""

    def __init__(self) -> None:
        self.waiting = self.most = self.passed = 0
        self._opened, self._changed = asyncio.Event(), asyncio.Event()

    async def __call__(self, task: Task) -> Parcel:
        """A parcel, once the gate is open."""
        self._stand(1)
        try:
            await self._opened.wait()
            await asyncio.sleep(0)  # whoever may stand beside this one gets that far
        finally:
            self._stand(-1)
        self.passed += 1
        return pack(task)

    def _stand(self, more: int) -> None:
        self.waiting += more
        self.most = max(self.most, self.waiting)
        self._changed.set()

    def open(self) -> None:
        """Let everybody through."""
        self._opened.set()

    async def holds(self, number: int) -> None:
        """Wait until so many stand there."""
        async with asyncio.timeout(SOON):
            while self.waiting != number:
                self._changed.clear()
                await self._changed.wait()


async def idle(board: Board) -> None:
    """Wait until nothing goes on, and nothing failed."""
    assert await board.run_until_idle(SOON) is None


async def failures(board: Board) -> list[str]:
    """What failed by the time that nothing goes on."""
    group = await board.run_until_idle(SOON, raise_errors=False)
    return [] if group is None else [str(each) for each in group.exceptions]


async def everything(board: Board, *types: str, reader: Reader | None = None) -> list[Artifact]:
    """What is on a board, of some types or of all."""
    filter = FilterConfig(types=set(types)) if types else FilterConfig()
    items, _ = await (board.read_as(reader) if reader else board).query_artifacts(filter)
    return list(items)


async def logs(app: Loom) -> list[Event]:
    """Every event of every run, the run begun first coming first."""
    runs = [summary.run for summary in await app.runs()]
    return [event for run in reversed(runs) for event in await app.history.events(run)]


async def facts(app: Loom, kind: str, run: str | None = None) -> list[Any]:
    """The facts of a kind, of all runs or of one."""
    events: Sequence[Event] = await app.history.events(run) if run else await logs(app)
    return [event.data for event in events if event.kind == kind]


async def verdicts(app: Loom, artifact: Artifact) -> dict[str, tuple[str, str]]:
    """What each subscription made of an artifact, here or where it is collected."""
    return {
        each.subscription: (each.verdict, each.detail)
        for offered in await facts(app, "artifact.offered")
        if offered.artifact == artifact.id
        for each in offered.to
        if each.verdict != "forwarded"
    }


async def statuses(app: Loom) -> list[str]:
    """How the runs stand, the one begun first coming first."""
    return [summary.status for summary in reversed(await app.runs())]
