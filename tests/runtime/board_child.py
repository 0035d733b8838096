"""A process with a board on a file. Run as: board_child.py FILE DEED [ARGUMENT ...]."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.pieces import Part, Plan, declare, put
from turnloom import Board, Event, Loom
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec

# Seconds that are never reached.
PATIENCE = 60.0


class Hanging:
    """A log whose process does nothing any more after some event is stored, whose id begins with a
    mark, or that says it of somebody; it says so, and waits to be killed."""

    def __init__(self, log: Any, mark: str) -> None:
        self._log = log
        self._mark = mark

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        stored = await self._log.append(run, events, expected, fence)
        if any(self._is_meant(event) for event in events):
            hang()
        return stored

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def _is_meant(self, event: Event) -> bool:
        verdicts = [each.verdict for each in getattr(event.data, "to", ())]
        return event.id.startswith(self._mark) or self._mark in verdicts


def hang() -> None:
    """Be stuck until killed."""
    print("hangs", flush=True)
    time.sleep(PATIENCE)


async def make(board: Board, first: str, last: str) -> None:
    """Make pieces one after the other."""
    await board.resume()
    for n in range(int(first), int(last)):
        await put(board, n)
        await board.run_until_idle(PATIENCE)


async def hang_after(board: Board, first: str, last: str) -> None:
    """Make pieces, and wait to be killed when all is done."""
    await make(board, first, last)
    hang()


async def crowd(board: Board, number: str, of: str, pieces: str) -> None:
    """Publish, all at once, the parts of some pieces and the plans of others."""
    share = int(pieces) // int(of)
    parts = range(int(number) * share, (int(number) + 1) * share)
    plans = [(n + share) % int(pieces) for n in parts]
    await asyncio.gather(
        *(board.publish(Part(n=n), correlation_id=f"c{n}") for n in parts),
        *(board.publish(Plan(n=n), correlation_id=f"c{n}") for n in plans),
    )
    await board.run_until_idle(PATIENCE)


async def main(file: str, deed: str, *arguments: str) -> None:
    store: Any = SqliteStore(Path(file), codec())
    if mark := os.environ.get("HANG_AFTER"):
        store.log = Hanging(store.log, mark)
    async with Loom(store=store) as app:
        board = app.board(max_turns=100)
        declare(board)
        await globals()[deed](board, *arguments)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
