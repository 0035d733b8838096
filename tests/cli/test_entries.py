"""No program is executed to find the flow of a run."""

import os
from pathlib import Path

import anyio
import pytest

from tests.cli.conftest import Call, surroundings
from tests.support.warm import Warm
from turnloom import Loom
from turnloom.wiring.flows import flows_in

# Started as a program, it begins a run that waits; whoever executes it leaves a mark.
PROGRAM = """\
import asyncio

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom

with open("executed", "a") as marks:
    marks.write("x")


class State(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int = 0


async def charge(state, ctx):
    return {"n": 1}


charged = Flow("charged", State).start_with(charge).await_approval("boss")
charged = charged.finally_(charge, name="again")


async def main():
    async with Loom() as app:
        await app.run(charged, State())


if LAUNCHED:
    asyncio.run(main())
"""


@pytest.fixture
def executed(tmp_path: Path) -> Path:
    return tmp_path / "executed"


def launch(warm: Warm, folder: Path) -> None:
    """Run the program as `python` does, with its main part at the top level."""
    (folder / "shop.py").write_text(PROGRAM.replace("LAUNCHED", "True"))
    done = warm.shell("python shop.py", folder, surroundings({}))
    assert done.code == 0, done


@pytest.mark.parametrize("words", [("resume",), ("cancel",)])
def test_a_run_of_another_program_is_left_to_it(
    words: tuple[str, ...], turnloom: Call, warm: Warm, tmp_path: Path, executed: Path
) -> None:
    launch(warm, tmp_path)
    done = turnloom(*words, "last", code=2)
    assert "charged" in done.err
    assert executed.read_text() == "x"


def test_an_answer_is_kept_for_the_program(
    turnloom: Call, warm: Warm, tmp_path: Path, executed: Path
) -> None:
    launch(warm, tmp_path)
    turnloom("answer", "last", "approve", "--user", "boss")
    assert executed.read_text() == "x"


def test_the_entry_of_a_run_is_imported_and_not_run(
    turnloom: Call, tmp_path: Path, executed: Path
) -> None:
    """The command line named the file, so a later command may import it."""
    (tmp_path / "shop.py").write_text(PROGRAM.replace("LAUNCHED", '__name__ == "__main__"'))
    turnloom("run", "shop.py:charged")
    turnloom("answer", "last", "approve", "--user", "boss")
    os.truncate(executed, 0)
    assert "finished" in turnloom("resume", "last").out
    assert executed.read_text() == "x"


def test_a_file_that_asks_for_itself_is_not_loaded_twice(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(
        PROGRAM.replace("LAUNCHED", "True").replace(
            "await app.run(charged, State())",
            "app.register_flow(charged, entry='loop.py'); run = await app.start(charged, State());"
            " await run.outcome(); await (await Loom().resume(run.id)).outcome()",
        )
    )
    done = turnloom("run", "loop.py", code=2)
    assert "loop.py" in done.err
    assert (tmp_path / "executed").read_text() == "x"


async def test_the_entry_of_many_runs_is_imported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executed: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = tmp_path / "shop.py"
    entry.write_text(PROGRAM.replace("LAUNCHED", "False"))
    (flow,) = flows_in(str(entry))
    async with Loom(store=tmp_path / "a.db") as app:
        app.register_flow(flow, entry=entry)
        runs = [await app.start(flow) for _ in range(5)]
        for run in runs:
            await run.outcome()
    assert marks(executed) == "x"
    async with Loom(store=tmp_path / "a.db") as app:
        async with anyio.create_task_group() as tasks:
            for run in runs:
                tasks.start_soon(app.handle(run.id).outcome)
    assert marks(executed) == "xx"


def marks(executed: Path) -> str:
    """A letter for each time that the program was executed."""
    return executed.read_text()
