"""One small run of each form, for what holds in all of them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tests.support.folders import write_folder
from tests.support.world import PATIENCE
from turnloom import AgentStep, Answer, AssembledContext, Event, Flow, Loom, Task, artifact_type

FILES = {"agents.yaml": "Clerk: {system_message: Be brief.}\n"}


@artifact_type(name="doors.Order")
class Order(BaseModel):
    """Something on a board."""

    item: str = "tea"


class Note(BaseModel):
    """The state of a flow."""

    model_config = ConfigDict(frozen=True)

    text: str = ""


class Write(AgentStep[Note]):
    """A step that an agent takes."""

    def user_prompt(self, state: Note) -> str:
        return "Write."

    def apply(self, state: Note, answer: str, context: AssembledContext) -> dict[str, str]:
        return {"text": answer}


async def answer(task: Task) -> Answer:
    """The engine of all agents here."""
    return Answer("Done.")


async def converse(app: Loom, folder: Path) -> str:
    """A run of a workflow folder, to its end."""
    run = await app.start(write_folder(folder, FILES), user_id="ann", app_id="acme")
    await run.finished()
    return run.id


async def react(app: Loom, folder: Path) -> str:
    """A run of a board, to its end."""
    board = app.board("shop", user_id="ann", app_id="acme")
    board.agent("clerk").consumes(Order)
    order = await board.publish(Order())
    await board.run_until_idle(PATIENCE)
    assert order.run is not None
    return order.run


async def flow(app: Loom, folder: Path) -> str:
    """A run of a flow, to its end."""
    steps = Flow("write", Note).start_with(Write)
    run = await app.start(steps, Note(), user_id="ann", app_id="acme")
    await run.outcome()
    return run.id


async def stored(app: Loom, run: str) -> list[Event]:
    """What is stored of a run of these."""
    return list(await app.history.events(run, app_id="acme"))


FORMS: dict[str, Callable[[Loom, Path], Awaitable[str]]] = {
    "conversation": converse,
    "reaction": react,
    "flow": flow,
}
