"""Conversations whose logs are golden."""

from pathlib import Path

from tests.golden.scenes import scene
from tests.support.folders import INTERVIEW, write_folder
from tests.support.world import Kill, World, conversing, replying
from weft.testing import ScriptedEngine

INTERVIEWED = {
    "Asker": ["What is it?", "And when?", "Then: NEXT"],
    "Planner": ["A draft.", "Better.", "DONE"],
}


@scene
async def an_interview(world: World, where: Path) -> None:
    """A conversation with a person, variables, routes and an end."""
    folder = write_folder(where, INTERVIEW)
    person = replying("A report.", "Mondays.")
    await world.live(conversing(folder, person), engine=ScriptedEngine(INTERVIEWED))


@scene
async def an_interview_killed_three_times(world: World, where: Path) -> None:
    """The same: killed after a model was called, after it answered, and before an answer counts."""
    folder = write_folder(where, INTERVIEW)
    engine = ScriptedEngine(INTERVIEWED)
    before = Kill("question.answered", before=True)
    kills = Kill("model.called", 2), Kill("model.answered"), before
    person = replying("A report.", "Mondays.")
    await world.lives(conversing(folder, person), *kills, engine=engine)
