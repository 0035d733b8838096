"""Edits of boards: where a backtest is certain, the edited board really does the same."""

from collections.abc import Callable
from typing import Any

import pytest
from anyio import to_thread
from pydantic import BaseModel

from tests.backtest.truth import backtested, lies
from turnloom import Board, ContextRequest, ContextSlice, Event, Loom, Task, artifact_type
from turnloom.adapters.memory import MemoryStore
from turnloom.app.board import loaded_board
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import FakeClock, FakeEntropy


@artifact_type
class Letter(BaseModel):
    text: str


@artifact_type
class Complaint(BaseModel):
    about: str
    urgent: bool = False


@artifact_type
class Reply(BaseModel):
    text: str


@artifact_type
class Note(BaseModel):
    text: str


async def sort(task: Task) -> Complaint:
    text = task.inputs[0].payload["text"]
    return Complaint(about=text, urgent="today" in text)


async def apologise(task: Task) -> Reply:
    return Reply(text=f"Sorry! {task.inputs[0].payload['about']}")


async def note(task: Task) -> Note:
    return Note(text="noted")


def declare(
    board: Board,
    *,
    where: Callable[[Any], bool] = lambda it: it.urgent,
    says: str = "Answers complaints.",
    tags: Any = (),
    notes: type[BaseModel] | None = Complaint,
    clerk: bool = True,
    provider: Any = None,
) -> None:
    board.agent("sorter").consumes(Letter).publishes(Complaint).with_engines(sort)
    if notes is not None:
        board.agent("noter").consumes(notes).publishes(Note).with_engines(note)
    desk = board.agent("desk").description(says).consumes(Complaint, where=where)
    desk.publishes(Reply, tags={"apology", *tags}).with_engines(apologise)
    if provider is not None:
        desk.with_context(provider)
    if clerk:
        board.agent("clerk").consumes(Reply).publishes(Note).with_engines(note)


class Weather:
    """A provider that the recorded board does not have."""

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        return ContextSlice([{"type": "weather", "content": "rain"}])


EDITS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "where": {"where": lambda it: "slow" in it.about},
    "where that wakes": {"where": lambda it: True},
    "instructions": {"says": "Answers all complaints."},
    "tags": {"tags": ("late",)},
    "no noter": {"notes": None},
    "noter of letters": {"notes": Letter},
    "no clerk": {"clerk": False},
    "provider": {"provider": Weather()},
}


async def play(edit: dict[str, Any]) -> tuple[dict[str, list[Event]], Any]:
    store = MemoryStore(codec())
    async with Loom(store=store, entropy=FakeEntropy(), clock=FakeClock()) as app:
        board = app.board("mail")
        declare(board, **edit)
        await board.publish(Letter(text="Come today, the lift is stuck."), id="one")
        await board.run_until_idle()
        await board.publish(Letter(text="The lift is slow."), id="two")
        await board.run_until_idle()
        runs = [each.run for each in await app.runs()]
        logs = {run: [*await store.log.read(RunKey("local", run))] for run in runs}
        return logs, loaded_board(board)


@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_certain_of_a_board_is_true(edit: str) -> None:
    recorded, before = await play({})
    real, loaded = await play(EDITS[edit])
    assert recorded.keys() == real.keys()
    found = [
        (await to_thread.run_sync(backtested, loaded, events, before.workflow.plan.text), real[run])
        for run, events in recorded.items()
    ]
    for each, truth in found:
        assert not lies(each, truth, assumed=True, ordered=False)
    differs = any(each.run.counts or each.run.end for each, _ in found)
    assert differs == (edit != "nothing")
