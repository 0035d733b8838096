"""What a kill costs, by the setting `durability`."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.runtime import durable_child
from turnloom import Loom

# The functions of a board belong to its plan, so both processes import them.
CHILD = """
import asyncio
from pathlib import Path
from tests.runtime import durable_child
asyncio.run({dying})
"""


@pytest.mark.parametrize(
    ("durability", "dies_in", "calls"),
    [
        ("effect", "model", ["first", "second", "second", "tool", "third"]),
        ("turn", "model", ["first", "second", "first", "second", "tool", "third"]),
        ("turn", "after the tool", ["first", "second", "tool", "third", "third"]),
    ],
)
async def test_a_kill(durability: str, dies_in: str, calls: list[str], tmp_path: Path) -> None:
    """Answers of the turn are lost by turn, and results of tools never."""
    store, notes = tmp_path / "turnloom.db", tmp_path / dies_in
    dying = f"durable_child.main({str(store)!r}, Path({str(notes)!r}), {durability!r})"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD.format(dying=dying), cwd=Path(__file__).parents[2]
    )
    assert await child.wait() == -signal.SIGKILL
    async with Loom(store=store, durability="turn" if durability == "turn" else "effect") as app:
        board = durable_child.declare(app, notes, dies=False)
        await board.resume()
        await board.run_until_idle()
        (run,) = await app.runs()
        assert run.status == "finished"
    assert notes.read_text().split() == calls
