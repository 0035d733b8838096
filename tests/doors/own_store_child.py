"""One life of a program on a store of its own: a run of each form, killed in its call or resumed.

python own_store_child.py FORM FOLDER [crash]
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "snippets" / "own_store"))
from journal_store import JournalStore

from turnloom import Answer, Flow, Loom, StepContext, Task, artifact_type

FORM, FOLDER = sys.argv[1], Path(sys.argv[2])
CRASHES = len(sys.argv) > 3


def note(line: str) -> None:
    with (FOLDER / "calls.txt").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def call(name: str) -> None:
    """The second call of a run is the one in which the first life ends."""
    note(name)
    if CRASHES and name == "second":
        os.kill(os.getpid(), signal.SIGKILL)


@artifact_type(name="life.Order")
class Order(BaseModel):
    item: str = "tea"


@artifact_type(name="life.Parcel")
class Parcel(BaseModel):
    item: str = "tea"


@artifact_type(name="life.Bill")
class Bill(BaseModel):
    item: str = "tea"


class Trip(BaseModel):
    model_config = ConfigDict(frozen=True)

    stops: int = 0


async def engine(task: Task) -> Answer:
    call({"First": "first", "Second": "second"}[task.agent])
    return Answer(output={"item": "tea"}) if FORM == "reaction" else Answer("Done.")


def first(state: Trip, ctx: StepContext) -> dict[str, int]:
    call("first")
    return {"stops": 1}


def second(state: Trip, ctx: StepContext) -> dict[str, int]:
    call("second")
    return {"stops": state.stops + 1}


async def converse(app: Loom, before: list[Any]) -> str:
    folder = FOLDER / "Chat"
    run = await app.resume(before[0].run) if before else await app.start(str(folder))
    return (await run.finished()).kind


async def react(app: Loom, before: list[Any]) -> str:
    board = app.board("shop")
    board.agent("First").consumes(Order).publishes(Parcel).with_engines(engine)
    board.agent("Second").consumes(Parcel).publishes(Bill).with_engines(engine)
    await (board.resume() if before else board.publish(Order()))
    await board.run_until_idle(60)
    return "run.finished"


async def flow(app: Loom, before: list[Any]) -> str:
    trip = Flow("trip", Trip).start_with(first).finally_(second)
    app.register_flow(trip)
    run = await app.resume(before[0].run) if before else await app.start(trip, Trip())
    return (await run.finished()).kind


async def main() -> None:
    store = JournalStore(FOLDER / "store")
    async with Loom(store=store, engine=engine) as app:
        live = {"conversation": converse, "reaction": react, "flow": flow}[FORM]
        print(await live(app, await app.runs()))
    await store.aclose()


asyncio.run(main())
