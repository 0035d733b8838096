"""Each method of an app does one thing."""

from pathlib import Path
from typing import Any, cast

import pytest

from tests.flow.scenes import Work, flow_of, note
from tests.support.folders import write_folder
from turnloom import Answer, Flow, FlowFailed, Loom, Task
from turnloom.errors import DefinitionError, UnknownRun, UsageError

HELLO = {
    "orchestrator.yaml": "initial_agent: Ann\ninitial_message: Begin.\n",
    "agents.yaml": "agents: {Ann: {system_message: Greet.}}",
    "handoffs.yaml": (
        "handoff_rules: [{source_agent: Ann, target_agent: terminate, handoff_type: after_work}]"
    ),
}


async def greet(task: Task) -> Answer:
    return Answer("Hello.")


async def test_a_run_begins_from_a_path(tmp_path: Path) -> None:
    folder = Path(write_folder(tmp_path, HELLO))
    async with Loom(store="memory", engine=greet) as app:
        run = await app.start(folder)
        assert (await run.finished()).kind == "run.finished"
        again = await app.start(str(folder))
        assert [e.kind for e in await app.history.events(run.id)] == [
            e.kind async for e in again.events()
        ]
        assert [index async for index in app.index(folder)] == []
        with pytest.raises(UsageError):
            await run.outcome()


async def test_a_handle_is_not_driven() -> None:
    async with Loom(store="memory") as app:
        outcome = await app.run(flow_of(note("a")), Work(number=3))
        run = app.handle(outcome.run_id)
        assert await run.outcome() == outcome and outcome.state.number == 3
        with pytest.raises(UnknownRun):
            await app.handle("nosuchrun").plan()
        for reading in (app.history.events, app.history.definition, app.explain.timeline):
            with pytest.raises(UnknownRun):
                await reading("nosuchrun")
        assert (await app.history.definition(run.id)).name == "work"


async def test_a_flow_is_registered_if_it_is_one() -> None:
    wrong = Flow("empty", Work)
    async with Loom(store="memory") as app:
        with pytest.raises(DefinitionError):
            app.register_flow(wrong)
        with pytest.raises(UsageError):
            app.register_flow(cast(Any, "work"))
        app.register_flow(flow_of(note("a")))


async def test_running_a_flow_raises_its_failure() -> None:
    async def fail(state: Work, ctx: object) -> None:
        raise ValueError("no")

    async with Loom(store="memory") as app:
        with pytest.raises(FlowFailed) as failed:
            await app.run(flow_of(fail))
        outcome = failed.value.outcome
        assert (outcome.status, outcome.state) == ("failed", Work())
        run = await app.start(flow_of(fail))
        assert (await run.outcome()).status == "failed"
