"""Folders that say who makes what takes the turn: an agent or a program of a library."""

from pathlib import Path

import anyio
import pytest

from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.testing import LoopbackModel
from turnloom.testing.contracts.facts import PATIENCE

TAKING = {
    "ag2": "AG2AgentEngine",
    "autogen": "ConversableAgentEngine",
    "dspy": "DSPyProgramEngine",
}
MAKING = {
    "ag2": """
        from ag2 import Agent

        def make():
            return Agent("own", "Be kind.")
        """,
    "autogen": """
        import os
        from autogen import ConversableAgent

        def make():
            url = os.environ["OPENAI_BASE_URL"]
            entry = {"api_type": "openai", "model": "any", "base_url": url}
            return ConversableAgent("Own", "Be kind.", llm_config=entry, human_input_mode="NEVER")
        """,
    "dspy": """
        import dspy

        def make(signature):
            return dspy.Predict(signature)
        """,
}
LINES = {"dspy": "[[ ## answer ## ]]\nGood morning.\n\n[[ ## completed ## ]]"}


@pytest.mark.parametrize("kind", TAKING)
async def test_a_function_of_the_folder_makes_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "orchestrator.yaml": "{initial_message: I am Ann.}",
        "agents.yaml": f"Desk: {{engine: {{type: {kind}, file: own.py, function: make}}}}",
        "own.py": MAKING[kind],
    }
    async with LoopbackModel([LINES.get(kind, "Good morning.")]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        async with Loom(store="memory", model="openai-chat:any") as app:
            run = await app.start(write_folder(tmp_path, files))
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.finished"
            events = await app.history.events(run.id)
            loaded = await app.history.definition(run.id)
    assert [e.data.text for e in events if e.kind == "agent.text"] == ["Good morning."]
    assert [e.data.engine for e in events if e.kind == "model.called"] == [TAKING[kind]]
    assert model.requests[0].body["model"] == "any"
    assert loaded.unheeded == (("model",) if kind == "autogen" else ())
