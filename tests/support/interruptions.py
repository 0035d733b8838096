"""Control operations of runs in all three forms, and what interrupts them at an await."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.flow.scenes import Work, note
from tests.reaction.scenes import Order, Parcel
from tests.support.folders import write_folder
from tests.support.plays import call, lines, solo
from tests.support.world import PATIENCE
from turnloom import Answer, Board, Flow, Loom, Run, Task, ToolCall, UsageError, use_ui_tool
from turnloom.adapters.memory import MemoryStore
from turnloom.ports import codec

ASK = """
    from turnloom import use_ui_tool

    async def plan(context_variables):
        return await use_ui_tool("plan", {"title": "Mine"})
    """
TOOL = {"function": "plan", "tool_type": "UI_Tool"}
FLOW = Flow("work", Work).start_with(note("draft")).await_approval("local").finally_(note("paid"))


class Counted:
    """An operation that calls `at` whenever it waits, with how often it has waited before."""

    def __init__(self, operation: Coroutine[Any, Any, Any], at: Callable[[int], None]) -> None:
        self._operation = operation
        self._at = at
        self.awaits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        waiting, trouble = self._operation.__await__(), None
        while True:
            try:
                future = waiting.send(None) if trouble is None else waiting.throw(trouble)
            except StopIteration as end:
                return end.value
            self._at(self.awaits)
            self.awaits += 1
            trouble = None
            try:
                yield future
            except BaseException as error:  # noqa: BLE001 - thrown into the operation
                trouble = error


async def interrupt(operation: Coroutine[Any, Any, Any], *awaits: int) -> bool:
    """Cancel an operation at these awaits, in ascending order; whether it ended before the first.

    A later one interrupts what the operation does because of the first; the same one again cancels
    it twice at once.
    """

    def cancel(n: int) -> None:
        for _ in range(awaits.count(n)):
            asyncio.get_running_loop().call_soon(task.cancel)

    counted = Counted(operation, cancel)

    async def act() -> None:
        await counted

    task = asyncio.create_task(act())
    done, _ = await asyncio.wait({task}, timeout=PATIENCE)
    assert done, f"it hangs when interrupted at {awaits}"
    assert task.cancelled() or task.exception() is None
    return counted.awaits <= awaits[0]


async def confirm(item: str) -> Any:
    """Ask whether an item may go."""
    return await use_ui_tool("confirm", {"item": item})


async def pack(task: Task) -> Any:
    """Ask, then pack what was ordered."""
    if not task.exchanges:
        return Answer(calls=(ToolCall("confirm", {"item": "tea"}),))
    return Parcel(item="tea")


class Scene:
    """A run on a store, that is started, waits, and is taken up by another app."""

    def __init__(self, kind: str, form: str, where: Path) -> None:
        self._store: Any = MemoryStore(codec()) if kind == "memory" else where / "runs.db"
        self._what: Any = FLOW
        self._form = form
        self._boards: dict[Loom, Board] = {}
        if form == "conversation":
            files = solo(ASK, TOOL, script=lines(call("plan"), "Done."))
            self._what = write_folder(where / "folder", files)

    def open(self) -> Loom:
        """An app that knows the flow or the board."""
        app = Loom(store=self._store)
        app.register_flow(FLOW)
        if self._form == "board":
            board = self._boards[app] = app.board("shop")
            clerk = board.agent("clerk").consumes(Order).publishes(Parcel)
            clerk.with_tools(confirm).with_engines(pack)
        return app

    async def start(self, app: Loom) -> Run[Any]:
        """Begin the run."""
        if self._form != "board":
            return await app.start(self._what)
        order = await self._boards[app].publish(Order(item="tea"))
        return app.handle(order.run or "")

    async def resume(self, app: Loom) -> None:
        """Continue every run of the store."""
        if self._form == "board":
            await self._boards[app].resume()
            return
        for each in await app.runs():
            await app.resume(each.run)

    async def cancel(self, app: Loom, run: Run[Any]) -> None:
        """End the run."""
        if self._form == "board":
            await self._boards[app].cancel(run.id)
        else:
            await run.cancel()

    async def waiting(self, app: Loom) -> Run[Any]:
        """Begin the run, and wait until it asks."""
        run = await self.start(app)
        await until_asked(run)
        return run

    async def take_up(self) -> None:
        """Take every run up in another app, and bring it to its end."""
        async with self.open() as app, asyncio.timeout(PATIENCE):
            await self.resume(app)
            for each in await app.runs():
                run = app.handle(each.run)
                if await until_asked(run):
                    with suppress(UsageError):  # it was told to end before
                        await run.answer(None, "approve")
                assert (await run.finished()).kind in ("run.finished", "run.cancelled")


async def until_asked(run: Run[Any]) -> bool:
    """Wait until a run waits for an answer; whether it does, and did not end."""
    async with asyncio.timeout(PATIENCE):
        async for event in run.events():
            if event.kind == "run.paused" and await run.question() is not None:
                return True
    return False


async def started(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    """Starting a run, or publishing what begins one."""
    return scene.start(app)


async def resumed(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    """Resuming a run that another app left."""
    async with scene.open() as first:
        await scene.waiting(first)
    return scene.resume(app)


async def answered(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    """Answering a question."""
    return (await scene.waiting(app)).answer(None, "approve")


async def cancelled(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    """Cancelling a run that waits."""
    return scene.cancel(app, await scene.waiting(app))


async def closed(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    """Closing an app that drives a run."""
    await scene.start(app)
    return app.aclose()


OPERATIONS: dict[str, Callable[[Scene, Loom], Coroutine[Any, Any, Any]]] = {
    "start": started,
    "resume": resumed,
    "answer": answered,
    "cancel": cancelled,
    "close": closed,
}


async def sweep(
    scene: Callable[[Path], Scene], operation: str, where: Path, cuts: Sequence[Sequence[int]]
) -> bool:
    """Interrupt an operation at each of these groups of awaits; whether it was through before the
    last of them."""
    for number, awaits in enumerate(cuts):
        place = where / f"{operation}{number}"
        place.mkdir()
        played = scene(place)
        app = played.open()
        is_through = await interrupt(await OPERATIONS[operation](played, app), *awaits)
        async with asyncio.timeout(PATIENCE):
            await app.aclose()
        await played.take_up()
        if is_through:
            return True
    return False
