"""Models that are named: by agents, by workflows, by settings and on boards."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.engines import ENGINES
from tests.support.folders import write_folder
from tests.support.missing import refused_without
from tests.support.raising import raising
from turnloom import DefinitionError, Loom, UsageError, artifact_type
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.testing import LoopbackModel, ScriptedEngine
from turnloom.wiring import Folders

CALLED = "model.called"
AGENTS = """
    A: {system_message: Be A., model: openai-chat:own}
    B: {system_message: Be B.}
    C: {system_message: Be C., engine: scripted}
    """
FILES = {
    "orchestrator.yaml": "{orchestration_pattern: RoundRobinPattern, max_turns: 3}",
    "agents.yaml": AGENTS,
    "script.yaml": "{agents: {A: [Line of A.], B: [Line of B.], C: [Line of C.]}}",
}


@artifact_type
class Riddle(BaseModel):
    text: str


@artifact_type
class Guess(BaseModel):
    text: str


async def said(folder: str, **settings: Any) -> list[str]:
    async with Loom(store="memory", **settings) as app:
        run = await app.start(folder)
        await run.finished()
        return [
            event.data.text
            for event in await app.history.events(run.id)
            if event.kind == "agent.text"
        ]


async def test_a_script_answers_unless_a_model_is_asked_for(
    tmp_path: Path, echoing: LoopbackModel
) -> None:
    folder = write_folder(tmp_path, FILES)
    assert await said(folder) == ["Line of A.", "Line of B.", "Line of C."]
    asked = await said(folder, model="openai-chat:common")
    assert asked == ["I am own.", "I am common.", "Line of C."]


async def test_the_model_of_a_workflow_answers_for_agents_without_lines(
    tmp_path: Path, echoing: LoopbackModel
) -> None:
    setup = FILES["orchestrator.yaml"].replace("{", "{model: openai-chat:shared, ")
    script = "{agents: {C: [Line of C.]}}"
    folder = write_folder(tmp_path, FILES | {"orchestrator.yaml": setup, "script.yaml": script})
    assert await said(folder) == ["I am own.", "I am shared.", "Line of C."]
    assert await said(folder, model="openai-chat:common") == [
        "I am own.",
        "I am shared.",
        "Line of C.",
    ]


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_agent_chooses_to_ask_a_model(
    engine: str, tmp_path: Path, echoing: LoopbackModel
) -> None:
    agents = f"A: {{engine: {engine}, model: openai-chat:own}}"
    folder = write_folder(tmp_path, {"agents.yaml": agents, "script.yaml": "{agents: {A: [No.]}}"})
    assert await said(folder) == ["I am own."]


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_app_chooses_who_asks_models(
    engine: str, tmp_path: Path, echoing: LoopbackModel
) -> None:
    async with Loom(store="memory", engine=engine, model="openai-chat:common") as app:
        run = await app.start(write_folder(tmp_path, FILES))
        await run.finished()
        called = [
            event.data.engine for event in await app.history.events(run.id) if event.kind == CALLED
        ]
    assert called == [*[ENGINES[engine].__name__] * 2, "ScriptedEngine"]


async def test_an_engine_that_there_is_not_is_refused() -> None:
    with raising(UsageError, "'none'", *ENGINES):
        async with Loom(store="memory", engine="none") as app:
            await app.runs()


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("{engine: pydantic_ai}", "'A'"),
        ("{model: opnai:gpt-5}", "'opnai:gpt-5'"),
        ("{model: gpt-5}", "Name its provider"),
        ("{model: 'openai:gpt-5'}", "Set OPENAI_API_KEY."),
        ("{model: 'mistral:mistral-large-latest'}", "Install it: pip install"),
        ("{model: 'ollama:llama'}", "Set OLLAMA_BASE_URL."),
        ("{engine: autogen, model: 'anthropic:claude'}", "Set ANTHROPIC_API_KEY."),
        ("{engine: autogen, model: 'bedrock:nova'}", "aws_region"),
        ("{engine: autogen, model: 'mistral:large'}", "pip install mistralai"),
        ("{engine: ag2, model: 'openai:gpt-5'}", "'openai:gpt-5'"),
        ("{engine: dspy, model: 'azure:gpt-5'}", "Set AZURE_OPENAI_RESOURCE or"),
    ],
)
async def test_a_model_that_cannot_be_asked_keeps_a_run_from_starting(
    agent: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = write_folder(tmp_path, {"agents.yaml": f"# roster\nA: {agent}"})
    loaded, problems = Folders().examine(folder)
    assert loaded is not None and not problems
    with pytest.raises(DefinitionError) as refused:
        await said(folder)
    (problem,) = refused.value.diagnostics
    assert (problem.code, problem.line) == ("W050", 2)
    assert says in str(problem)
    assert not any(
        each in str(problem) for each in ("Please", "Unknown", "pydantic.dev", "optional")
    )


async def test_what_a_script_answers_by_is_told_of_where_it_stands(tmp_path: Path) -> None:
    script = "functions:\n  A: {file: a.py, function: f}"
    files = {"agents.yaml": "A: {}", "script.yaml": script}
    _, problems = Folders().examine(write_folder(tmp_path, files, "Without"))
    assert [(each.code, Path(each.file).name, each.line) for each in problems] == [
        ("W040", "script.yaml", 2)
    ]
    files["a.py"] = "def f(task):\n    return 'Hi.'\n"
    with pytest.raises(DefinitionError) as refused:
        await said(write_folder(tmp_path, files, "With"), model="opnai:gpt-5")
    (problem,) = refused.value.diagnostics
    assert (problem.code, Path(problem.file).name, problem.line) == ("W050", "agents.yaml", 1)


async def test_a_run_does_not_go_on_where_nobody_answers_for_it(tmp_path: Path) -> None:
    setup = "{initial_message: Hi., human_in_the_loop: true}"
    folder = write_folder(tmp_path, {"orchestrator.yaml": setup, "agents.yaml": "A: {}"})
    store = str(tmp_path / "turnloom.db")
    async with Loom(store=store, engine=ScriptedEngine({"A": ["Hello."]})) as app:
        run = await app.start(folder)
        async for event in run.events():
            if event.kind == "run.paused":
                break
        kept = await app.history.events(run.id)
    async with Loom(store=store) as app:
        with raising(DefinitionError, "'A'"):
            await (await app.resume(run.id)).finished()
        assert await app.history.events(run.id) == kept


async def test_a_model_answers_on_a_board(echoing: LoopbackModel) -> None:
    async with Loom(store="memory", model="openai-chat:common") as app:
        board = app.board()
        board.agent("one").consumes(Riddle).with_engines("openai-chat:one", "openai-chat:two")
        board.agent("other").consumes(Riddle)
        await board.publish(Riddle(text="What has keys and opens nothing?"))
        await board.run_until_idle()
    assert {request.body["model"] for request in echoing.requests} == {"one", "two", "common"}


async def test_a_board_refuses_models_that_cannot_be_asked() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("one").consumes(Riddle).with_engines("opnai:gpt-5")
        with raising(UsageError, "'opnai:gpt-5'"):
            await board.publish(Riddle(text="?"))


@pytest.mark.parametrize(
    ("adapter", "package"),
    [
        ("pydantic_ai", "pydantic_ai"),
        ("pydantic_ai", "tenacity"),
        ("pydantic_ai", "openai"),
        ("ag2", "ag2"),
        ("ag2", "tenacity"),
        ("autogen", "autogen"),
        ("autogen", "tenacity"),
        ("autogen", "httpx2"),
        ("dspy", "dspy"),
        ("dspy", "tenacity"),
    ],
)
def test_a_missing_package_is_named(adapter: str, package: str) -> None:
    said = str(refused_without(package, f"turnloom.adapters.{adapter}"))
    assert f'pip install "turnloom[{adapter.replace("_", "-")}]"' in said


def test_an_engine_of_a_model_that_cannot_be_asked_is_not_made() -> None:
    with raising(UsageError, "'opnai:gpt-5'"):
        PydanticAIEngine("opnai:gpt-5")
