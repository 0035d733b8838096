"""A process that is killed or stopped at an await. Run as: dying.py OPERATION AWAIT SIGNAL."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.flow.scenes import Step, Work
from tests.support.interruptions import Counted, until_asked
from turnloom import Flow, Loom, Run, StepContext, TurnloomError

# Seconds for which a process that is stopped keeps its run.
LEASE = 0.3


def effect(name: str, file: Path) -> Step:
    """A step that writes into a file that it was taken, and by which process."""

    async def step(state: Work, ctx: StepContext) -> dict[str, Any]:
        with file.open("a") as effects:
            effects.write(f"{name} {os.getpid()}\n")
        await asyncio.sleep(0)
        return {"notes": [name]}

    step.__name__ = name
    return step


def flow(folder: Path) -> Flow[Work]:
    """A flow of four effects, with a question in the middle."""
    draft, check, pay, send = (
        effect(name, folder / "effects") for name in ("draft", "check", "pay", "send")
    )
    work = Flow("work", Work).start_with(draft).then(check)
    return work.await_approval("local").then(pay).finally_(send)


async def start(app: Loom) -> None:
    """Begin a run, and drive it until it asks."""
    await until_asked(await app.start(flow(Path.cwd())))


async def resume(app: Loom) -> Run[Any]:
    """Continue the run that is there."""
    (run,) = await app.runs()
    return await app.resume(run.run)


async def answer(app: Loom) -> None:
    """Continue the run with an answer, up to its end."""
    run = await resume(app)
    await run.answer(None, "approve")
    await run.finished()


async def cancel(app: Loom) -> None:
    """End the run that is there."""
    run = await resume(app)
    await run.cancel()
    await run.finished()


async def close(app: Loom) -> None:
    """Close the app while it drives a run."""
    await app.start(flow(Path.cwd()))
    await app.aclose()


OPERATIONS: dict[str, Callable[[Loom], Coroutine[Any, Any, Any]]] = {
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


async def main(operation: str, await_: str, name: str) -> None:
    """Do the operation, and close the app."""
    app = Loom(store=Path("runs.db"), lease=LEASE)
    app.register_flow(flow(Path.cwd()))
    signal_at(int(await_), signal.Signals[name])

    async def act() -> None:
        async with app:
            await OPERATIONS[operation](app)

    await asyncio.create_task(act())


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except TurnloomError as error:
        sys.exit(f"{type(error).__name__}: {error}")
