"""Records the logs of this folder: real runs in memory, with a clock that obeys.

A release that changes what a log holds records one more: add it to `RUNS` under a new name, then

    python -m tests.corpus.recording NAME

What stands here is never recorded again: it is what an older release wrote, and must replay.
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.support.folders import INTERVIEW, write_folder
from tests.support.worlds import begin, make_driver, make_world
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.runtime.spec import Reply, Stop
from turnloom.testing import FakeClock, ScriptedEngine
from turnloom.wiring import Folders

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


async def record(recipe: Recipe) -> Sequence[Event]:
    """The log of a run that goes as the recipe says."""
    engine, files = ScriptedEngine(recipe.lines), dict(INTERVIEW)
    world = make_world(engine, env=recipe.environment)
    if recipe.variables is not None:
        files["context_variables.yaml"] = recipe.variables
        world = replace(world, definitions=Folders(engine, strict=False))
    assert isinstance(world.clock, FakeClock)
    world.clock.step = timedelta(milliseconds=250)
    inbox, driver = world.stores.inbox, make_driver(world)
    with tempfile.TemporaryDirectory() as where:
        run = await begin(world, write_folder(Path(where), files))
        for said in [*recipe.user, None]:
            await driver.drive(run)
            ((_, last),) = await world.stores.log.ends(run=run)
            if last.kind != "run.paused":
                break
            if said is None:
                await inbox.offer(run, "cancel", Stop("u1", "No longer needed."))
            else:
                question = last.data.waiting_for
                await inbox.offer(run, f"{question}/answer", Reply(question, said, "u1"))
        else:
            await driver.drive(run)
    first, *rest = await world.stores.log.read(run)
    started: RunStarted = msgspec.structs.replace(first.data, root=ROOT)
    return [msgspec.structs.replace(first, data=started), *rest]


def main(name: str) -> None:
    """Record one run, unless it is on record."""
    events = asyncio.run(record(RUNS[name]))
    with (FOLDER / f"{name}.jsonl").open("xb") as file:
        file.writelines(codec().encode(event) + b"\n" for event in events)


if __name__ == "__main__":
    main(sys.argv[1])
