"""Models through DSPy, by the suite that every engine passes."""

import json

import pytest
from dspy.clients.base_lm import GLOBAL_HISTORY
from dspy.lm15 import Config

from tests.support.engines import ByAddress, ByName
from tests.support.raising import raising
from tests.support.tasks import NUMBERS, task
from turnloom.adapters.dspy import DSPyEngine, Patience
from turnloom.agents.spec import Answer, Exchange, OutputSchema, ToolCall, ToolResult
from turnloom.errors import EngineError, UsageError
from turnloom.testing import LoopbackModel, StalledReply


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
    async with LoopbackModel([StalledReply()]) as model:
        with raising(EngineError, "'any'", "0.05 s", "`Patience`"):
            await DSPyEngine("any", base_url=model.url, patience=patience)(task(("user", "Hi.")))


async def test_other_providers_are_reached_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackModel([]) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        with raising(EngineError, "404", "/v1/messages"):
            await DSPyEngine("anthropic:claude-sonnet-5-5")(task(("user", "Hi.")))


async def test_an_engine_without_a_model_says_so() -> None:
    with pytest.raises(UsageError):
        await DSPyEngine()(task())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("opnai:gpt-5", "DSPy"),
        ("llama", "DSPy"),
        ("openai:gpt-5", "OPENAI_API_KEY"),
    ],
)
def test_an_engine_of_a_model_that_cannot_be_asked_is_not_made(
    model: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with raising(UsageError, repr(model), says) as refused:
        DSPyEngine(model)
    assert len(str(refused.value).splitlines()) == 1
