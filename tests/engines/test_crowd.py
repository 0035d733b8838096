"""Many runs at once on one event loop: nothing of one tenant comes to another."""

import re
from pathlib import Path

import anyio
import pytest

from tests.support.engines import ENGINES, asking
from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.testing import LoopbackModel, ModelRequest
from turnloom.testing.contracts.facts import PATIENCE

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

# Runs, turns of each, and requests that are answered only when as many are under way.
RUNS, TURNS, CROWD = 40, 2, 20
FILES = {
    "orchestrator.yaml": f"{{orchestration_pattern: RoundRobinPattern, max_turns: {TURNS}}}",
    "agents.yaml": "{A: {system_message: Serve.}, B: {system_message: Serve too.}}",
    "context_variables.yaml": "{agents: {A: {variables: [app_id]}, B: {variables: [app_id]}}}",
}


class Echo:
    """A model that says for whom it works, once so many ask that they could be mixed up."""

    def __init__(self) -> None:
        self.under_way = 0
        self.crowded = anyio.Event()
        self.mixed: list[str] = []

    async def __call__(self, request: ModelRequest) -> str:
        self.under_way += 1
        if self.under_way == CROWD:
            self.crowded.set()
        await self.crowded.wait()
        canaries = {*re.findall(r"canary-\d+", request.text)}
        if len(canaries) != 1:
            self.mixed.append(request.text)
        return f"I serve {', '.join(sorted(canaries))}."


@pytest.mark.parametrize("kind", ENGINES)
async def test_runs_of_many_tenants_are_not_mixed(kind: str, tmp_path: Path) -> None:
    folder, echo = write_folder(tmp_path, FILES), Echo()
    async with LoopbackModel(echo) as model, asking(kind, model.url) as engine:
        async with Loom(store="memory", engine=engine, slots=RUNS) as app:
            runs = {
                f"canary-{n}": await app.start(folder, app_id=f"canary-{n}") for n in range(RUNS)
            }
            with anyio.fail_after(PATIENCE):
                for run in runs.values():
                    await run.finished()
            logs = {
                canary: await app.history.events(run.id, app_id=run.app_id)
                for canary, run in runs.items()
            }
    assert len(model.requests) == RUNS * TURNS
    assert not echo.mixed
    for canary, events in logs.items():
        said = [event.data.text for event in events if event.kind == "agent.text"]
        assert said == [f"I serve {canary}."] * TURNS
