"""Models through DSPy, by the suite that every engine passes."""

import json
import subprocess
import sys

import pytest
from dspy.clients.base_lm import GLOBAL_HISTORY
from dspy.lm15 import Config

from tests.support.engines import ByAddress, ByName
from tests.support.tasks import NUMBERS, task
from turnloom.adapters.dspy import DSPyEngine, Patience
from turnloom.agents.spec import Answer, Exchange, OutputSchema, ToolCall, ToolResult
from turnloom.errors import EngineError, UsageError
from turnloom.testing import LoopbackModel, Stalled


class TestDSPy(ByAddress):
    kind = DSPyEngine


class TestDSPyByName(ByName):
    kind = DSPyEngine


async def test_who_said_and_called_what() -> None:
    said = (("workflow", "Begin."), ("Ann", "I do."), ("Bob", "So do I."))
    calls = (ToolCall("add", {"a": 1}), ToolCall("add", {"a": 2}, "own"))
    results = (ToolResult(None), ToolResult(error="It is odd."))
    exchanges = (Exchange("Let me see.", calls, results),)
    async with LoopbackModel(["Yes."]) as model:
        await DSPyEngine("any", base_url=model.url)(task(*said, exchanges=exchanges))
    (request,) = model.requests
    assert [(each["role"], each["content"]) for each in request.messages] == [
        ("system", "Be Ann."),
        ("user", "Begin."),
        ("assistant", "I do."),
        ("user", "Bob: So do I."),
        ("assistant", "Let me see."),
        ("tool", "null"),
        ("tool", "It is odd."),
    ]


async def test_an_output_that_is_no_object_is_asked_for_in_one() -> None:
    async with LoopbackModel([Answer(output={"response": [1, 2]})]) as model:
        engine = DSPyEngine("any", base_url=model.url, settings=Config(temperature=0.5))
        answer = await engine(task(("user", "Count."), output=NUMBERS))
    assert answer.output == [1, 2]
    (request,) = model.requests
    assert request.body["temperature"] == 0.5
    form = request.body["response_format"]["json_schema"]["schema"]
    assert form["properties"]["response"]["items"] == {"type": "integer"}


async def test_an_output_with_choices_in_it_is_not_lost() -> None:
    chosen = {"urgent": {"type": "boolean"}, "team": {"enum": ["desk", "van"], "type": "string"}}
    form = OutputSchema("Choice", {"type": "object", "properties": chosen, "required": [*chosen]})
    given = {"urgent": True, "team": "van"}
    async with LoopbackModel([Answer(output=given)]) as model:
        answer = await DSPyEngine("any", base_url=model.url)(task(("user", "Who?"), output=form))
    assert json.loads(answer.text) == given


async def test_dspy_keeps_nothing_of_what_was_said() -> None:
    before = len(GLOBAL_HISTORY)
    async with LoopbackModel(["One.", "Two."]) as model:
        engine = DSPyEngine("any", base_url=model.url)
        answers = [await engine(task(("user", "The word is swordfish."))) for _ in range(2)]
    assert [each.text for each in answers] == ["One.", "Two."]
    assert len(GLOBAL_HISTORY) == before


async def test_a_model_that_is_silent_is_told_of_in_our_words() -> None:
    patience = Patience(timeout=0.05, retries=0)
    async with LoopbackModel([Stalled()]) as model:
        with pytest.raises(EngineError, match=r"'any' was silent for 0.05 s. Let `Patience`"):
            await DSPyEngine("any", base_url=model.url, patience=patience)(task(("user", "Hi.")))


async def test_other_providers_are_reached_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackModel([]) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        with pytest.raises(EngineError, match="status 404: There is no POST /v1/messages"):
            await DSPyEngine("anthropic:claude-sonnet-5-5")(task(("user", "Hi.")))


async def test_an_engine_without_a_model_says_so() -> None:
    with pytest.raises(UsageError, match="No model is named"):
        await DSPyEngine()(task())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("opnai:gpt-5", "DSPy knows no provider for it. Name one"),
        ("llama", "DSPy knows no provider for it. Name one"),
        ("openai:gpt-5", "set OPENAI_API_KEY."),
    ],
)
def test_an_engine_of_a_model_that_cannot_be_asked_is_not_made(
    model: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=f"{model!r} cannot be asked.* {says}") as refused:
        DSPyEngine(model)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("package", ["dspy", "tenacity"])
def test_a_missing_package_is_named(package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "try:\n    import turnloom.adapters.dspy\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.stdout.startswith("UsageError ")
    assert 'pip install "turnloom[dspy]"' in done.stdout
