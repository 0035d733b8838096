"""The interview that is shipped, on every engine: the same words lead to the same run."""

from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from ruamel.yaml import YAML

from tests.support.engines import ENGINES, asking
from turnloom import Engine, Loom
from turnloom.testing import LoopbackModel, ScriptedEngine
from turnloom.testing.contracts.facts import PATIENCE

INTERVIEW = Path(__file__).parents[2] / "workflows" / "Interview"
QUESTIONS = ["What work is it?", "Who does it today?", "When is it done?", "NEXT"]
KINDS = ("context.changed", "route.decided", "frame.assembled")
PLANS = ["1. Copy. 2. Send. Do you accept?", "1. Copy. 2. Fall back. 3. Send.", "DONE"]


class Course(NamedTuple):
    """What a run came to: changes of variables, routes, and what each turn was shown."""

    changed: list[Any]
    routes: list[Any]
    frames: list[str]


async def converse(engine: Engine) -> Course:
    """An interview in which the user of the folder's script answers."""
    answers = iter(YAML(typ="safe").load(INTERVIEW / "script.yaml")["user"])
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(str(INTERVIEW))
        with anyio.fail_after(PATIENCE):
            async for event in run.events():
                if event.kind == "question.asked":
                    await run.answer(event.data.question, next(answers))
        events = await app.history.events(run.id)
    assert events[-1].kind == "run.finished", events[-1].data
    found = {kind: [e.data for e in events if e.kind == kind] for kind in KINDS}
    changed, routes, frames = found.values()
    return Course(changed, routes, [frame.digest for frame in frames])


@pytest.mark.parametrize("kind", ENGINES)
async def test_every_engine_takes_the_same_course(kind: str) -> None:
    script = {"InterviewAgent": QUESTIONS, "PlanArchitect": PLANS}
    expected = await converse(ScriptedEngine(script))
    assert len(expected.frames) == len(QUESTIONS + PLANS)
    assert [each.name for each in expected.changed] == ["interview_complete", "plan_accepted"]
    async with LoopbackModel(QUESTIONS + PLANS) as model, asking(kind, model.url) as engine:
        assert await converse(engine) == expected
    model.assert_complete()
