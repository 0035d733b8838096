"""A process that is asked to end stops as one that is interrupted does."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Call, Sit

FLOW = """\
import asyncio
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from turnloom import Flow


class State(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int = 0


class Burial:  # what is raised in here is printed, and lost

    def __del__(self):
        Path("burying").touch()
        while not Path("told").exists():
            pass


async def bury(state, ctx):
    grave = Burial()
    del grave
    return await nap(state, ctx)


async def nap(state, ctx):
    try:
        while not Path("awake").exists():
            await asyncio.sleep(0.01)
    finally:
        Path("tidied").touch()
    return {"n": 1}


naps = Flow("naps", State).start_with(nap).finally_(nap, name="again")
burials = Flow("burials", State).start_with(bury).finally_(nap)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "naps.py").write_text(FLOW)
    return "naps.py:naps"


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_what_is_driven_is_cut_off_in_order(
    ending: signal.Signals, sit: Sit, turnloom: Call, tmp_path: Path, program: str
) -> None:
    seat = sit("run", program, NO_COLOR="1")
    seat.until("  step nap began")
    os.kill(seat.process.pid, ending)
    assert "resume" in seat.until("Interrupted.")
    assert seat.end() == 1
    assert (tmp_path / "tidied").exists()
    (tmp_path / "awake").touch()
    assert "finished" in turnloom("resume", "last").out


def test_a_process_in_the_background_ends_as_well(
    turnloom: Call, tmp_path: Path, program: str
) -> None:
    """A shell starts it with interruptions ignored."""
    command = f"{shlex.quote(PROGRAM)} run {program}"
    script = f"""
        trap '' INT
        {command} > out 2> err &
        until grep -q nap out; do sleep 0.05; done
        kill -TERM $!
        wait $!
    """
    turnloom(shell=script, code=1)
    assert "Interrupted." in (tmp_path / "err").read_text()
    assert (tmp_path / "tidied").exists()


def test_it_ends_wherever_the_signal_meets_it(turnloom: Call, tmp_path: Path, program: str) -> None:
    """Also in a finalizer, whose errors are lost."""
    script = f"""
        trap '' INT
        {shlex.quote(PROGRAM)} run naps.py:burials > out 2> err &
        until test -e burying; do sleep 0.05; done
        kill -INT $!
        kill -TERM $!
        touch told
        wait $!
    """
    turnloom(shell=script, code=1)
    assert "Interrupted." in (tmp_path / "err").read_text()
    assert (tmp_path / "tidied").exists()
