"""Models on the command line, and runs of agents that have no engine there."""

from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from tests.cli.conftest import Call
from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.testing import LoopbackModel, ScriptedEngine

INTERVIEW = Path(__file__).parents[2] / "workflows" / "Interview"
ANSWERS = ["What is it?", "Who does it?", "When?", "NEXT", "A plan.", "Another plan.", "DONE"]
FILES = {
    "orchestrator.yaml": "{initial_message: Hi., human_in_the_loop: true}",
    "agents.yaml": "A: {system_message: Greet.}",
}


async def test_a_model_is_asked_and_named_to_go_on_with(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, FILES, "Greeting")
    async with LoopbackModel(["Hello."]) as model:
        keys = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "key"}
        call = partial(turnloom, "run", "Greeting", "--model", "openai-chat:any", **keys)
        done = await to_thread.run_sync(call)
    assert "A: Hello." in done.out
    assert any(
        " resume " in line and line.endswith(" --model openai-chat:any")
        for line in done.out.splitlines()
    )


@pytest.mark.parametrize("engine", ["pydantic_ai", "ag2", "autogen", "dspy"])
async def test_the_interview_is_held_by_a_model_unchanged(turnloom: Call, engine: str) -> None:
    async with LoopbackModel(ANSWERS) as model:
        keys = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "key"}
        words = ("run", str(INTERVIEW), "--model", "openai-chat:any", "--engine", engine)
        done = await to_thread.run_sync(partial(turnloom, *words, **keys))
    model.assert_complete()
    assert "PlanArchitect: Another plan." in done.out
    assert "PlanArchitect → terminate (condition rule 3)" in done.out


def test_a_choice_that_makes_no_difference_is_told(turnloom: Call, tmp_path: Path) -> None:
    agents = "A: {engine: {type: functions, file: a.py, function: f}}"
    files = {"agents.yaml": agents, "a.py": "def f(task):\n    return 'Hi.'\n"}
    write_folder(tmp_path, files, "Greeting")
    chosen = ("--model", "openai:gpt-5", "--engine", "ag2")
    done = turnloom("run", "Greeting", *chosen, TURNLOOM_MODEL="openai:gpt-5")
    assert [line.partition(" ")[0] for line in done.err.splitlines()] == ["--model", "--engine"]
    assert not turnloom("run", "Greeting", TURNLOOM_MODEL="openai:gpt-5", TURNLOOM_ENGINE="ag2").err


def test_an_engine_that_asks_no_models_is_refused(turnloom: Call) -> None:
    done = turnloom("run", str(INTERVIEW), "--engine", "ag3", code=2)
    assert "'ag3'" in done.err and "'ag2'" in done.err


async def test_a_run_is_told_something_also_where_nobody_answers_for_it(
    turnloom: Call, tmp_path: Path
) -> None:
    folder, store = write_folder(tmp_path, FILES, "Greeting"), str(tmp_path / "turnloom.db")
    engine = ScriptedEngine({"A": ["Hello.", "Goodbye."]})
    async with Loom(store=store, engine=engine) as app:
        run = await app.start(folder)
        async for event in run.events():
            if event.kind == "question.asked":
                break
    call = partial(turnloom, "answer", "last", "I leave.", "--store", store)
    await to_thread.run_sync(call)
    done = await to_thread.run_sync(partial(turnloom, "resume", "last", "--store", store, code=2))
    assert "W050 " in done.err and "'A'" in done.err
    async with Loom(store=store, engine=engine) as app:
        run = await app.resume(run.id)
        async for event in run.events():
            if event.kind == "agent.text" and event.data.text == "Goodbye.":
                break
    assert "I leave." in engine.calls[-1].prompt
