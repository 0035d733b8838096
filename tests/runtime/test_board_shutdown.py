"""A board that is stopped in the middle: cancelled for good, or closed and gone on with."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.boards import IdleScheduler
from tests.support.pieces import Part, Plan
from tests.support.pieces import declare as make
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import Board, FilterConfig, Loom, Task, UsageError
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.testing import CrashingInbox, FakeClock, Fuse, Killed


class Slow:
    """Engines that come to a point and stay there, until they are let go on."""

    def __init__(self, *stuck: str) -> None:
        self.stuck = stuck
        self.asked: list[str] = []
        self.interrupted: list[str] = []
        self.waiting = asyncio.Event()

    async def __call__(self, task: Task) -> Any:
        self.asked.append(task.agent)
        if len(self.asked) == 3:
            self.waiting.set()
        if task.agent in self.stuck:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.interrupted.append(task.agent)
                raise
        return ""


def declare(board: Board, engine: Slow) -> None:
    for name in ("one", "two", "three"):
        board.agent(name).consumes(Part).with_engines(engine)


def others() -> set[Any]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def test_a_run_cancelled_in_the_middle_of_parallel_turns(tmp_path: Path) -> None:
    """Turns that are over stay so, the others end as cancelled; nothing goes on behind our back."""
    before = others()
    engine = Slow("two", "three")
    async with Loom(store=str(tmp_path / "turnloom.db")) as app:
        board = app.board()
        declare(board, engine)
        part = await board.publish(Part(n=1))
        assert part.run
        await engine.waiting.wait()
        assert await board.cancel(reason="enough") == 1
        await board.run_until_idle(PATIENCE)
        events = await app.history.events(part.run)
        ended = {fact.agent: fact.status for fact in every(events, "turn.finished")}
        assert ended == {"one": "done", "two": "cancelled", "three": "cancelled"}
        assert (events[-1].kind, events[-1].data.reason) == ("run.cancelled", "enough")
        assert sorted(engine.interrupted) == ["three", "two"]
        assert await board.cancel() == 0
        await board.publish(Part(n=2))
    assert others() == before


@pytest.mark.parametrize("again", [False, True])
async def test_an_app_closed_in_the_middle_of_parallel_turns(again: bool, tmp_path: Path) -> None:
    """The next one takes up the turns that were open, asks nobody twice who has answered, and the
    log says the same as without a break, but for the mark."""
    before, file = others(), str(tmp_path / "turnloom.db")
    engine, patient = Slow("two", "three"), Slow()
    async with Loom(store=file) as app:
        board = app.board()
        declare(board, engine)
        part = await board.publish(Part(n=1))
        assert part.run
        await engine.waiting.wait()
    assert others() == before
    assert sorted(engine.interrupted) == ["three", "two"]
    async with Loom(store=file) as app:
        board = app.board()
        declare(board, patient)
        assert await board.resume() == [part.run]
        if again:
            assert await board.resume() == [part.run]
        await board.run_until_idle(PATIENCE)
        events = await app.history.events(part.run)
        assert sorted(patient.asked) == ["three", "two"]
        ended = {fact.agent: fact.status for fact in every(events, "turn.finished")}
        assert ended == dict.fromkeys(("one", "two", "three"), "done")
        kinds = [event.kind for event in events]
        assert kinds.count("run.resumed") == 1
        assert kinds.count("model.called") == kinds.count("model.answered") == 3
        assert kinds[-1] == "run.finished"
        assert await board.resume() == []
        items, _ = await board.query_artifacts(FilterConfig(), embed_meta=True)
        assert [len(each.consumptions) for each in items] == [3]
    assert others() == before


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_an_app_closed_while_somebody_waits(store: str, tmp_path: Path) -> None:
    """Who waits for the board is told; nobody is left hanging."""
    before = others()
    engine = Slow("two", "three")
    app = Loom(store="memory" if store == "memory" else str(tmp_path / "turnloom.db"))
    board = app.board()
    declare(board, engine)
    await board.publish(Part(n=1), correlation_id="c")
    await engine.waiting.wait()
    waiting = [asyncio.create_task(board.run_until_idle())]
    waiting += [asyncio.create_task(board.run_until(lambda: False))]
    await asyncio.sleep(0)
    await app.aclose()
    for ended in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(ended, UsageError)
    assert others() == before


class BrokenScheduler(IdleScheduler):
    """A scheduler that fails once it is to serve."""

    async def serve(self, drive: Any, *, slots: int, limits: Mapping[str, int]) -> None:
        raise OSError("the queue is gone")


async def test_closing_an_app_raises_what_driving_failed_with(tmp_path: Path) -> None:
    file = tmp_path / "turnloom.db"
    app = Loom(store=str(file), scheduler=BrokenScheduler(FakeClock()))
    board = app.board()
    declare(board, Slow())
    await board.publish(Part(n=1))
    with pytest.RaisesGroup(OSError):
        await app.aclose()
    async with Loom(store=str(file)) as again:
        assert len(await again.runs()) == 1


async def test_a_program_leaves_the_boards_of_others_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mail to a run of a board that this program does not declare waits for one that does."""
    file, watcher = str(tmp_path / "turnloom.db"), Slow()
    async with Loom(store=file) as app, idle(file) as making:
        board = app.board("other")
        board.agent("watch").consumes(Part, Plan).with_engines(watcher)
        make(making)
        await board.publish(Part(n=1), correlation_id="theirs")
        part = await making.publish(Part(n=0), correlation_id="c")
        async with idle(file, fuse=Fuse(1)) as killed:
            make(killed)
            with pytest.raises(Killed):
                await killed.publish(Plan(n=0), correlation_id="c")
        async with idle(file, "other", Fuse(1)) as killed:
            killed.agent("watch").consumes(Part, Plan).with_engines(watcher)
            with pytest.raises(Killed):
                await killed.publish(Plan(n=1), correlation_id="theirs")
        await board.run_until(lambda: watcher.asked, PATIENCE)  # mail before that was seen, too
    assert part.run
    assert not caplog.records
    async with Loom(store=file) as app:
        assert "artifact.offered" not in {
            event.kind for event in await app.history.events(part.run)
        }
        board = app.board()
        make(board)
        assert await board.resume() == [part.run]
        await board.run_until_idle(PATIENCE)
        items, _ = await board.query_artifacts(FilterConfig(types={"Piece"}))
        assert [each.payload for each in items] == [{"n": 0}]


@asynccontextmanager
async def idle(file: str, name: str = "board", fuse: Fuse | None = None) -> AsyncIterator[Board]:
    """A board of a program that drives nothing, and is killed when a fuse says so that counts
    points around its mail."""
    store: Any = SqliteStore(Path(file), codec())
    store.inbox = CrashingInbox(store.inbox, fuse or Fuse())
    async with Loom(store=store, scheduler=IdleScheduler(FakeClock())) as app:
        yield app.board(name)
    await store.aclose()
