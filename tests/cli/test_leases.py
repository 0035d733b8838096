"""A process that does not respond loses its runs after its lease, and does no harm afterwards."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Sit
from tests.support.tables import tables_of
from turnloom import Loom

FLOW = """\
import asyncio
import os
from pathlib import Path as File

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Path


class State(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int = 0


def book(state, ctx):
    with File("booked").open("a") as file:
        file.write("booked\\n")


async def nap(state, ctx):
    with File("naps").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    while not File("awake").exists():
        await asyncio.sleep(0.01)


def ask(state, ctx):
    pass


def done(state, ctx):
    return {"n": 1}


naps = Flow("naps", State).start_with(book).then(nap).finally_(done)
asks = (
    Flow("asks", State)
    .start_with(book)
    .fork(nap, Path(ask).await_approval("ann", name="ok"), join=done)
)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "naps.py").write_text(FLOW)
    return "naps.py"


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def count(folder: Path) -> int:
    """How many events are in the store."""
    with tables_of(folder / ".turnloom" / "turnloom.db") as tables:
        return tables.execute("SELECT count(*) FROM {}log")[0][0]


async def late(folder: Path) -> None:
    """Wait until it can be seen that the process which drives the run does not respond."""
    async with Loom(store=folder / ".turnloom" / "turnloom.db") as app:
        (run,) = await app.runs()
        holder = await app.handle(run.run).holder()
        assert holder is not None and holder.seconds is not None
        await asyncio.sleep(holder.seconds / 2 + 0.1)


def test_a_run_is_cancelled_while_its_process_is_stopped(
    sit: Sit, turnloom: Call, tmp_path: Path, program: str
) -> None:
    seat = sit("run", f"{program}:naps", NO_COLOR="1", TURNLOOM_LEASE="0.5")
    seat.until("  step nap began")
    os.kill(seat.process.pid, signal.SIGSTOP)
    assert "cancelled" in turnloom("cancel", "last").out
    before = count(tmp_path)
    (tmp_path / "awake").touch()
    os.kill(seat.process.pid, signal.SIGCONT)
    assert seat.end() == 1, seat.seen
    assert count(tmp_path) == before
    assert lines(tmp_path / "booked") == ["booked"]


def test_a_run_goes_on_elsewhere_while_its_process_is_stopped(
    sit: Sit, tmp_path: Path, program: str
) -> None:
    first = sit("run", f"{program}:naps", NO_COLOR="1", TURNLOOM_LEASE="3")
    first.until("  step nap began")
    os.kill(first.process.pid, signal.SIGSTOP)
    asyncio.run(late(tmp_path))
    second = sit("resume", "last", NO_COLOR="1")
    second.until("resumed")
    os.kill(first.process.pid, signal.SIGCONT)
    assert first.end() == 1, first.seen
    assert "lease" in first.seen
    (tmp_path / "awake").touch()
    second.until("finished")
    assert second.end() == 0, second.seen
    assert lines(tmp_path / "booked") == ["booked"]
    assert len(lines(tmp_path / "naps")) == 2, "what was in flight is repeated, and nothing else"


def test_a_question_is_answered_while_its_process_is_stopped(
    sit: Sit, turnloom: Call, tmp_path: Path, program: str
) -> None:
    seat = sit("run", f"{program}:asks", NO_COLOR="1", TURNLOOM_LEASE="4")
    seat.until("ann")
    os.kill(seat.process.pid, signal.SIGSTOP)
    answered = turnloom("answer", "last", "approve", "--user", "ann")
    assert "resume" in answered.out
    assert f"process {seat.process.pid}" in answered.err, "it says what it waits for"
    before = count(tmp_path)
    os.kill(seat.process.pid, signal.SIGCONT)
    seat.until("lease")
    assert seat.end() == 1, seat.seen
    assert count(tmp_path) == before
