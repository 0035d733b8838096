"""Records the logs of this folder: real runs in memory, with a clock that obeys.

A release that changes what a log holds records one more: add it to `RUNS` under a new name, then

    python -m tests.corpus.recording NAME

What stands here is never recorded again: it is what an older release wrote, and must replay.
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.support.folders import INTERVIEW, write_folder
from tests.support.programs import Program, make_world
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.testing import ScriptedEngine

FOLDER = Path(__file__).parent
ROOT = "/workflows/Flow"  # where no folder is, so that a log replays from what it holds alone


class Recipe(NamedTuple):
    """What agents and the user say, in which environment; `None` of the user ends the run.

    `variables`, if any, are the context variables in place of the right ones, and invalid.
    """

    lines: dict[str, list[str | Exception]]
    user: list[str | None]
    environment: dict[str, str]
    variables: str | None = None


RUNS = {
    "interview_finished": Recipe(
        {
            "Asker": ["What is it?", "And\nwhen?\u2028", "Then: NEXT"],
            "Planner": ["A draft.", "Better.", "DONE"],
        },
        ['A report - on "sales".', "Mondays."],
        {"FLAG": "yes"},
    ),
    "interview_cancelled": Recipe(
        {"Asker": ["What is it?", "And when?"]}, ["A report.", None], {"FLAG": "perhaps"}
    ),
    "interview_failed_in_production": Recipe(
        {"Asker": ["next"], "Planner": ["A draft.", RuntimeError("No model.")]},
        [],
        {"ENVIRONMENT": "production", "FLAG": "yes"},
    ),
    "interview_without_variables": Recipe(
        {"Asker": ["What is it?", "NEXT"]},
        ["A report.", None],
        {"CONTEXT_AWARE": "yes"},
        "definitions: {known: {type: boolean, source: {type: runtime, default: false}}}\n",
    ),
}


async def attend(program: Program, run: str, user: Sequence[str | None]) -> None:
    """Drive a run to its end; a user says these things, and then has no more need of it."""
    await program.drive(run)
    for said in [*user, None]:
        if (await program.events(run))[-1].kind != "run.paused":
            return
        if said is None:
            await program.cancel(run, reason="No longer needed.")
        else:
            await program.answer(run, said)


async def record(recipe: Recipe) -> Sequence[Event]:
    """The log of a run that goes as the recipe says."""
    files = dict(INTERVIEW)
    if recipe.variables is not None:
        files["context_variables.yaml"] = recipe.variables
    world = make_world(ScriptedEngine(recipe.lines), env=recipe.environment)
    world.clock.step = timedelta(milliseconds=250)
    with tempfile.TemporaryDirectory() as where:
        async with Program(world, strict=recipe.variables is None) as program:
            run = await program.start(write_folder(Path(where), files))
            await attend(program, run, recipe.user)
    first, *rest = await world.read(run)
    started: RunStarted = msgspec.structs.replace(first.data, root=ROOT)
    return [msgspec.structs.replace(first, data=started), *rest]


def main(name: str) -> None:
    """Record one run, unless it is on record."""
    events = asyncio.run(record(RUNS[name]))
    with (FOLDER / f"{name}.jsonl").open("xb") as file:
        file.writelines(codec().encode(event) + b"\n" for event in events)


if __name__ == "__main__":
    main(sys.argv[1])
