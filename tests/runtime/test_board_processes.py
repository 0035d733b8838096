"""Processes with a board on one file: killed for good, or all at work at once."""

import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from tests.support.boards import takings
from tests.support.pieces import declare, put
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import Board, Event, FilterConfig, Loom

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

CHILD = Path(__file__).with_name("board_child.py")


async def live(file: Path, *deed: str, hang_after: str = "") -> None:
    """One life of a process; it is killed as soon as it hangs."""
    command = [sys.executable, str(CHILD), str(file), *deed]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HANG_AFTER": hang_after}
    process = await anyio.open_process(command, stderr=None, env=env)
    said = ""
    with anyio.fail_after(PATIENCE):
        assert process.stdout
        async for part in TextReceiveStream(process.stdout):
            said += part
            if "hangs" in said:
                os.kill(process.pid, signal.SIGKILL)
        code = await process.wait()
    await process.aclose()
    assert code == (-signal.SIGKILL if "hangs" in said else 0)
    assert ("hangs" in said) == (hang_after != "" or deed[0] == "hang_after")


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[tuple[Loom, Board]]:
    async with Loom(store=str(file)) as app:
        board = app.board(max_turns=100)
        declare(board)
        yield app, board


async def logs(app: Loom) -> dict[str, list[Event]]:
    return {each.run: list(await app.history.events(each.run)) for each in await app.runs()}


async def crates(board: Board) -> list[list[int]]:
    """The pieces in each crate, sorted: the runs that make them race."""
    items, _ = await board.query_artifacts(FilterConfig(types={"Crate"}))
    return [sorted(each.payload["of"]) for each in items]


async def consumed(board: Board, type: str) -> Counter[tuple[str, str]]:
    """How often each artifact of a type was taken, by subscription, as the index has it."""
    items, _ = await board.query_artifacts(FilterConfig(types={type}), embed_meta=True)
    return Counter((each.id, taken.subscription) for each in items for taken in each.consumptions)


async def test_a_batch_killed_one_short_of_its_size(tmp_path: Path) -> None:
    """The next process brings the last piece, and the batch of just that size is packed once."""
    file = tmp_path / "turnloom.db"
    await live(file, "hang_after", "0", "2")
    async with opened(file) as (app, board):
        assert await crates(board) == []
        await put(board, 2)
        await board.run_until_idle(PATIENCE)
        assert await crates(board) == [[0, 1, 2]]
        assert set(takings(await logs(app)).values()) == {1}


async def test_processes_killed_for_good(tmp_path: Path) -> None:
    """Each goes on where the one before was killed: nothing is lost, nothing is packed twice."""
    file = tmp_path / "turnloom.db"
    async with opened(file) as (_, board):
        for n in range(2):
            await put(board, n)
        await board.run_until_idle(PATIENCE)
    for hang_after in (
        "forwarded",  # what another run collects is not brought to it
        "in/",  # it is brought there, and nobody has looked at it
        "set/",  # the set is taken, and its run is not begun
        "given",  # the run is begun, and nobody knows that
    ):
        await live(file, "make", "2", "3", hang_after=hang_after)
    async with opened(file) as (app, board):
        await board.resume()
        await put(board, 2)
        await board.run_until_idle(PATIENCE)
        assert await crates(board) == [[0, 1, 2]]
        found = await logs(app)
        assert set(takings(found).values()) == {1}
        assert await board.resume() == []
        assert len([log for log in found.values() if every(log, "artifacts.given")]) == 1


async def test_processes_that_publish_into_the_same_correlations(tmp_path: Path) -> None:
    """Each piece has its part from one process and its plan from another."""
    file, pieces = tmp_path / "turnloom.db", 30
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(live, file, "crowd", str(number), "3", str(pieces))
    async with opened(file) as (app, board):
        await board.resume()
        await board.run_until_idle(PATIENCE)
        found = takings(await logs(app))
        assert set(found.values()) == {1}
        names = Counter(subscription for _, subscription in found)
        assert names == {"polish#1": pieces, "assemble#1": 2 * pieces, "pack#1": pieces}
        assert sorted(n for crate in await crates(board) for n in crate) == list(range(pieces))
        for type in ("Part", "Plan", "Piece"):
            assert set((await consumed(board, type)).values()) == {1}
