"""Control operations interrupted at every await: nothing hangs, and no claim is left."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.flow.scenes import Work, note
from tests.support.folders import write_folder
from tests.support.plays import call, lines, solo
from tests.support.world import PATIENCE
from turnloom import Flow, Loom, Run, UsageError
from turnloom.adapters.memory import MemoryStore
from turnloom.ports import codec

ASK = """
    from turnloom import use_ui_tool

    async def plan(context_variables):
        return await use_ui_tool("plan", {"title": "Mine"})
    """
TOOL = {"function": "plan", "tool_type": "UI_Tool"}
FLOW = Flow("work", Work).start_with(note("draft")).await_approval("local").finally_(note("paid"))


class Interrupted:
    """An operation whose task is cancelled when it waits for the n-th time."""

    def __init__(self, operation: Coroutine[Any, Any, Any], n: int) -> None:
        self._operation = operation
        self._left = n

    def __await__(self) -> Generator[Any, Any, Any]:
        waiting, trouble = self._operation.__await__(), None
        while True:
            try:
                future = waiting.send(None) if trouble is None else waiting.throw(trouble)
            except StopIteration as end:
                return end.value
            if self._left == 0:
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
            self._left -= 1
            trouble = None
            try:
                yield future
            except BaseException as error:  # noqa: BLE001 - thrown into the operation
                trouble = error

    @property
    def was_through(self) -> bool:
        """Whether it ended before it was to be interrupted."""
        return self._left >= 0


async def interrupt(operation: Coroutine[Any, Any, Any], n: int) -> bool:
    """Interrupt an operation at its n-th await; whether it was through before."""
    cut = Interrupted(operation, n)

    async def act() -> None:
        await cut

    task = asyncio.create_task(act())
    done, _ = await asyncio.wait({task}, timeout=PATIENCE)
    assert done, f"it hangs when interrupted at await {n}"
    assert task.cancelled() or task.exception() is None
    return cut.was_through


class Scene:
    """A run on a store, that is started, waits, and is taken up by another app."""

    def __init__(self, kind: str, form: str, where: Path) -> None:
        self._store: Any = MemoryStore(codec()) if kind == "memory" else where / "runs.db"
        self._what: Any = FLOW
        if form == "conversation":
            files = solo(ASK, TOOL, script=lines(call("plan"), "Done."))
            self._what = write_folder(where / "folder", files)

    def open(self) -> Loom:
        app = Loom(store=self._store)
        app.register_flow(FLOW)
        return app

    def start(self, app: Loom) -> Coroutine[Any, Any, Run[Any]]:
        return app.start(self._what)

    async def waiting(self, app: Loom) -> Run[Any]:
        run = await self.start(app)
        await until_asked(run)
        return run

    async def take_up(self) -> None:
        """Take every run up in another app, and bring it to its end."""
        async with self.open() as app, asyncio.timeout(PATIENCE):
            for each in await app.runs():
                run = await app.resume(each.run)
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


async def resumed(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    async with scene.open() as first:
        run = await scene.waiting(first)
    return app.resume(run.id)


async def started(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    return scene.start(app)


async def answered(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    return (await scene.waiting(app)).answer(None, "approve")


async def cancelled(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    return (await scene.waiting(app)).cancel()


async def closed(scene: Scene, app: Loom) -> Coroutine[Any, Any, Any]:
    await scene.start(app)
    return app.aclose()


OPERATIONS: dict[str, Callable[[Scene, Loom], Coroutine[Any, Any, Any]]] = {
    "start": started,
    "resume": resumed,
    "answer": answered,
    "cancel": cancelled,
    "close": closed,
}


async def sweep(kind: str, form: str, operation: str, where: Path, awaits: range) -> bool:
    """Interrupt an operation at some of its awaits; whether it was through before the last."""
    for n in awaits:
        place = where / f"{operation}{n}"
        place.mkdir()
        scene = Scene(kind, form, place)
        app = scene.open()
        is_through = await interrupt(await OPERATIONS[operation](scene, app), n)
        async with asyncio.timeout(PATIENCE):
            await app.aclose()
        await scene.take_up()
        if is_through:
            return True
    return False


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_that_is_interrupted_leaves_a_run_to_others(
    operation: str, tmp_path: Path
) -> None:
    await sweep("sqlite", "flow", operation, tmp_path, range(0, 4, 2))


@pytest.mark.doors
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", ["flow", "conversation"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_operations_interrupted_at_every_await(
    kind: str, form: str, operation: str, tmp_path: Path
) -> None:
    assert await sweep(kind, form, operation, tmp_path, range(200))
