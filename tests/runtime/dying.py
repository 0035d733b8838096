"""A process that is killed or stopped at an await. Run as: dying.py FORM OPERATION AWAIT SIGNAL."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.flow.scenes import Step, Work
from tests.reaction.scenes import Order, Parcel
from tests.support.folders import write_folder
from tests.support.interruptions import Counted, until_asked
from tests.support.plays import call, lines, solo
from turnloom import Answer, Board, Flow, Loom, Run, StepContext, Task, ToolCall, TurnloomError
from turnloom import use_ui_tool as ask

# Seconds for which a process that is stopped keeps its run.
LEASE = 0.3

TOOLS = """
    import os
    from pathlib import Path
    from turnloom import use_ui_tool

    def _write(name):
        with (Path(__file__).parents[1] / "effects").open("a") as effects:
            effects.write(f"{name} {os.getpid()}\\n")

    async def draft():
        _write("draft")

    async def plan(context_variables):
        return await use_ui_tool("plan", {"title": "Mine"})

    async def pay():
        _write("pay")
    """


def effect(name: str, file: Path) -> Step:
    """A step that writes into a file that it was taken, and by which process."""

    async def step(state: Work, ctx: StepContext) -> dict[str, Any]:
        note(name, file)
        await asyncio.sleep(0)
        return {"notes": [name]}

    step.__name__ = name
    return step


def note(name: str, file: Path) -> None:
    """Write into a file that an effect was done, and by which process."""
    with file.open("a") as effects:
        effects.write(f"{name} {os.getpid()}\n")


def flow(folder: Path) -> Flow[Work]:
    """A flow of four effects, with a question in the middle."""
    draft, check, pay, send = (
        effect(name, folder / "effects") for name in ("draft", "check", "pay", "send")
    )
    work = Flow("work", Work).start_with(draft).then(check)
    return work.await_approval("local").then(pay).finally_(send)


def shop(app: Loom, folder: Path) -> Board:
    """A board with an agent of two effects, and a question between them."""

    async def draft() -> None:
        """Draft it."""
        note("draft", folder / "effects")

    async def confirm() -> Any:
        """Ask whether it may go."""
        return await ask("confirm", {"item": "tea"})

    async def pay() -> None:
        """Pay for it."""
        note("pay", folder / "effects")

    async def answer(task: Task) -> Any:
        calls = ("draft", "confirm", "pay")
        if len(task.exchanges) < len(calls):
            return Answer(calls=(ToolCall(calls[len(task.exchanges)], {}),))
        return Parcel(item="tea")

    board = app.board("shop")
    clerk = board.agent("clerk").consumes(Order).publishes(Parcel)
    clerk.with_tools(draft, confirm, pay).with_engines(answer)
    return board


class Play:
    """Runs of one form in a folder, each with effects and a question between them."""

    def __init__(self, form: str, folder: Path, **settings: Any) -> None:
        self._form = form
        self._folder = folder
        self.app = Loom(store=folder / "runs.db", **settings)
        if form == "flow":
            self.app.register_flow(flow(folder))
        if form == "board":
            self._board = shop(self.app, folder)

    async def begin(self) -> Run[Any]:
        """Begin a run."""
        if self._form == "flow":
            return await self.app.start(flow(self._folder))
        if self._form == "conversation":
            return await self.app.start(self._talk())
        order = await self._board.publish(Order(item="tea"))
        return self.app.handle(order.run or "")

    def _talk(self) -> str:
        asked = {"function": "plan", "tool_type": "UI_Tool"}
        script = lines(call("draft"), call("plan"), call("pay"), "Done.")
        files = solo(TOOLS, "draft", asked, "pay", script=script)
        folder = self._folder / "Flow"
        return str(folder) if folder.exists() else write_folder(self._folder, files)

    async def resume(self) -> Run[Any] | None:
        """Continue what is there; of one run, its handle."""
        found = await self.app.runs()
        if self._form == "board":
            await self._board.resume()
        else:
            for each in found:
                await self.app.resume(each.run)
        return self.app.handle(found[0].run) if found else None

    async def cancel(self, run: Run[Any]) -> None:
        """End a run."""
        if self._form == "board":
            await self._board.cancel(run.id)
        else:
            await run.cancel()


async def start(play: Play) -> None:
    """Begin a run, and drive it until it asks."""
    await until_asked(await play.begin())


async def resume(play: Play) -> Run[Any]:
    """Continue the run that is there."""
    run = await play.resume()
    assert run is not None
    return run


async def answer(play: Play) -> None:
    """Continue the run with an answer, up to its end."""
    run = await resume(play)
    await run.answer(None, "approve")
    await run.finished()


async def cancel(play: Play) -> None:
    """End the run that is there."""
    run = await resume(play)
    await play.cancel(run)
    await run.finished()


async def close(play: Play) -> None:
    """Close the app while it drives a run."""
    await play.begin()
    await play.app.aclose()


OPERATIONS: dict[str, Callable[[Play], Coroutine[Any, Any, Any]]] = {
    "start": start,
    "resume": resume,
    "answer": answer,
    "cancel": cancel,
    "close": close,
}


def signal_at(await_: int, number: int) -> None:
    """Send this process a signal when its tasks wait for the n-th time, all of them counted."""
    left = await_

    def count(_: int) -> None:
        nonlocal left
        if left == 0:
            print("now", flush=True)
            os.kill(os.getpid(), number)
        left -= 1

    async def counted(operation: Coroutine[Any, Any, Any]) -> Any:
        return await Counted(operation, count)

    def make(loop: asyncio.AbstractEventLoop, operation: Any, **more: Any) -> asyncio.Task[Any]:
        return asyncio.Task(counted(operation), loop=loop, **more)

    asyncio.get_running_loop().set_task_factory(make)


async def main(form: str, operation: str, await_: str, name: str) -> None:
    """Do the operation, and close the app."""
    play = Play(form, Path.cwd(), lease=LEASE)
    signal_at(int(await_), signal.Signals[name])

    async def act() -> None:
        async with play.app:
            await OPERATIONS[operation](play)

    await asyncio.create_task(act())


if __name__ == "__main__":
    from tests.runtime import dying  # boards name their functions by their module

    try:
        asyncio.run(dying.main(*sys.argv[1:]))
    except TurnloomError as error:
        sys.exit(f"{type(error).__name__}: {error}")
