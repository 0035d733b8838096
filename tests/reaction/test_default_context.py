"""What an agent on a board sees if it declares nothing costs the same however long a run is."""

from pydantic import BaseModel

from turnloom import Artifact, Loom, Task, artifact_type
from turnloom.assembly.events import ContextGathered, FrameAssembled


@artifact_type(name="context.Note")
class Note(BaseModel):
    n: int


@artifact_type(name="context.Wish")
class Wish(BaseModel):
    pass


async def sizes(app: Loom, notes: int) -> tuple[int, list[FrameAssembled], list[ContextGathered]]:
    """How much the agent is shown beside its input after so many notes, and what is on record."""
    shown: list[int] = []

    async def engine(task: Task) -> str:
        shown.append(len(task.context.items))
        return ""

    board = app.board(f"board{notes}")
    board.register(Note)
    board.agent("reader").consumes(Wish).with_engines(engine)
    await board.publish_many([Note(n=n) for n in range(notes)], correlation_id="c")
    wish: Artifact = await board.publish(Wish(), correlation_id="c")
    await board.run_until_idle()
    events = await app.history.events(wish.run or "")
    frames = [each.data for each in events if isinstance(each.data, FrameAssembled)]
    gathered = [each.data for each in events if isinstance(each.data, ContextGathered)]
    return shown[-1], frames, gathered


async def test_the_newest_are_shown_and_the_frame_says_that_there_are_more() -> None:
    async with Loom(store="memory") as app:
        shown, frames, gathered = await sizes(app, 60)
    assert shown == len(gathered[-1].items) == 50 and gathered[-1].cut
    assert [each.reason for each in frames[-1].withheld] == ["over_limit"]
    assert '"n":59' in (gathered[-1].items[-1].text or "")


async def test_nothing_is_withheld_where_everything_fits() -> None:
    async with Loom(store="memory") as app:
        shown, frames, gathered = await sizes(app, 50)
    assert shown == 50 and not gathered[-1].cut and not frames[-1].withheld
