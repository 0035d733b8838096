"""Models on the command line, and runs of agents that nobody answers for there."""

from functools import partial
from pathlib import Path

from anyio import to_thread

from tests.cli.conftest import Call
from tests.support.folders import write_folder
from weft import Weft
from weft.testing import LoopbackModel, ScriptedEngine

FILES = {
    "orchestrator.yaml": "{initial_message: Hi., human_in_the_loop: true}",
    "agents.yaml": "A: {system_message: Greet.}",
}


async def test_a_model_is_asked_and_named_to_go_on_with(weft: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, FILES, "Greeting")
    async with LoopbackModel(["Hello."]) as model:
        keys = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "key"}
        call = partial(weft, "run", "Greeting", "--model", "openai-chat:any", **keys)
        done = await to_thread.run_sync(call)
    assert "A: Hello." in done.out
    assert any(
        " resume " in line and line.endswith(" --model openai-chat:any")
        for line in done.out.splitlines()
    )


async def test_a_run_is_told_something_also_where_nobody_answers_for_it(
    weft: Call, tmp_path: Path
) -> None:
    folder, store = write_folder(tmp_path, FILES, "Greeting"), str(tmp_path / "weft.db")
    engine = ScriptedEngine({"A": ["Hello.", "Goodbye."]})
    async with Weft(store=store, engine=engine) as app:
        run = await app.start(folder)
        async for event in run.events():
            if event.kind == "question.asked":
                break
    call = partial(weft, "answer", "last", "I leave.", "--store", store)
    await to_thread.run_sync(call)
    done = await to_thread.run_sync(partial(weft, "resume", "last", "--store", store, code=2))
    assert "W050 Agent 'A' has no engine." in done.err
    async with Weft(store=store, engine=engine) as app:
        run = await app.resume(run.id)
        async for event in run.events():
            if event.kind == "agent.text" and event.data.text == "Goodbye.":
                break
    assert "I leave." in engine.calls[-1].prompt
